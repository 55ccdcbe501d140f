"""What tells two schedules of one graph apart: what is made again, the order, and what is in memory when."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass
from itertools import groupby

from .examine import Examined


@dataclass(frozen=True, slots=True)
class Repeats:
    """How often an operation runs beyond the first time, in the first schedule and in the second."""

    operation: int
    before: int
    after: int
    cost: float
    """What the difference costs, by the first schedule's costs; less than nothing if the second runs it less often."""


@dataclass(frozen=True, slots=True)
class MemoryChange:
    """Memory while an operation runs for the first time in each of the schedules."""

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
    """All that differs. Where everything is empty the two compute the same, in the same order."""

    repeats: tuple[Repeats, ...]
    """What matters most for the cost first."""
    moved: tuple[int, ...]
    """As few operations as can be moved to make one order of first computations of the other."""
    memory: tuple[MemoryChange, ...]
    """Where memory differs most, the largest difference first."""
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
    """What is not in a longest common subsequence of the two orders: for permutations, a longest increasing run of places."""
    places = {operation: place for place, operation in enumerate(_order(second))}
    order = _order(first)
    ends: list[int] = []
    """The smallest place a run of each length can end with."""
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
    """First computations in their order; views come along with what they are views of and do not count."""
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
    """The largest differences, one of each stretch in which the same schedule takes more: what lasts a while is told once."""
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
