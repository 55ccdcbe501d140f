"""Zones: a few first computations in a row during which large values leave little room, however often they are made again.

A relaxation that looks at memory when stages end lets several large values be recomputed in one stage as if they took turns at will. Where
only a few large values fit at once, whether they can take turns is a question of its own, and a small one: go through all sets of large
values that fit (everything smaller taken to be there for nothing), and find the cheapest way through the zone and the least memory it
takes at its worst moment. Of every schedule it then holds that the zone costs it at least that, and that at some moment within the zone so
much memory is taken by large values that only the rest is left for whatever else is carried past that moment.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from .problem import Problem
from .search.zone_kernels import pass_through

MOST_VALUES = 60
MOST_SETS = 10_000
MOST_WORK = 400_000
"""Values of a zone that are told apart, and sets of them that fit: more would take too long. Those that are used may make more sets, as
long as sets times first computations are no more than the last."""
LARGE = (0.2, 0.1, 0.05)
LEAST = 0.01
"""What is large, as a share of the memory there is: first the larger, then the smaller; and the least that is told apart if it is used."""
ROUNDS = 6
"""How often it is asked what is used."""
LEVELS = 4
"""Ways through a zone that are told apart: ever less memory for ever more cost."""

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Level:
    """To take less than the level before, a schedule must pay this; and then it takes so many bytes at its worst moment or more."""

    bytes: int
    cost: float
    way: tuple[int, ...] = ()
    """The operations of a way that costs this, first computations among them."""


@dataclass(frozen=True, slots=True, eq=False)
class Zone:
    """First computations in a row, the large values on which they depend, and what it takes to pass."""

    run: range
    values: frozenset[int]
    levels: tuple[Level, ...]
    """The cheapest way first."""


def find_zone(problem: Problem, run: range) -> Zone | None:
    """The zone of these first computations; none if they know no large values, or nothing gets through at all.

    First only the largest values are tracked. A way that uses others as if they were there for nothing says which are worth it too.
    """
    tracked = _Tracked(problem, run)
    for share in LARGE:
        tracked.add_all(share * problem.available)
    if not tracked.values:
        return None
    levels = _Passage(problem, run, tracked.values, tracked.sets).levels()
    for _ in range(ROUNDS):
        if not levels or not tracked.add_used(level.way for level in levels):
            break
        levels = _Passage(problem, run, tracked.values, tracked.sets).levels()
    return Zone(run, frozenset(tracked.values), levels) if levels else None


class _Tracked:
    """Values whose being in memory or not is told apart, and all sets of them that fit, as bits.

    Those that a zone reads or makes, and those needed to make them again, the largest first and the nearest of these: each only if there
    are not too many sets with it. What is not tracked is taken to be there for nothing.
    """

    def __init__(self, problem: Problem, run: range) -> None:
        self.problem = problem
        self.run = run
        self.values: list[int] = []
        self.sets, self.taken = np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64)
        self.seen: set[int] = set()
        self.waiting: list[int] = []
        self._meet(value for operation in run for value in (*problem.inputs[operation], *problem.outputs[operation]))

    def _meet(self, values: Iterable[int]) -> None:
        fresh = [value for value in values if value not in self.seen]
        self.seen.update(fresh)
        self.waiting.extend(dict.fromkeys(fresh))

    def add_all(self, large: float) -> None:
        """All values of this size or more that can be added, and those they are made of."""
        later: list[int] = []
        while self.waiting:
            value = self.waiting.pop(0)
            if self.problem.size[value] < large:
                later.append(value)
            elif self._add(value) and not self.problem.pinned[self.problem.producer[value]]:
                self._meet(self.problem.inputs[self.problem.producer[value]])
        self.waiting = later

    def add_used(self, ways: Iterable[Sequence[int]]) -> bool:
        """Those that are read on these ways when something is made again; says whether any could be added."""
        used: dict[int, None] = {}
        for way in ways:
            made = set(self.run)
            for operation in way:
                if operation in made:
                    made.remove(operation)
                else:
                    used.update(dict.fromkeys(self.problem.inputs[operation]))
        least = LEAST * self.problem.available
        chosen = [value for value in used if value not in self.values and self.problem.size[value] >= least]
        most = max(MOST_SETS, MOST_WORK // len(self.run))
        added = [self._add(value, most) for value in sorted(chosen, key=lambda value: -self.problem.size[value])]
        return any(added)

    def _add(self, value: int, most: int = MOST_SETS) -> bool:
        size, bit = self.problem.size[value], 1 << len(self.values)
        fits = self.taken + size <= self.problem.available
        if len(self.values) == MOST_VALUES or len(self.sets) + int(fits.sum()) > most:
            return False
        self.values.append(value)
        self.sets = np.concatenate([self.sets, self.sets[fits] | bit])
        self.taken = np.concatenate([self.taken, self.taken[fits] + size])
        return True


class _Passage:
    """The ways from set to set: dropping a value, making one again, the next first computation."""

    def __init__(self, problem: Problem, run: range, values: Sequence[int], sets: Ints) -> None:
        self.problem = problem
        self.sets = sets = np.sort(sets)
        self.run = run
        self.bit = {value: 1 << position for position, value in enumerate(values)}
        self.early = self._as_bits(value for value in values if problem.producer[value] < run.start)
        self.taken = np.zeros(len(sets), dtype=np.int64)
        for value, bit in self.bit.items():
            self.taken[sets & bit != 0] += problem.size[value]
        self.makers = makers = sorted({problem.producer[value] for value in values if not problem.pinned[problem.producer[value]]})
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
                found.append(way if least is None else replace(way, bytes=least.bytes))
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
        settled = np.empty((len(self.run), len(self.sets)))
        settled_peak = np.empty(settled.shape, dtype=np.int64)
        pass_through(*ways, limit, cost, peak, *scratch, settled, settled_peak)
        least = float(cost.min())
        if least == np.inf:
            return None
        last = int(np.flatnonzero((cost == least) & (peak == peak[cost == least].min()))[0])
        within = np.where(settled_peak <= peak[last], settled, np.inf)
        return Level(int(peak[last]), least, self._way_to(last, int(peak[last]), price, within))

    def _way_to(self, last: int, limit: int, price: NDArray[np.float64], settled: NDArray[np.float64]) -> tuple[int, ...]:
        """The operations of a cheapest way to a set at the end, found backwards."""
        way: list[int] = []
        at = last
        for step in reversed(range(len(self.run))):
            way.append(self.run[step])
            at = self._step_to(at, step, limit, settled[step])
            before = self._cost_before(step, limit, settled)
            path = self._settling(at, step, limit, price, settled[step], before)
            at = path[-1][0]
            way.extend(operation for _, operation in path if operation >= 0)
        return tuple(reversed(way))

    def _step_to(self, at: int, step: int, limit: int, settled: NDArray[np.float64]) -> int:
        """From which set the first computation of a step led to this one, at the least cost."""
        sources = np.flatnonzero((self.steps[step] == at) & (self.taken[at] + self.step_workspace[step] <= limit))
        return int(sources[np.argmin(settled[sources])])

    def _cost_before(self, step: int, limit: int, settled: NDArray[np.float64]) -> NDArray[np.float64]:
        """What it costs to have each set when the step before has been made, and nothing else yet."""
        if step == 0:
            return np.where((self.sets & ~self.early == 0) & (self.taken <= limit), 0.0, np.inf)
        cost = np.full(len(self.sets), np.inf)
        able = np.flatnonzero(self.steps[step - 1] >= 0)
        target = self.steps[step - 1, able]
        fits = self.taken[target] + self.step_workspace[step - 1] <= limit
        np.minimum.at(cost, target[fits], settled[step - 1, able[fits]])
        return cost

    def _settling(
        self, at: int, step: int, limit: int, price: NDArray[np.float64], settled: NDArray[np.float64], before: NDArray[np.float64]
    ) -> list[tuple[int, int]]:
        """Back from a set to one that was there before anything was made again or dropped: sets, and what was made again to leave them."""
        came: dict[int, tuple[int, int]] = {}
        waiting = [at]
        while (here := waiting.pop()) is not None and before[here] != settled[here]:
            for source, operation in self._sources(here, step, limit, price, settled):
                if source != at and source not in came:
                    came[source] = here, operation
                    waiting.append(source)
        path = [(here, -1)]
        while path[0][0] != at:
            to, operation = came[path[0][0]]
            path.insert(0, (to, operation))
        return path

    def _sources(self, at: int, step: int, limit: int, price: NDArray[np.float64], settled: NDArray[np.float64]) -> list[tuple[int, int]]:
        """Sets from which this one comes at its cost: by dropping a value (-1), or by an operation that is made again."""
        held = int(self.sets[at])
        found = [(held | bit, -1, 0.0) for bit in self.bit.values() if not held & bit]
        for number, operation in enumerate(self.makers):
            made = self._as_bits(self.problem.outputs[operation])
            if self.since[number] <= step and held & made == made and self.taken[at] + self.workspace[number] <= limit:
                found.append((held & ~made, operation, float(price[number])))
        sources: list[tuple[int, int]] = []
        for source, operation, cost in found:
            place = int(np.searchsorted(self.sets, source))
            there = place < len(self.sets) and int(self.sets[place]) == source
            if there and settled[place] + cost == settled[at] and (operation < 0 or self._can(source, operation)):
                sources.append((place, operation))
        return sources

    def _can(self, held: int, operation: int) -> bool:
        read = self._as_bits(self.problem.inputs[operation])
        return held & read == read

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
