"""The any-order program: a bound for every order of first computations and any number of recomputations, from a few breakpoints.

The paper's MILP fixes the order of first computations and checks memory at every step. Here the order is free and memory is checked at a
few moments only, which makes the program small and its value a bound on every schedule.

**Breakpoints.** Take operations v[1], ..., v[K] that form a chain of the partial order: each is an ancestor of the next. Whatever the
order of a schedule, they are computed for the first time in this sequence. Let T[k] be the moment when v[k] first runs. These moments cut
every schedule into stages 0, ..., K: stage k lasts from T[k], when v[k] runs, until just before T[k+1]; stage 0 is what comes before
T[1].

**Variables.** R[k,w] is 1 if operation w is computed in stage k, however often. S[k,x] is 1 if value x is in memory at T[k+1], while
v[k+1] first runs, made before. Of any schedule these are facts, and they satisfy:

    (any-a)  minimise  sum of C[w] R[k,w]                                w costs at least that: it is computed in each of these stages
    (any-b)  R[k,w] <= R[k,p] + S[k-1,x]      for each input x of w      x was made by p in this stage, or was there when it began
    (any-c)  S[k,x] <= R[k,p] + S[k-1,x]      where p makes x            likewise
    (any-d)  S[k,x] = 1                       for each input x of v[k+1] it runs at that moment
    (any-e)  sum of R[k,w] over the window of w >= 1                     every operation has a first computation
    (any-f)  R[K,p] + S[K-1,x] >= 1           for each graph output x    it is there at the end
    (any-g)  sum of M[x] S[k,x] + outputs and workspace of v[k+1] <= B   memory while v[k+1] first runs

**Windows.** An ancestor of v[k] is first computed before T[k], so in a stage below k; a descendant in stage k or later; v[k] in stage k.
An operation that is neither may come first in any stage between: its window. R[k,w] is no variable before the window (w was never
computed) nor after the last stage in which anything that it leads to can still be computed; S[k,x] likewise. Leaving those out loses no
schedule of least cost: a computation that nobody reads can be dropped.

**So** the least value of the program, with integers or without, is at most the cost of every schedule that fits. Where its solution,
replayed stage by stage, fits, it is a schedule of that cost: optimal, in any order. Where it does not, the moment of the worst excess
becomes a breakpoint (`core/engine/workers/programs.py`).

**Cuts.** Without integers, a recomputation can be spread over the stages in fractions. Z[k,w], "w is computed at least once after
T[k+1]", sees through that, and is as valid: Z[k,w] <= sum of R[j,w] over j > k; Z[k,w] <= Z[k,p] + S[k,x] for each input x of w; and
Z[k,w] = 1 for whatever is first computed after T[k+1] in every order. (any-h) to (any-j); they pay in some programs and not in others.

**Tails.** Large values that are recomputed in one stage cannot always take turns. A tail (`core/labels/tail.py`) that begins with v[k] has
labels l, each with the set N[l] of large values it needs at T[k] and the cost D[l] of what it computes of the makers W of large values from
T[k] on. L[l] is 1 if a schedule is one of those that the label stands for; X is what the makers cost beyond one computation in each stage:

    (any-k)  sum of L[l] = 1
    (any-l)  S[k-1,x] >= sum of L[l] over the labels with x in N[l]
    (any-m)  X + sum of C[w] R[j,w] over w in W and stages j >= k >= sum of D[l] L[l], and the first computations that are certain

and X is added to (any-a). Presolve leaves the makers as they are: what it does to others moves no computation of a maker to another stage.

Memory is counted at the breakpoints only. So the bound holds for a memory model that computes in place too, if there the output that v
may write over an input does not count on top of it: the program is built of `bounding_problem`, which says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..labels.tail import Tail
from ..model.precedence import Precedence
from ..model.problem import Problem
from ..schedule.sequence import first_computations, last_reads
from .presolve import Presolved, presolve
from .scale import Scale
from .sparse import SparseMatrix
from .stage_windows import Windows, first_stages
from .standard_form import StandardForm

COMPUTE, KEEP, LATER, LABEL, EXTRA = "R", "S", "Z", "L", "X"
Key = tuple[str, int, int]
"""A variable: its letter, its stage, its operation or value."""
Term = tuple[float, Key]
Spans = tuple[list[int], list[int], list[int]]
"""By operation or value: the column that its stage 0 would have, its first stage, and the stage after its last."""


@dataclass(frozen=True, slots=True)
class Row:
    """lower <= sum of coefficient * variable <= upper."""

    name: str
    """The number of its constraint in the docstring above."""
    index: tuple[int, ...]
    terms: tuple[Term, ...]
    lower: float = -np.inf
    upper: float = np.inf


@dataclass(frozen=True, eq=False)
class AnyOrderProgram:
    """The program for some breakpoints, its matrix, and the way between its points and schedules."""

    original: Problem
    """As `bounding_problem` gives it."""
    presolved: Presolved
    chain: tuple[int, ...]
    """The breakpoints, in the numbers of the presolved problem."""
    windows: Windows
    cuts: bool = False
    """With (any-h) to (any-j)?"""
    tails: tuple[Tail, ...] = ()
    """Tails that begin with breakpoints, in the numbers of the original problem."""

    @staticmethod
    def of(
        problem: Problem,
        precedence: Precedence,
        chain: Sequence[int],
        *,
        cuts: bool = False,
        exact: bool = False,
        presolved: Presolved | None = None,
        tails: Sequence[Tail] = (),
    ) -> AnyOrderProgram:
        """`exact` leaves out what presolve relaxes; `presolved` is the problem presolved without breakpoints, if that was done before."""
        begin, end = first_stages(problem.count, precedence, chain)
        apart = {*chain, *(maker for tail in tails for maker in tail.makers)}
        if precedence.is_total:
            presolved = presolve(problem, apart, begin, exact=exact)
        elif presolved is None or any(presolved.members[presolved.group_of[operation]] != (operation,) for operation in apart):
            presolved = presolve(problem, apart, exact=exact)
        numbers = tuple(presolved.number[operation] for operation in chain)
        return AnyOrderProgram(problem, presolved, numbers, Windows.of(presolved, begin, end, len(chain)), cuts, tuple(tails))

    @property
    def problem(self) -> Problem:
        return self.presolved.problem

    @property
    def final(self) -> int:
        """The last stage."""
        return len(self.chain)

    @cached_property
    def scale(self) -> Scale:
        return Scale.of(self.problem)

    @property
    def unit(self) -> float:
        """What one unit of the objective is in cost."""
        return self.scale.cost_unit

    @cached_property
    def _spans(self) -> dict[str, Spans]:
        windows, problem = self.windows, self.problem
        kept = [(windows.begin[problem.producer[value]], last if problem.size[value] else -1) for value, last in enumerate(windows.last)]
        later = zip(windows.begin, windows.useful, strict=True) if self.cuts else ()
        tables: dict[str, Spans] = {}
        column = 0
        for letter, ranges in (
            (COMPUTE, [(begin, useful + 1) for begin, useful in zip(windows.begin, windows.useful, strict=True)]),
            (KEEP, kept),
            (LATER, later),
            (LABEL, [(0, 1) for tail in self.tails for _ in tail.labels]),
            (EXTRA, [(0, 1)] if self.tails else []),
        ):
            columns: list[int] = []
            starts: list[int] = []
            stops: list[int] = []
            for start, stop in ranges:
                columns.append(column - start)
                starts.append(start)
                stops.append(max(start, stop))
                column += stops[-1] - start
            tables[letter] = (columns, starts, stops)
        return tables

    def column(self, key: Key) -> int:
        """The column of a variable; -1 where it is none, because it is 0 in every schedule worth having."""
        letter, stage, item = key
        columns, starts, stops = self._spans[letter]
        return columns[item] + stage if starts[item] <= stage < stops[item] else -1

    def variables(self) -> Iterator[Key]:
        """All variables, in the order of their columns."""
        for letter, (_, starts, stops) in self._spans.items():
            for item, (start, stop) in enumerate(zip(starts, stops, strict=True)):
                for stage in range(start, stop):
                    yield letter, stage, item

    @cached_property
    def columns(self) -> int:
        return sum(sum(stops) - sum(starts) for _, starts, stops in self._spans.values())

    def rows(self) -> Iterator[Row]:
        """Every constraint but (any-d), which `certain` has. Terms that are no variables are 0."""
        yield from self._computations()
        yield from self._retention()
        yield from self._memory()
        if self.cuts:
            yield from self._later()
        yield from self._tails()

    def _computations(self) -> Iterator[Row]:
        problem, windows = self.problem, self.windows
        for operation in range(problem.count):
            start, end = windows.begin[operation], windows.end[operation]
            if start < end:
                terms = tuple((1.0, (COMPUTE, stage, operation)) for stage in range(start, end + 1))
                yield Row("any-e", (operation,), terms, 1.0, 1.0 if problem.pinned[operation] else np.inf)
            for stage in range(start, windows.useful[operation] + 1):
                for value in problem.inputs[operation]:
                    there = self._there(stage, value)
                    if there is not None:
                        yield Row("any-b", (stage, operation, value), ((1.0, (COMPUTE, stage, operation)), *there), upper=0.0)

    def _retention(self) -> Iterator[Row]:
        problem = self.problem
        _, starts, stops = self._spans[KEEP]
        for value, producer in enumerate(problem.producer):
            for stage in range(starts[value], stops[value]):
                there = self._there(stage, value)
                assert there is not None
                yield Row("any-c", (stage, value), ((1.0, (KEEP, stage, value)), *there), upper=0.0)
            if problem.kept[value] and problem.size[value]:
                terms = ((1.0, (COMPUTE, self.final, producer)), (1.0, (KEEP, self.final - 1, value)))
                yield Row("any-f", (value,), terms, 1.0)

    def _there(self, stage: int, value: int) -> tuple[Term, ...] | None:
        """Less than nothing where a value is made in a stage or was there when it began; None where that is certain.

        A value that takes no memory is there as soon as it was made.
        """
        producer = self.problem.producer[value]
        if self.problem.size[value]:
            return (-1.0, (COMPUTE, stage, producer)), (-1.0, (KEEP, stage - 1, value))
        if stage >= self.windows.end[producer]:
            return None
        return tuple((-1.0, (COMPUTE, earlier, producer)) for earlier in range(self.windows.begin[producer], stage + 1))

    def _memory(self) -> Iterator[Row]:
        problem, scale = self.problem, self.scale
        _, starts, stops = self._spans[KEEP]
        for stage, operation in enumerate(self.chain):
            together = {*problem.inputs[operation], *problem.outputs[operation]}
            own = scale.workspace[operation] + sum(scale.size[value] for value in together)
            terms = tuple(
                (scale.size[value], (KEEP, stage, value))
                for value, (start, stop) in enumerate(zip(starts, stops, strict=True))
                if start <= stage < stop and value not in together
            )
            yield Row("any-g", (stage,), terms, upper=scale.available - own)

    def _later(self) -> Iterator[Row]:
        problem, (_, starts, stops) = self.problem, self._spans[LATER]
        for operation in range(problem.count):
            for stage in range(starts[operation], stops[operation]):
                runs = tuple((1.0, (COMPUTE, later, operation)) for later in range(stage + 1, stops[operation] + 1))
                yield Row("any-h", (stage, operation), ((-1.0, (LATER, stage, operation)), *runs), 0.0)
            for stage in range(self.windows.useful[operation]):
                certain = stage < starts[operation]
                for value in problem.inputs[operation]:
                    producer = problem.producer[value]
                    if starts[producer] <= stage and problem.size[value]:
                        own = () if certain else ((-1.0, (LATER, stage, operation)),)
                        terms = ((1.0, (LATER, stage, producer)), (1.0, (KEEP, stage, value)), *own)
                        yield Row("any-i", (stage, operation, value), terms, 1.0 if certain else 0.0)
        for value, producer in enumerate(problem.producer):
            if problem.kept[value] and problem.size[value]:
                for stage in range(starts[producer], self.final):
                    yield Row("any-j", (stage, value), ((1.0, (LATER, stage, producer)), (1.0, (KEEP, stage, value))), 1.0)

    @cached_property
    def _dearest(self) -> float:
        """What EXTRA is a share of, in units of the objective."""
        return max((label.cost for tail in self.tails for label in tail.labels), default=0.0) / self.unit

    def _tails(self) -> Iterator[Row]:
        original, number = self.original, self.presolved.number
        value_of = {value: place for place, value in enumerate(self.presolved.values)}
        first = 0
        for index, tail in enumerate(self.tails):
            labels = range(first, first + len(tail.labels))
            first = labels.stop
            stage = self.chain.index(number[tail.begin])
            yield Row("any-k", (index,), tuple((1.0, (LABEL, 0, label)) for label in labels), 1.0, 1.0)
            needing: dict[int, list[int]] = {}
            for label, each in zip(labels, tail.labels, strict=True):
                for value in each.needed:
                    needing.setdefault(value, []).append(label)
            for value, users in sorted(needing.items()):
                place = value_of.get(value)
                if place is None or not self.problem.size[place]:
                    continue
                terms = tuple((-1.0, (LABEL, 0, label)) for label in users)
                yield Row("any-l", (index, value), ((1.0, (KEEP, stage, place)), *terms), 0.0)
            paid = tuple(
                (original.cost[maker] / self.unit, (COMPUTE, later, number[maker]))
                for maker in tail.makers
                for later in range(stage + 1, self.final + 1)
            )
            priced = tuple((-label.cost / self.unit, (LABEL, 0, place)) for place, label in zip(labels, tail.labels, strict=True))
            once = sum(original.cost[maker] for maker in tail.certain) / self.unit
            yield Row("any-m", (index,), (*paid, *priced, (self._dearest, (EXTRA, 0, 0))), once)

    def certain(self) -> Iterator[Key]:
        """Variables that are 1 in every schedule: (any-d), and (any-e) where the window is one stage."""
        for stage, operation in enumerate(self.chain):
            for value in self.problem.inputs[operation]:
                if self.column((KEEP, stage, value)) >= 0:
                    yield KEEP, stage, value
        for operation, (start, end) in enumerate(zip(self.windows.begin, self.windows.end, strict=True)):
            if start == end:
                yield COMPUTE, start, operation

    @cached_property
    def form(self) -> StandardForm:
        """The matrix, with integers for R and S."""
        rows: list[int] = []
        columns: list[int] = []
        values: list[float] = []
        lower: list[float] = []
        upper: list[float] = []
        for number, row in enumerate(self.rows()):
            for coefficient, key in row.terms:
                column = self.column(key)
                if column >= 0:
                    rows.append(number)
                    columns.append(column)
                    values.append(coefficient)
            lower.append(row.lower)
            upper.append(row.upper)
        width = self.columns
        objective, least = np.zeros(width), np.zeros(width)
        whole = np.ones(width, dtype=np.bool_)
        cost = self.scale.cost
        for column, (letter, _, item) in enumerate(self.variables()):
            if letter == COMPUTE:
                objective[column] = cost[item]
            elif letter == EXTRA:
                objective[column] = self._dearest
            if letter in (LATER, LABEL, EXTRA):
                whole[column] = False
        for key in self.certain():
            least[self.column(key)] = 1.0
        entries = (np.array(rows, dtype=np.int64), np.array(columns, dtype=np.int64), np.array(values, dtype=np.float64))
        matrix = SparseMatrix.of(*entries, (len(lower), width))
        return StandardForm(objective, 0.0, matrix, np.array(lower), np.array(upper), least, np.ones(width), whole, {})

    def stages(self, values: NDArray[np.float64]) -> list[list[int]]:
        """What a point of the program computes in each stage, in the numbers and the order of the original problem."""
        columns, starts, stops = self._spans[COMPUTE]
        found: list[list[int]] = [[] for _ in range(self.final + 1)]
        for operation in range(self.problem.count):
            for stage in range(starts[operation], stops[operation]):
                if values[columns[operation] + stage] > 0.5:
                    found[stage].append(operation)
        return [self.presolved.expand(stage) for stage in found]

    def start(self, sequence: Sequence[int]) -> dict[int, float]:
        """The point of the program that a schedule is, or nearly is where it computes what is one here in several stages."""
        problem, operations = self.problem, self.presolved.contract(sequence)
        first = first_computations(problem.count, operations)
        moments = [first[operation] for operation in self.chain]
        stage_of = np.searchsorted(np.array(moments, dtype=np.int64), np.arange(len(operations)), side="right").tolist()
        point = {column: 0.0 for column, (letter, _, _) in enumerate(self.variables()) if letter not in (LABEL, EXTRA)}
        frees = last_reads(problem, operations)
        alive: set[int] = set()
        for position, operation in enumerate(operations):
            stage = stage_of[position]
            if stage and position == moments[stage - 1]:
                self._set(point, ((KEEP, stage - 1, value) for value in alive))
            self._set(point, [(COMPUTE, stage, operation)])
            alive.update(problem.outputs[operation])
            alive.difference_update(frees[position])
        for letter, stage, operation in self.variables():
            if letter == LATER:
                runs = (self.column((COMPUTE, later, operation)) for later in range(stage + 1, self.final + 1))
                point[self.column((LATER, stage, operation))] = max((point[column] for column in runs if column >= 0), default=0.0)
        return point

    def _set(self, point: dict[int, float], keys: Iterable[Key]) -> None:
        for key in keys:
            column = self.column(key)
            if column >= 0:
                point[column] = 1.0
