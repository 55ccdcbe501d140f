"""Where zones should be: around operations in a row that take much of the memory for themselves.

What counts as much is not known beforehand, so several shares are tried, and the linear program of each says how good it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ..milp.runs import closing_run
from ..problem import Problem
from ..zones import Zone, find_zone
from .cutting import own_memory

SHARES = (0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3)
"""Shares of the available memory that are much for an operation to take, the largest first."""
NEAR = 10
"""Operations that take much belong to one zone if they are no farther apart than this."""


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

    def covers(self, operation: int) -> bool:
        """Is the first computation of this operation in a zone?"""
        return any(operation in zone.run for zone in self.zones)

    def with_ends(self, ends: Set[int]) -> Zoning:
        return Zoning(self.zones, self.ends | ends)


def zonings(problem: Problem, most_stages: int) -> Iterator[Zoning]:
    """Zones for every share that gives any, and no more than so many stages."""
    own = own_memory(problem)
    seen: set[tuple[range, ...]] = set()
    for share in SHARES:
        wide = tuple(_neighbours(np.flatnonzero(own >= share).tolist()))
        if wide in seen or 2 * len(wide) > most_stages:
            continue
        seen.add(wide)
        found = [(run, find_zone(problem, run) if len(run) > 1 else None) for run in wide]
        zones = tuple(zone for _, zone in found if zone is not None)
        ends = frozenset(end for run, zone in found if zone is None for end in (run.start + 1, run.stop) if end < problem.count)
        if zones:
            yield Zoning(zones, ends)


def _neighbours(operations: list[int]) -> Iterator[range]:
    """Runs of operations from the first to the last of those that are near one another."""
    begin = 0
    for position, operation in enumerate(operations):
        if position + 1 == len(operations) or operations[position + 1] - operation > NEAR:
            yield range(operations[begin], operation + 1)
            begin = position + 1
