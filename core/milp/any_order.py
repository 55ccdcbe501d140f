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
becomes a breakpoint (`core/engine/any_order.py`).

**Cuts.** Without integers, a recomputation can be spread over the stages in fractions. Z[k,w], "w is computed at least once after
T[k+1]", sees through that, and is as valid: Z[k,w] <= sum of R[j,w] over j > k; Z[k,w] <= Z[k,p] + S[k,x] for each input x of w; and
Z[k,w] = 1 for whatever is first computed after T[k+1] in every order. (any-h) to (any-j); they pay in some programs and not in others.

Memory is counted at the breakpoints only. So the bound holds for a memory model that computes in place too, if there the output that v
may write over an input does not count on top of it: the program is built of `bounding_problem`, which says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..model.precedence import Precedence
from ..model.problem import Problem
from ..schedule.sequence import first_computations, last_reads
from .scale import Scale
from .sparse import SparseMatrix
from .standard_form import StandardForm

COMPUTE, KEEP, LATER = "R", "S", "Z"
Key = tuple[str, int, int]
"""A variable: its letter, its stage, its operation or value."""
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Row:
    """lower <= sum of coefficient * variable <= upper."""

    name: str
    """The number of its constraint in the docstring above."""
    index: tuple[int, ...]
    terms: tuple[tuple[float, Key], ...]
    lower: float = -np.inf
    upper: float = np.inf


@dataclass(frozen=True, slots=True, eq=False)
class Windows:
    """In which stages operations may be computed and values be of use, given the breakpoints."""

    begin: Ints
    """The first stage in which each operation may be computed."""
    end: Ints
    """The last stage in which it may be computed for the first time."""
    useful: Ints
    """The last stage in which computing it can be of use."""
    last: Ints
    """The last stage in which each value can be of use; below its first if never."""

    @staticmethod
    def of(problem: Problem, precedence: Precedence, chain: Sequence[int]) -> Windows:
        final = len(chain)
        begin = np.zeros(problem.count, dtype=np.int64)
        end = np.full(problem.count, final, dtype=np.int64)
        for stage, breakpoint_ in enumerate(chain, start=1):
            relatives = precedence.relatives(breakpoint_)
            end[relatives.ancestors] = np.minimum(end[relatives.ancestors], stage - 1)
            begin[relatives.descendants] = np.maximum(begin[relatives.descendants], stage)
            begin[breakpoint_] = end[breakpoint_] = stage
        useful = end.tolist()
        last = [0] * len(problem.size)
        for operation in reversed(range(problem.count)):
            for value in problem.outputs[operation]:
                readers = max((useful[user] for user in problem.consumers[value]), default=-1)
                last[value] = final if problem.kept[value] else readers
                if not problem.pinned[operation]:
                    useful[operation] = max(useful[operation], last[value])
        return Windows(begin, end, np.array(useful, dtype=np.int64), np.array(last, dtype=np.int64))


