"""Where zones should be: around operations in a row that take much of the memory for themselves.

What counts as much is not known beforehand, so several shares are tried, and the linear program of each says how good it is. A zone that
goes on to the end of the order needs no opinion on what is left behind it, and zones that are near one another depend on each other: so
they are tried as one, up to the end, and apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ..milp.relaxation import Relaxation
from ..milp.stages import closing_run
from ..model.problem import Problem
from ..zones.labels import Way, Zone, find_zone, real_ways
from .cutting import own_memory

SHARES = (0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3)
"""Shares of the available memory that are much for an operation to take, the largest first."""
NEAR = 10
FAR = 100
"""Operations that take much belong to one zone if they are no farther apart than the first, and may if no farther than the second."""
LARGE = 0.2
"""A zone begins with what makes a value of this share of the memory right before it."""
LITTLE = 0.02
"""A real way may take this share of the memory more than a way for which only large values count."""


@dataclass(frozen=True, slots=True, eq=False)
class Zoning:
    """Zones, and ends of stages outside of them."""

    zones: tuple[Zone, ...] = ()
    ends: frozenset[int] = frozenset()

    def runs(self, problem: Problem) -> tuple[tuple[range, ...], dict[int, Zone]]:
        """The stages, and which of them are zones: each is followed by a stage without first computations."""
        edges = {edge for zone in self.zones for edge in (zone.run.start, zone.run.stop)}
        outside = {end for end in self.ends if not any(zone.run.start < end < zone.run.stop for zone in self.zones)}
        zone_at = {zone.run.start: zone for zone in self.zones}
        runs: list[range] = []
        zones: dict[int, Zone] = {}
        for start, stop in pairwise(sorted({0, problem.count} | edges | outside)):
            if start in zone_at:
                zones[len(runs)] = zone_at[start]
                runs.append(range(start, stop))
                start = stop
            runs.append(range(start, stop))
        return (*runs, *closing_run(problem)), zones

    @property
    def worth(self) -> float:
        """What it costs to pass all zones at their dearest levels, each on the cheapest way."""
        return sum(max(zone.cheapest_of_each_level, default=0.0) for zone in self.zones)

    def covers(self, operation: int) -> bool:
        """Is the first computation of this operation in a zone?"""
        return any(operation in zone.run for zone in self.zones)

    def with_ends(self, ends: Set[int]) -> Zoning:
        return Zoning(self.zones, self.ends | ends)


def zonings(problem: Problem, most_stages: int) -> Iterator[Zoning]:
    """Zones for every share that gives any, and no more than so many stages: first those that are one up to the end, then those apart."""
    known: dict[range, Zone | None] = {}
    yielded: set[tuple[Zone, ...]] = set()
    for runs in _choices(problem):
        if 2 * len(runs) > most_stages:
            continue
        for run in runs:
            if run not in known:
                known[run] = _worth_it(find_zone(problem, run)) if len(run) > 1 else None
        zones = tuple(zone for run in runs if (zone := known[run]) is not None)
        ends = frozenset(end for run in runs if known[run] is None for end in (run.start + 1, run.stop) if end < problem.count)
        if zones and zones not in yielded:
            yielded.add(zones)
            yield Zoning(zones, ends)


def _choices(problem: Problem) -> list[tuple[range, ...]]:
    """Where zones could be, all different."""
    own = own_memory(problem)
    narrow = [np.flatnonzero(own >= share).tolist() for share in SHARES]
    together = [_to_the_end(problem, _neighbours(problem, operations, FAR)) for operations in narrow]
    apart = [_neighbours(problem, operations, NEAR) for operations in narrow]
    others = [runs for each in apart for runs in (_to_the_end(problem, each), each)]
    return list(dict.fromkeys(runs for runs in (*together, *others) if runs))


def _worth_it(zone: Zone | None) -> Zone | None:
    """A zone through which there is a way for nothing, whatever the memory, says nothing."""
    free = zone is not None and zone.levels == 1 and any(way.cost <= 0.0 for way in zone.ways)
    return None if free else zone


def _neighbours(problem: Problem, operations: Sequence[int], near: int) -> tuple[range, ...]:
    """Runs of operations from the first to the last of those that are near one another."""
    runs: list[range] = []
    begin = 0
    for position, operation in enumerate(operations):
        if position + 1 == len(operations) or operations[position + 1] - operation > near:
            runs.append(range(_with_makers(problem, operations[begin]), operation + 1))
            begin = position + 1
    return tuple(runs)


def _to_the_end(problem: Problem, runs: tuple[range, ...]) -> tuple[range, ...]:
    """The same, but what is near the end goes on to the end."""
    if not runs or problem.count - runs[-1].stop > FAR:
        return runs
    return (*runs[:-1], range(runs[-1].start, problem.count))


def _with_makers(problem: Problem, start: int) -> int:
    """Where what makes large values for an operation begins, if it comes right before it."""
    large = LARGE * problem.available
    while start > 0 and any(
        problem.size[value] >= large and start in problem.consumers[value] and not problem.inputs[start - 1]
        for value in problem.outputs[start - 1]
    ):
        start -= 1
    return start


@dataclass(frozen=True, slots=True)
class Passage:
    """Real ways through zones like those that a solution of a relaxation goes, and what else it recomputes."""

    ways: Mapping[range, tuple[int, ...]]
    again: frozenset[int]


def real_passage(problem: Problem, relaxation: Relaxation, values: NDArray[np.float64]) -> Passage | None:
    """None if it recomputes nothing in zones."""
    ways = {}
    for stage, columns in relaxation.zones.items():
        real = _like(problem, columns.zone, relaxation.way(stage, values))
        if real is not None and len(real.operations) > len(columns.zone.run):
            ways[columns.zone.run] = real.operations
    recomputed = np.append(values, 0.0)[relaxation.compute].sum(axis=0)
    return Passage(ways, frozenset(np.flatnonzero(recomputed > 0.5).tolist())) if ways else None


def _like(problem: Problem, zone: Zone, way: Way) -> Way | None:
    """The cheapest real way that takes hardly more, or the one that takes least."""
    real = real_ways(problem, zone, way)
    most = way.bytes + LITTLE * problem.available
    return next((other for other in real if other.bytes <= most), real[-1] if real else None)
