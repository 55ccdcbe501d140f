"""Zones: a few first computations in a row during which large values leave little room, however often they are made again.

A relaxation that looks at memory when stages end lets several large values be recomputed in one stage as if they took turns at will. Where
only a few large values fit at once, whether they can take turns is a question of its own, and a small one: go through all sets of large
values that fit (everything smaller taken to be there for nothing), and find the cheapest way through the zone and the least memory it
takes at its worst moment. Of every schedule it then holds that the zone costs it at least that, and that at some moment within the zone so
much memory is taken by large values that only the rest is left for whatever else is carried past that moment.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .problem import Problem
from .search.zone_kernels import pass_through

MOST_VALUES = 60
MOST_SETS = 20_000
"""Large values of a zone, and sets of them that fit: more would take too long."""
LARGE = (0.05, 0.1, 0.15, 0.2, 0.3, 0.4)
"""What is large, as a share of the memory there is: the least of these with which a zone can be passed in a moment."""
LEVELS = 4
"""Ways through a zone that are told apart: ever less memory for ever more cost."""

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Level:
    """To take less than the level before, a schedule must pay this; and then it takes so many bytes at its worst moment or more."""

    bytes: int
    cost: float


@dataclass(frozen=True, slots=True, eq=False)
class Zone:
    """First computations in a row, the large values on which they depend, and what it takes to pass."""

    run: range
    values: frozenset[int]
    levels: tuple[Level, ...]
    """The cheapest way first."""


def find_zone(problem: Problem, run: range) -> Zone | None:
    """The zone of these first computations; none if they know no large values, or too many, or nothing gets through at all."""
    for share in LARGE:
        values = _concerned(problem, run, share * problem.available)
        sets = _sets_that_fit(problem, values)
        if sets is not None:
            levels = _Passage(problem, run, values, sets).levels() if values else ()
            return Zone(run, frozenset(values), levels) if levels else None
    return None


def _concerned(problem: Problem, run: range, large: float) -> list[int]:
    """Large values the zone reads or makes, and those needed to make them again."""
    waiting = [value for operation in run for value in (*problem.inputs[operation], *problem.outputs[operation])]
    concerned: set[int] = set()
    while waiting:
        value = waiting.pop()
        if value not in concerned and problem.size[value] >= large:
            concerned.add(value)
            if not problem.pinned[problem.producer[value]]:
                waiting.extend(problem.inputs[problem.producer[value]])
    return sorted(concerned)


def _sets_that_fit(problem: Problem, values: Sequence[int]) -> Ints | None:
    """All sets of values that fit, as bits, ascending; none if there are too many."""
    if len(values) > MOST_VALUES:
        return None
    sets, taken = np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64)
    for bit, value in enumerate(values):
        fits = taken + problem.size[value] <= problem.available
        sets = np.concatenate([sets, sets[fits] | (1 << bit)])
        taken = np.concatenate([taken, taken[fits] + problem.size[value]])
        if len(sets) > MOST_SETS:
            return None
    return np.sort(sets)


class _Passage:
    """The ways from set to set: dropping a value, making one again, the next first computation."""

    def __init__(self, problem: Problem, run: range, values: Sequence[int], sets: Ints) -> None:
        self.problem = problem
        self.sets = sets
        self.bit = {value: 1 << position for position, value in enumerate(values)}
        self.early = self._as_bits(value for value in values if problem.producer[value] < run.start)
        self.taken = np.zeros(len(sets), dtype=np.int64)
        for value, bit in self.bit.items():
            self.taken[sets & bit != 0] += problem.size[value]
        makers = sorted({problem.producer[value] for value in values if not problem.pinned[problem.producer[value]]})
        self.drops = np.array([self._dropping(bit) for bit in self.bit.values()]).T.copy()
        self.again = np.array([self._after(operation, bare=True) for operation in makers], dtype=np.int64).reshape(len(makers), len(sets))
        self.since = np.array([max(0, operation + 1 - run.start) for operation in makers], dtype=np.int64)
        self.workspace = np.array([problem.workspace[operation] for operation in makers], dtype=np.int64)
        self.price = np.array([problem.cost[operation] for operation in makers], dtype=np.float64)
        self.steps = np.array([self._after(operation, bare=False) for operation in run])
        self.step_workspace = np.array([problem.workspace[operation] for operation in run], dtype=np.int64)

    def levels(self) -> tuple[Level, ...]:
        """Ever less memory for ever more cost, down to the least there is; nothing if nothing gets through."""
        found: list[Level] = []
        limit = self.problem.available
        while (way := self._cheapest(limit, self.price)) is not None:
            if len(found) == LEVELS - 1:
                least = self._cheapest(limit, np.zeros_like(self.price))
                found.append(Level(way.bytes if least is None else least.bytes, way.cost))
                break
            found.append(way)
            limit = way.bytes - 1
        return tuple(found)

    def _cheapest(self, limit: int, price: NDArray[np.float64]) -> Level | None:
        """The least cost within a limit, and the least peak for that cost."""
        begin = (self.sets & ~self.early == 0) & (self.taken <= limit)
        cost, peak = np.where(begin, 0.0, np.inf), np.where(begin, self.taken, 0)
        scratch = np.empty_like(cost), np.empty_like(peak)
        ways = (self.taken, self.drops, self.again, self.since, self.workspace, price, self.steps, self.step_workspace)
        pass_through(*ways, limit, cost, peak, *scratch)
        least = float(cost.min())
        return Level(int(peak[cost == least].min()), least) if least < np.inf else None

    def _as_bits(self, values: Iterable[int]) -> int:
        return sum(self.bit.get(value, 0) for value in values)

    def _place(self, sets: Ints, where: NDArray[np.bool_]) -> Ints:
        """The numbers of sets; -1 where none is wanted or that set does not fit."""
        place = np.minimum(np.searchsorted(self.sets, sets), len(self.sets) - 1)
        return np.where(where & (self.sets[place] == sets), place, -1)

    def _dropping(self, bit: int) -> Ints:
        return self._place(self.sets & ~bit, self.sets & bit != 0)

    def _after(self, operation: int, *, bare: bool) -> Ints:
        """Where an operation leads from each set that has what it reads. Whoever has a part of what it makes could have dropped that."""
        read, made = self._as_bits(self.problem.inputs[operation]), self._as_bits(self.problem.outputs[operation])
        able = self.sets & read == read
        return self._place(self.sets | made, able & (self.sets & made == 0) if bare else able)
