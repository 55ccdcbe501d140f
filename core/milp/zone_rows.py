"""What a zone adds to the relaxation: a schedule goes one of its ways, which costs so much, begins with what it needs, and leaves only so
much room at its worst moment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..model.problem import Problem
from ..zones.labels import Zone
from .matrix import Matrix
from .scale import Scale

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class ZoneColumns:
    """The columns of a zone."""

    zone: Zone
    outlay: int
    """What the zone costs beyond one recomputation of each operation before and after its worst moment, as a share of its dearest way."""
    ways: Ints
    """Which way is gone."""

    def level(self, values: Floats) -> Floats:
        """How much of each level a solution goes."""
        gone = np.zeros(self.zone.levels)
        np.add.at(gone, [way.level for way in self.zone.ways], values[self.ways])
        return gone

    def closed(self, levels: Set[int]) -> Ints:
        """The columns of ways of these levels."""
        return self.ways[[way.level in levels for way in self.zone.ways]]


def zone_columns(zones: Mapping[int, Zone], used: int) -> dict[int, ZoneColumns]:
    """Number the columns of zones, from the first that is not used."""
    columns: dict[int, ZoneColumns] = {}
    for stage, zone in sorted(zones.items()):
        columns[stage] = ZoneColumns(zone, used, np.arange(used + 1, used + 1 + len(zone.ways)))
        used += 1 + len(zone.ways)
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
    counted: Bools,
    begins: Ints,
    carried: Ints,
) -> None:
    """One way is gone: it begins with what was carried into the zone, its cost is paid, and whatever is carried past its worst moment, but
    for large values and what comes of them, fits beside it. What takes memory but has no column is never carried so far."""
    zone = columns.zone
    taken = np.array([way.bytes for way in zone.ways]) / scale.bytes_unit
    price = np.array([way.cost for way in zone.ways]) / scale.cost_unit
    early = np.array(problem.producer) < zone.run.start
    matrix.add_long(columns.ways, np.ones(len(columns.ways)), 1.0)
    chosen = np.flatnonzero((carried >= 0) & early & ~exempt)
    if len(chosen):
        size = np.array(scale.size)[chosen]
        matrix.add_long(np.append(carried[chosen], columns.ways), np.append(-size, -taken), -scale.available)
    for value in sorted(zone.values):
        needing = columns.ways[[value in way.needed for way in zone.ways]]
        if len(needing) and counted[value]:
            begun_with = begins[[value]] if begins[value] >= 0 else begins[:0]
            matrix.add_long(np.append(needing, begun_with), np.append(-np.ones(len(needing)), np.ones(len(begun_with))), 0.0)
    makers = zone_makers(problem, zone)
    again = np.concatenate([stage[makers] for stage in compute])
    worth = np.tile(np.array(scale.cost)[makers], len(compute))
    there = again >= 0
    dearest = price.max(initial=0.0)
    matrix.add_long(np.concatenate([again[there], columns.ways, [columns.outlay]]), np.concatenate([worth[there], -price, [dearest]]), 0.0)
    objective[columns.outlay] = dearest


def worst_moment(problem: Problem, zone: Zone, sequence: Sequence[int], inside: Sequence[int]) -> tuple[int, int]:
    """The position inside a zone at which its large values take most, and how many bytes; the one before it if that is at its beginning."""
    taken = _taken(problem, zone, sequence, inside)
    return int(inside[0]) - 1 + int(np.argmax(taken)), max(taken)


def zone_start(zone: Zone, begun_with: Set[int], peak: int, spent: float) -> list[float]:
    """What the columns of a zone are in a schedule that begins it with these values, takes so much at the worst moment and pays so much in
    the rows."""
    open_ways = [number for number, way in enumerate(zone.ways) if way.needed <= begun_with and way.bytes <= peak]
    gone = min(open_ways, key=lambda number: zone.ways[number].cost)
    dearest = max(way.cost for way in zone.ways)
    outlay = max(0.0, zone.ways[gone].cost - spent) / dearest if dearest else 0.0
    return [outlay, *(float(number == gone) for number in range(len(zone.ways)))]


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
