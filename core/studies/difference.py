"""The differences between two schedules of one graph: recomputations, order, and values in memory."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass
from itertools import groupby

from .examine import Examined


@dataclass(frozen=True, slots=True)
class Repeats:
    """How often an operation is recomputed in the first schedule and in the second."""

    operation: int
    before: int
    after: int
    cost: float
    """What the difference costs, with the first schedule's costs; negative if the second recomputes it less often."""


@dataclass(frozen=True, slots=True)
class MemoryChange:
    """Memory at the first computation of an operation, in both schedules."""

    operation: int
    before: int
    after: int
    gone: tuple[int, ...]
    """Values in memory there in the first schedule only, largest first."""
    new: tuple[int, ...]
    """Values in memory there in the second only."""

    @property
    def change(self) -> int:
        return self.after - self.before


@dataclass(frozen=True, slots=True)
class Difference:
    """All differences. If everything is empty, both schedules compute the same in the same order."""

    repeats: tuple[Repeats, ...]
    """Sorted by the effect on cost, largest first."""
    moved: tuple[int, ...]
    """A smallest set of operations to move so that the two orders of first computations become equal."""
    memory: tuple[MemoryChange, ...]
    """Where memory differs most, largest difference first."""
    same_steps: bool


def difference(first: Examined, second: Examined, *, places: int = 5) -> Difference:
    """Compare two schedules of the same graph."""
    return Difference(
        repeats=_repeats(first, second),
        moved=_moved(first, second),
        memory=_memory(first, second, places),
        same_steps=first.schedule.steps == second.schedule.steps,
    )


def _repeats(first: Examined, second: Examined) -> tuple[Repeats, ...]:
    before, after = Counter(first.computations), Counter(second.computations)
    amounts = first.problem.costs.amounts
    found = [
        Repeats(index, before[index] - 1, after[index] - 1, (after[index] - before[index]) * amounts[index])
        for index, operation in enumerate(first.graph.operations)
        if before[index] != after[index] and not operation.view
    ]
    return tuple(sorted(found, key=lambda entry: (-abs(entry.cost), entry.operation)))


def _moved(first: Examined, second: Examined) -> tuple[int, ...]:
    """The operations outside a longest common subsequence of the orders; for permutations, a longest increasing subsequence."""
    places = {operation: place for place, operation in enumerate(_order(second))}
    order = _order(first)
    ends: list[int] = []
    """For each length, the smallest position that an increasing subsequence of this length can end with."""
    lengths: list[int] = []
    for operation in order:
        length = bisect_left(ends, places[operation])
        ends[length : length + 1] = [places[operation]]
        lengths.append(length)
    stay: set[int] = set()
    wanted, limit = len(ends) - 1, len(order)
    for operation, length in zip(reversed(order), reversed(lengths), strict=True):
        if length == wanted and places[operation] < limit:
            stay.add(operation)
            wanted, limit = wanted - 1, places[operation]
    return tuple(operation for operation in order if operation not in stay)


def _order(examined: Examined) -> list[int]:
    """First computations in their order, without views."""
    operations = examined.graph.operations
    return [operation for operation in dict.fromkeys(examined.computations) if not operations[operation].view]


def _memory(first: Examined, second: Examined, places: int) -> tuple[MemoryChange, ...]:
    starts = [_first_computations(examined) for examined in (first, second)]
    moments = [
        (operation, first.simulation.memory[starts[0][operation]], second.simulation.memory[starts[1][operation]])
        for operation in _order(first)
    ]
    changes: list[MemoryChange] = []
    for operation, before, after in _apart(moments, places):
        there, here = _alive(first, starts[0][operation]), _alive(second, starts[1][operation])
        changes.append(MemoryChange(operation, before, after, _only(first, there, here), _only(first, here, there)))
    return tuple(changes)


def _apart(moments: list[tuple[int, int, int]], places: int) -> list[tuple[int, int, int]]:
    """The largest differences, at most one from each stretch in which the same schedule needs more memory."""
    stretches = (list(stretch) for sign, stretch in groupby(moments, key=lambda moment: _sign(moment[2] - moment[1])) if sign)
    peaks = [max(stretch, key=lambda moment: abs(moment[2] - moment[1])) for stretch in stretches]
    return sorted(peaks, key=lambda moment: -abs(moment[2] - moment[1]))[:places]


def _sign(number: int) -> int:
    return (number > 0) - (number < 0)


def _first_computations(examined: Examined) -> dict[int, int]:
    starts: dict[int, int] = {}
    for position, operation in enumerate(examined.computations):
        starts.setdefault(operation, position)
    return starts


def _alive(examined: Examined, now: int) -> set[int]:
    return {stay.value for stay in examined.simulation.stays if stay.first <= now < stay.end}


def _only(examined: Examined, one: set[int], other: set[int]) -> tuple[int, ...]:
    values = examined.graph.values
    return tuple(sorted(one - other, key=lambda value: (-values[value].bytes, value)))
