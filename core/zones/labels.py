"""Zones: a few first computations in a row during which large values leave little room, however often they are made again.

A relaxation that looks at memory when stages end lets several large values be recomputed in one stage as if they took turns at will. Where
only a few large values fit at once, whether they can take turns is a question of its own, and a small one: go back from the end of the zone
through all sets of large values that may be needed (everything smaller taken to be there for nothing), and find the cheapest way through
for every set that it may begin with, and the least memory it takes at its worst moment. Of every schedule it then holds that the zone costs
it at least that, and that at some moment within the zone so much memory is taken by large values that only the rest is left for whatever
else is carried past that moment.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ..jit.tables import Table, filled
from ..model.problem import Problem
from .label_kernels import MOST_VALUES, OPERATION, SETTLED, new_passage, pass_backwards

MOST_NODES = (20_000, 300_000)
EFFORT = 800_000
"""Sets that are gone through at once, those of each first computation counted apart: few where that does, and no more than would take too
long. And in all, until what is told apart is found."""
LARGE = (0.2, 0.1, 0.05)
LEAST = 0.01
"""What is large, as a share of the memory there is: first the larger, then the smaller; and the least that is told apart if it is used."""
ROUNDS = 12
HARDLY = 1e-3
"""How often it is asked what is used; not any more when real ways cost and take hardly more, as shares of all work and all memory. What
costs hardly more is no level of its own."""
LEVELS = 4
PASSES = 10
"""How many levels of memory are told apart, and how often it is asked what it costs to take less."""
MOST_WAYS = 100
"""Ways of a level: if there are more, fewer of the values they begin with are told apart."""
UNITS = 10**15
"""Costs are compared as whole numbers of this part of all work done once: sums of them do not depend on their order."""
MOST_COST = 2**62
DEAREST = 1.0
MARGIN = 0.02
WIDE_MARGIN = 0.04
"""Ways that cost more than the first share of all work done once are not told apart if there are too many, nor those that cost that share
more than the cheapest of their level: the smaller one while it is asked what is worth tracking."""
STEP = 1.3
"""Where nothing passes, dearer ways are asked for by this factor."""


@dataclass(frozen=True, slots=True)
class Way:
    """Who begins with no large values but these and does not take more than the level allows pays so much or more."""

    needed: frozenset[int]
    level: int
    bytes: int
    """Taken at the worst moment, or more."""
    cost: float
    operations: tuple[int, ...]
    """The operations of a way that costs this, first computations among them; empty if only the cost is known."""


@dataclass(frozen=True, slots=True, eq=False)
class Zone:
    """First computations in a row, the large values on which they depend, and the ways to pass."""

    run: range
    values: frozenset[int]
    ways: tuple[Way, ...]
    """Every schedule goes one of these, or a worse one: it has at the beginning what the way needs, takes as much, and costs as much. If
    there are none, there is no schedule."""

    @property
    def levels(self) -> int:
        """Each takes less memory than the one before it, or costs more than is told apart."""
        return 1 + max((way.level for way in self.ways), default=-1)

    @property
    def cheapest_of_each_level(self) -> list[float]:
        """What it costs to pass at every level at least, where a way is known."""
        return [way.cost for way in _cheapest_of_each_level(self.ways)]


def find_zone(problem: Problem, run: range) -> Zone | None:
    """The zone of these first computations; none if they know no large values, or there are too many sets of them.

    First only the largest values are tracked. A way that uses others as if they were there for nothing says which are worth it too.
    """
    tracked: list[int] = []
    found: list[Way] | None = None
    effort = _Effort(EFFORT)
    for share in LARGE:
        wider = _all_large(problem, run, share * problem.available)
        if wider != tracked and (ways := _ways(problem, run, wider, found or (), MARGIN, effort)) is not None:
            tracked, found = wider, ways
    if found is None:
        return None
    most = MOST_VALUES
    for _ in range(ROUNDS):
        used = [] if _is_real(problem, run, tracked, found) else _used(problem, run, tracked, found)[:most]
        while used and (ways := _ways(problem, run, [*tracked, *used], found, MARGIN, effort)) is None:
            most = len(used) // 2
            used = used[:most]
        if not used or ways is None:
            break
        tracked, found = [*tracked, *used], ways
    found = _ways(problem, run, tracked, found, WIDE_MARGIN, _Effort(EFFORT)) or found
    return Zone(run, frozenset(tracked), tuple(_fewer(problem, found)))


def _fewer(problem: Problem, ways: Sequence[Way]) -> list[Way]:
    """Not too many ways at any level: what the smallest of the values are needed for is given for nothing, until there are few enough."""
    chosen: list[Way] = []
    for level in sorted({way.level for way in ways}):
        left = _best_of_each([way for way in ways if way.level == level])
        values = sorted({value for way in left for value in way.needed}, key=lambda value: -problem.size[value])
        while len(left) > MOST_WAYS and values:
            given = {values.pop()}
            left = _best_of_each([replace(way, needed=way.needed - given) for way in left])
        chosen.extend(left)
    return chosen


def _best_of_each(ways: Sequence[Way]) -> list[Way]:
    """The cheapest for all that is needed, without those that are no cheaper with one value more."""
    cheapest: dict[frozenset[int], Way] = {}
    for way in sorted(ways, key=lambda way: way.cost):
        cheapest.setdefault(way.needed, way)
    return [
        way
        for needed, way in cheapest.items()
        if not any((other := cheapest.get(needed - {value})) is not None and other.cost <= way.cost for value in needed)
    ]


def _is_real(problem: Problem, run: range, tracked: Sequence[int], ways: Sequence[Way]) -> bool:
    """Is there for the cheapest way of every level one that takes and costs hardly more, everything counted?"""
    zone = Zone(run, frozenset(tracked), tuple(ways))
    return all(
        any(
            real.cost <= way.cost + HARDLY * problem.ideal_cost and real.bytes <= way.bytes + HARDLY * problem.available
            for real in real_ways(problem, zone, way)
        )
        for way in _cheapest_of_each_level(ways)
    )


def real_ways(problem: Problem, zone: Zone, way: Way) -> list[Way]:
    """Ways like this one for which nearly everything that takes memory counts: the cheapest of every level, cheaper ones first.

    They make nothing again that this one does not, and leave behind all that is read later, so there may be cheaper ones; nothing is
    proven of them.
    """
    again = set(_made_again(way.operations, zone.run))
    there = {value for operation in (*zone.run, *again) for value in (*problem.inputs[operation], *problem.outputs[operation])}
    tracked = sorted(there, key=lambda value: (-problem.size[value], value))[:MOST_VALUES]
    made = [value for operation in zone.run for value in problem.outputs[operation]]
    left = [value for value in made if problem.kept[value] or any(reader >= zone.run.stop for reader in problem.consumers[value])]
    ways = _ways(problem, zone.run, tracked, (way,), MARGIN, _Effort(EFFORT), again, left) or []
    return _cheapest_of_each_level([other for other in ways if other.needed & zone.values <= way.needed] or ways)


def _cheapest_of_each_level(ways: Sequence[Way]) -> list[Way]:
    """Those that are known to the end."""
    known = [way for way in ways if way.operations]
    levels = sorted({way.level for way in known})
    return [min((way for way in known if way.level == level), key=lambda way: way.cost) for level in levels]


def _all_large(problem: Problem, run: range, large: float) -> list[int]:
    """All values of this size that the run reads or makes, and those they are made of, the nearest first."""
    found: dict[int, None] = {}
    waiting = [value for operation in run for value in (*problem.inputs[operation], *problem.outputs[operation])]
    for value in waiting:
        if value in found or problem.size[value] < large:
            continue
        found[value] = None
        maker = problem.producer[value]
        if not problem.pinned[maker]:
            waiting.extend(problem.inputs[maker])
    return list(found)


def _used(problem: Problem, run: range, tracked: Sequence[int], ways: Sequence[Way]) -> list[int]:
    """What the cheapest ways use as if it were there for nothing, the largest first: what is read when something is made again; if there is
    nothing of the kind, what is held at the worst moment of a way that really takes more than it should."""
    cheapest = _cheapest_of_each_level(ways)
    read = {value for way in cheapest for operation in _made_again(way.operations, run) for value in problem.inputs[operation]}
    held = {value for way in cheapest for value in _held_at_worst(problem, way)}
    least = LEAST * problem.available
    for used in (read, held):
        chosen = [value for value in used if value not in tracked and problem.size[value] >= least]
        if chosen:
            return sorted(chosen, key=lambda value: (-problem.size[value], value))
    return []


def _held_at_worst(problem: Problem, way: Way) -> set[int]:
    """What is in memory beside what is just read and made when a way takes most, everything counted; if that is more than it should."""
    awaited: set[int] = set()
    worst = way.bytes
    held: set[int] = set()
    for operation in reversed(way.operations):
        now = {*problem.inputs[operation], *problem.outputs[operation]}
        taken = sum(problem.size[value] for value in awaited | now) + problem.workspace[operation]
        if taken > worst:
            worst, held = taken, awaited - now
        awaited = awaited.difference(problem.outputs[operation]).union(problem.inputs[operation])
    return held


def _made_again(operations: Sequence[int], run: range) -> Iterator[int]:
    made = set(run)
    for operation in operations:
        if operation in made:
            made.remove(operation)
        else:
            yield operation


def _ways(
    problem: Problem,
    run: range,
    values: Sequence[int],
    known: Sequence[Way],
    margin: float,
    effort: _Effort,
    again: Set[int] | None = None,
    left: Iterable[int] = (),
) -> list[Way] | None:
    """All ways that are worth it, at ever less memory; none if there are too many values or sets of them.

    Whoever takes less than the cheapest way of a level is of a later one, so all ways of a level count as taking what the cheapest does; or
    what one does that is hardly dearer.
    What is known of fewer values says what ways cost at least. What may be made again can be limited, and what is left behind in memory be
    asked for; that proves nothing.
    """
    if len(values) > MOST_VALUES:
        return None
    passage = _Passage(problem, run, values, effort, again, left)
    step = HARDLY * problem.ideal_cost if again is None else 0.0
    ways: list[Way] = []
    level, cost = -1, -np.inf
    limit = problem.available
    for number in range(PASSES):
        floor = min((way.cost for way in known if way.bytes <= limit and way.operations), default=0.0)
        found, dearest = passage.ways(limit, floor / (problem.ideal_cost or 1.0), margin)
        if found is None:
            return None
        cheapest = min(found, key=lambda each: (each.cost, each.peak), default=_NONE)
        is_new = cheapest.cost > cost + step
        is_last = number == PASSES - 1 or level + is_new == LEVELS - 1
        least = passage.least if found and is_last else cheapest.peak
        if is_new:
            level, cost = level + 1, cheapest.cost
            ways.extend(Way(each.needed, level, least, each.cost, each.operations) for each in found)
            if dearest < np.inf:
                ways.append(Way(frozenset(), level, least, dearest * problem.ideal_cost, ()))
        else:
            ways = [replace(way, bytes=least) if way.level == level else way for way in ways]
        if is_last or not found:
            break
        limit = least - 1
    return ways


@dataclass(slots=True)
class _Effort:
    """How many sets may still be gone through."""

    left: int


class _Found(NamedTuple):
    """A way within a limit."""

    needed: frozenset[int]
    peak: int
    cost: float
    operations: tuple[int, ...]


_NONE = _Found(frozenset(), 0, float("inf"), ())


class _Passage:
    """The operations of a zone in terms of the values that are tracked."""

    def __init__(
        self, problem: Problem, run: range, values: Sequence[int], effort: _Effort, again: Set[int] | None, left: Iterable[int]
    ) -> None:
        self.problem = problem
        self.effort = effort
        self.run = run
        self.values = values
        self.bit = {value: 1 << position for position, value in enumerate(values)}
        makers = {problem.producer[value] for value in values if not problem.pinned[problem.producer[value]]}
        self.makers = sorted(makers if again is None else makers & again)
        self.left = self._as_bits(left)
        self.groups = self._groups()
        step_of = {operation: step for step, group in enumerate(self.groups) for operation in group}
        self.steps = self._table([group[0] for group in self.groups], step_of)
        self.again = self._table(self.makers, step_of)
        self.sizes = np.array([problem.size[value] for value in values], dtype=np.int64)

    def _groups(self) -> list[list[int]]:
        """First computations that are one step: what makes nothing that is tracked, and reads no more of it than the one before has in
        memory anyway, is best computed right after that."""
        groups: list[list[int]] = []
        there = 0
        for operation in self.run:
            reads, makes = self._as_bits(self.problem.inputs[operation]), self._as_bits(self.problem.outputs[operation])
            if groups and not makes and not reads & ~there:
                groups[-1].append(operation)
                continue
            groups.append([operation])
            there = reads | makes
        return groups

    @property
    def least(self) -> int:
        """What some first computation takes in any case."""
        return max(
            sum(self.problem.size[value] for value in {*self.problem.inputs[operation], *self.problem.outputs[operation]} & self.bit.keys())
            + self.problem.workspace[operation]
            for operation in self.run
        )

    def ways(self, limit: int, cheapest: float, margin: float) -> tuple[list[_Found] | None, float]:
        """The ways within a limit, none if there are too many; and what those cost that are not among them, at least.

        Costs are shares of all work done once; no way is cheaper than the cheapest.
        """
        dearest, none_below = cheapest + margin, 0.0
        while True:
            found = self._ways_up_to(dearest, limit)
            if found is None:
                return (found, 0.0) if none_below < DEAREST else ([], none_below)
            if dearest == np.inf or (found and min(each.cost for each in found) <= (dearest - margin / 2) * self.problem.ideal_cost):
                return found, dearest
            if not found:
                none_below = dearest
            dearest = dearest + margin / 2 if found else np.inf if dearest >= DEAREST else STEP * dearest

    def _ways_up_to(self, dearest: float, limit: int) -> list[_Found] | None:
        for most in (most for most in MOST_NODES if most <= self.effort.left):
            passage = new_passage(self.again, self.steps, self.sizes, most)
            pass_backwards(passage, self.left, len(self.values), limit, MOST_COST if dearest == np.inf else int(dearest * UNITS))
            totals = passage.totals[0]
            self.effort.left -= int(totals["nodes"])
            if not totals["full"]:
                break
        else:
            return None
        nodes = passage.nodes[: int(totals["nodes"])]
        first = int(totals["first"])
        begins = first + np.flatnonzero((nodes["step"][first:] == 0) & (nodes["state"][first:] == SETTLED))
        links = [nodes[name].tolist() for name in ("then", "operation", "step")]
        found = []
        for node in begins.tolist():
            operations = self._follow(node, *links)
            cost = sum(self.problem.cost[operation] for operation in _made_again(operations, self.run))
            found.append(_Found(self._as_values(int(nodes["needed"][node])), int(nodes["peak"][node]), cost, operations))
        return found

    def _follow(self, node: int, then: Sequence[int], operation: Sequence[int], step: Sequence[int]) -> tuple[int, ...]:
        way: list[int] = []
        while (following := then[node]) >= 0:
            is_first = step[following] > step[node]
            way.extend(self.groups[operation[node]] if is_first else (self.makers[operation[node]],))
            node = following
        return tuple(way)

    def _table(self, operations: Sequence[int], step_of: Mapping[int, int]) -> Table:
        problem = self.problem
        unit = problem.ideal_cost / UNITS or 1.0
        return filled(
            OPERATION,
            len(operations),
            reads=[self._as_bits(problem.inputs[operation]) for operation in operations],
            makes=[self._as_bits(problem.outputs[operation]) for operation in operations],
            workspace=[problem.workspace[operation] for operation in operations],
            price=[int(problem.cost[operation] / unit) for operation in operations],
            since=[step_of.get(operation, -1) + 1 for operation in operations],
        )

    def _as_bits(self, values: Iterable[int]) -> int:
        return sum(self.bit.get(value, 0) for value in values)

    def _as_values(self, bits: int) -> frozenset[int]:
        return frozenset(value for value, bit in self.bit.items() if bits & bit)
