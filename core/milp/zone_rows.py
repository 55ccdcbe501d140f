"""What a zone adds to the relaxation: it costs so much to pass, and at its worst moment large values leave only so much room."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ..problem import Problem
from ..zones import Zone
from .formulation import Scale
from .matrix import Matrix

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class ZoneColumns:
    """The columns of a zone."""

    zone: Zone
    outlay: int
    """What the zone costs beyond one recomputation of each operation before and after its worst moment, as a share of the last level."""
    levels: Ints
    """Whether each level but the first is paid for."""

    @property
    def all(self) -> list[int]:
        return [self.outlay, *self.levels.tolist()]


def zone_columns(zones: Mapping[int, Zone], used: int) -> dict[int, ZoneColumns]:
    """Number the columns of zones, from the first that is not used."""
    columns: dict[int, ZoneColumns] = {}
    for stage, zone in sorted(zones.items()):
        columns[stage] = ZoneColumns(zone, used, np.arange(used + 1, used + len(zone.levels)))
        used += len(zone.levels)
    return columns


def zone_makers(problem: Problem, zone: Zone) -> Ints:
    """The operations that make the large values of a zone."""
    return np.array(sorted({problem.producer[value] for value in zone.values}), dtype=np.int64)


def add_zone(
    matrix: Matrix,
    objective: Floats,
    problem: Problem,
    scale: Scale,
    columns: ZoneColumns,
    exempt: Bools,
    compute: tuple[Ints, Ints],
    carried: Ints,
) -> None:
    """Whatever is carried past the worst moment, but for large values and what comes of them, fits beside a level that is paid."""
    zone = columns.zone
    taken = np.array([level.bytes for level in zone.levels]) / scale.bytes_unit
    paid = np.array([level.cost for level in zone.levels]) / scale.cost_unit
    early = np.array(problem.producer) < zone.run.start
    chosen = np.flatnonzero((carried >= 0) & early & ~exempt)
    size = np.array(scale.size)[chosen]
    matrix.add_long(np.append(carried[chosen], columns.levels), np.append(-size, -np.diff(taken)), taken[0] - scale.available)
    makers = zone_makers(problem, zone)
    again = np.concatenate([stage[makers] for stage in compute])
    price = np.tile(np.array(scale.cost)[makers], len(compute))
    there = again >= 0
    matrix.add_long(
        np.concatenate([again[there], columns.levels, [columns.outlay]]), np.concatenate([price[there], -np.diff(paid), paid[-1:]]), paid[0]
    )
    objective[columns.outlay] = paid[-1]
    for lower, higher in pairwise(columns.levels.tolist()):
        matrix.add_long(np.array([lower, higher]), np.array([1.0, -1.0]), 0.0)


def worst_moment(problem: Problem, zone: Zone, sequence: Sequence[int], inside: Sequence[int]) -> tuple[int, int]:
    """The position inside a zone at which its large values take most, and how many bytes; the one before it if that is at its beginning."""
    taken = _taken(problem, zone, sequence, inside)
    return int(inside[0]) - 1 + int(np.argmax(taken)), max(taken)


def zone_start(zone: Zone, peak: int, spent: float) -> list[float]:
    """What the columns of a zone are in a schedule that takes so much at the worst moment and pays so much in the rows."""
    level = next((number for number, level in enumerate(zone.levels) if level.bytes <= peak), len(zone.levels) - 1)
    most = zone.levels[-1].cost
    outlay = max(0.0, zone.levels[level].cost - spent) / most if most else 0.0
    return [outlay, *(float(number <= level) for number in range(1, len(zone.levels)))]


def _taken(problem: Problem, zone: Zone, sequence: Sequence[int], inside: Sequence[int]) -> list[int]:
    """Bytes of large values right before a zone and at each position in it."""
    awaited = {value for value in zone.values if problem.kept[value]}
    first, last = inside[0], inside[-1]
    taken: list[int] = []
    for position in reversed(range(first, len(sequence))):
        operation = sequence[position]
        read, made = zone.values.intersection(problem.inputs[operation]), zone.values.intersection(problem.outputs[operation])
        if position <= last:
            taken.append(sum(problem.size[value] for value in awaited | read | made) + problem.workspace[operation])
        awaited = (awaited - made) | read
    taken.append(sum(problem.size[value] for value in awaited))
    return taken[::-1]