@dataclass(frozen=True, eq=False)
class AnyOrderProgram:
    """The program for some breakpoints, its matrix, and the way between its points and schedules."""

    problem: Problem
    """As `bounding_problem` gives it."""
    chain: tuple[int, ...]
    windows: Windows
    cuts: bool = False
    """With (any-h) to (any-j)?"""

    @staticmethod
    def of(problem: Problem, precedence: Precedence, chain: Sequence[int], *, cuts: bool = False) -> AnyOrderProgram:
        return AnyOrderProgram(problem, tuple(chain), Windows.of(problem, precedence, chain), cuts)

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
    def _first(self) -> dict[str, tuple[list[int], list[int], list[int]]]:
        """For each letter, by operation or value: the column its stage 0 would have, its first stage, and the stage after its last."""
        windows, problem, column = self.windows, self.problem, 0
        tables: dict[str, tuple[list[int], list[int], list[int]]] = {}
        begin, producer = windows.begin.tolist(), problem.producer
        spans: dict[str, Iterator[tuple[int, int]]] = {
            COMPUTE: zip(begin, (windows.useful + 1).tolist(), strict=True),
            KEEP: ((begin[producer[value]], last) for value, last in enumerate(windows.last.tolist())),
            LATER: zip(begin, windows.useful.tolist(), strict=True) if self.cuts else iter(()),
        }
        for letter, ranges in spans.items():
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
        columns, starts, stops = self._first[letter]
        return columns[item] + stage if starts[item] <= stage < stops[item] else -1

    def keys(self) -> Iterator[Key]:
        """All variables, in the order of their columns."""
        for letter, (_, starts, stops) in self._first.items():
            for item, (start, stop) in enumerate(zip(starts, stops, strict=True)):
                for stage in range(start, stop):
                    yield letter, stage, item

    @cached_property
    def columns(self) -> int:
        return sum(stop - start for _, starts, stops in self._first.values() for start, stop in zip(starts, stops, strict=True))

    def rows(self) -> Iterator[Row]:
        """Every constraint; terms that are no variables are left out."""
        yield from self._computations()
        yield from self._retention()
        yield from self._memory()
        if self.cuts:
            yield from self._later()

    def _computations(self) -> Iterator[Row]:
        problem, windows = self.problem, self.windows
        for operation in range(problem.count):
            start, end = int(windows.begin[operation]), int(windows.end[operation])
            terms = tuple((1.0, (COMPUTE, stage, operation)) for stage in range(start, end + 1))
            yield Row("any-e", (operation,), terms, 1.0, 1.0 if problem.pinned[operation] else np.inf)
            for stage in range(start, int(windows.useful[operation]) + 1):
                for value in problem.inputs[operation]:
                    terms = ((1.0, (COMPUTE, stage, operation)), *self._absence(stage, value))
                    yield Row("any-b", (stage, operation, value), terms, upper=0.0)

    def _retention(self) -> Iterator[Row]:
        problem = self.problem
        _, starts, stops = self._first[KEEP]
        for value, producer in enumerate(problem.producer):
            for stage in range(starts[value], stops[value]):
                yield Row("any-c", (stage, value), ((1.0, (KEEP, stage, value)), *self._absence(stage, value)), upper=0.0)
            if problem.kept[value]:
                terms = ((1.0, (COMPUTE, self.final, producer)), (1.0, (KEEP, self.final - 1, value)))
                yield Row("any-f", (value,), terms, 1.0)

    def _absence(self, stage: int, value: int) -> tuple[tuple[float, Key], ...]:
        """Less than nothing where a value is made in a stage or was there when it began."""
        return (-1.0, (COMPUTE, stage, self.problem.producer[value])), (-1.0, (KEEP, stage - 1, value))

    def _memory(self) -> Iterator[Row]:
        problem, scale = self.problem, self.scale
        _, starts, stops = self._first[KEEP]
        for stage, operation in enumerate(self.chain):
            read = frozenset(problem.inputs[operation])
            own = scale.workspace[operation] + sum(scale.size[value] for value in {*read, *problem.outputs[operation]})
            terms = tuple(
                (scale.size[value], (KEEP, stage, value))
                for value in range(len(problem.size))
                if starts[value] <= stage < stops[value]
                and value not in read
                and problem.producer[value] != operation
                and problem.size[value]
            )
            yield Row("any-g", (stage,), terms, upper=scale.available - own)

    def _later(self) -> Iterator[Row]:
        problem, windows = self.problem, self.windows
        begin, useful = windows.begin.tolist(), windows.useful.tolist()
        for operation in range(problem.count):
            for stage in range(begin[operation], useful[operation]):
                runs = tuple((1.0, (COMPUTE, later, operation)) for later in range(stage + 1, useful[operation] + 1))
                yield Row("any-h", (stage, operation), ((-1.0, (LATER, stage, operation)), *runs), 0.0)
            for stage in range(useful[operation]):
                certain = stage < begin[operation]
                for value in problem.inputs[operation]:
                    producer = problem.producer[value]
                    if begin[producer] <= stage:
                        own = () if certain else ((-1.0, (LATER, stage, operation)),)
                        terms = ((1.0, (LATER, stage, producer)), (1.0, (KEEP, stage, value)), *own)
                        yield Row("any-i", (stage, operation, value), terms, 1.0 if certain else 0.0)
        for value, producer in enumerate(problem.producer):
            if problem.kept[value]:
                for stage in range(begin[producer], self.final):
                    yield Row("any-j", (stage, value), ((1.0, (LATER, stage, producer)), (1.0, (KEEP, stage, value))), 1.0)

    def certain(self) -> Iterator[Key]:
        """Variables that are 1 in every schedule: (any-d)."""
        for stage, operation in enumerate(self.chain):
            for value in self.problem.inputs[operation]:
                if self.column((KEEP, stage, value)) >= 0:
                    yield KEEP, stage, value

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
        for key in self.keys():
            if key[0] == COMPUTE:
                objective[self.column(key)] = self.scale.cost[key[2]]
            elif key[0] == LATER:
                whole[self.column(key)] = False
        for key in self.certain():
            least[self.column(key)] = 1.0
        entries = (np.array(rows, dtype=np.int64), np.array(columns, dtype=np.int64), np.array(values, dtype=np.float64))
        matrix = SparseMatrix.of(*entries, (len(lower), width))
        return StandardForm(objective, 0.0, matrix, np.array(lower), np.array(upper), least, np.ones(width), whole, {})

    def stages(self, values: NDArray[np.float64]) -> list[list[int]]:
        """What a point of the program computes in each stage, in the numbers and the order of the problem."""
        columns, starts, stops = self._first[COMPUTE]
        found: list[list[int]] = [[] for _ in range(self.final + 1)]
        for operation in range(self.problem.count):
            for stage in range(starts[operation], stops[operation]):
                if values[columns[operation] + stage] > 0.5:
                    found[stage].append(operation)
        return found

    def start(self, sequence: Sequence[int]) -> dict[int, float]:
        """The point of the program that a schedule is."""
        problem = self.problem
        moments = [first_computations(problem.count, sequence)[operation] for operation in self.chain]
        stage_of = np.searchsorted(np.array(moments, dtype=np.int64), np.arange(len(sequence)), side="right").tolist()
        point = dict.fromkeys(range(self.columns), 0.0)
        for position, operation in enumerate(sequence):
            _set(point, self.column((COMPUTE, stage_of[position], operation)))
        frees = last_reads(problem, sequence)
        alive: set[int] = set()
        for position, operation in enumerate(sequence):
            if position in moments:
                for value in alive:
                    _set(point, self.column((KEEP, moments.index(position), value)))
            alive.update(problem.outputs[operation])
            alive.difference_update(frees[position])
        for key in self.keys():
            if key[0] == LATER:
                letter_stage, operation = key[1], key[2]
                later = (self.column((COMPUTE, stage, operation)) for stage in range(letter_stage + 1, self.final + 1))
                point[self.column(key)] = max((point[column] for column in later if column >= 0), default=0.0)
        return point


def _set(point: dict[int, float], column: int) -> None:
    if column >= 0:
        point[column] = 1.0
