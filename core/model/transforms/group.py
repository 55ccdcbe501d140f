"""Group consecutive operations and solve each group as one operation.

A real training graph consists mostly of runs of small steps: nine taps of one weight gradient, fourteen steps of the gradient of one batch
normalization. The values of such a run are used only within it, except for one large value and some small ones. If each run is one
operation, with the memory it needs internally as workspace, the problem is ten times smaller. Every schedule of the smaller problem, when
expanded, is a schedule of the original problem that costs the same and needs no more memory. The converse does not hold: the optimum of the
smaller problem may be worse, and its bounds do not hold for the original problem.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, replace

from ...params import PARAMS
from ..floors import feasibility_floor
from ..problem import Problem


def small_below(problem: Problem) -> float:
    """The size below which a value counts as small: a small part of the available memory, and all of them together take only a part of the
    difference between the budget and the smallest budget that could work."""
    slack = PARAMS.small_together * max(0, problem.budget - feasibility_floor(problem).bytes)
    together = 0
    for size in sorted(problem.size):
        together += size
        if size >= PARAMS.small * problem.available or together > slack:
            return float(size)
    return PARAMS.small * problem.available


@dataclass(frozen=True, slots=True, eq=False)
class Grouped:
    """A smaller problem, and for each of its operations the operations of the original problem that it stands for."""

    problem: Problem
    original: Problem
    members: tuple[range, ...]
    main: tuple[int, ...]
    """The member that represents the group, so that the group counts as recomputed when it is: the last, which makes the large value."""

    def expand(self, sequence: Sequence[int]) -> tuple[int, ...]:
        return tuple(member for group in sequence for member in self.members[group])

    def contract(self, sequence: Sequence[int]) -> tuple[int, ...]:
        """The nearest sequence of the smaller problem; recomputations of only a part of a group may be missing from it."""
        group_of = {main: group for group, main in enumerate(self.main)}
        return tuple(group_of[operation] for operation in sequence if operation in group_of)


def group_operations(problem: Problem, small: float) -> Grouped:
    """Group maximal runs from which other operations read at most one value of `small` bytes or more."""
    members: list[range] = []
    start = 0
    while start < problem.count:
        stop = _longest_group(problem, start, small)
        members.append(range(start, stop))
        start = stop
    return _contracted(problem, tuple(members))


def _longest_group(problem: Problem, start: int, small: float) -> int:
    """The end of the longest group that starts here. Pinned operations are not grouped, because they must run exactly once."""
    best = start + 1
    if problem.pinned[start]:
        return best
    pending: dict[int, int] = {}
    """Large values made so far that are still needed, with the number of readers still to come."""
    for stop in range(start + 1, min(problem.count, start + PARAMS.group_longest) + 1):
        operation = stop - 1
        reads = problem.inputs[operation]
        if problem.pinned[operation]:
            break
        for value in reads:
            if value in pending:
                pending[value] -= 1
                if not pending[value]:
                    del pending[value]
        for value in problem.outputs[operation]:
            if problem.size[value] >= small and (problem.consumers[value] or problem.kept[value]):
                pending[value] = len(problem.consumers[value]) + (1 if problem.kept[value] else 0)
        given = [value for value in pending if problem.producer[value] != operation]
        if not given and _connected(problem, start, stop) and _takes_little_more(problem, range(start, stop)):
            best = stop
    return best


def _takes_little_more(problem: Problem, run: range) -> bool:
    """True if a group needs hardly more memory than its members; otherwise good schedules would be lost."""
    exported = {value for operation in run for value in problem.outputs[operation] if not _only_within(problem, value, run)}
    outside = {value for operation in run for value in problem.inputs[operation] if problem.producer[value] < run.start}
    together = sum(problem.size[value] for value in outside | exported) + _workspace(problem, run, outside, exported)
    alone = max(problem.own_bytes(operation) for operation in run)
    return together <= max(PARAMS.group_harmless * problem.available, alone)


def _connected(problem: Problem, start: int, stop: int) -> bool:
    """True if every operation of the run except the last makes a value that another operation of the run reads."""
    return all(
        any(start <= reader < stop for value in problem.outputs[operation] for reader in problem.consumers[value])
        for operation in range(start, stop - 1)
    )


def _contracted(problem: Problem, runs: tuple[range, ...]) -> Grouped:
    group_of = [group for group, run in enumerate(runs) for _ in run]
    exported = [
        problem.kept[value] or any(group_of[reader] != group_of[producer] for reader in problem.consumers[value])
        for value, producer in enumerate(problem.producer)
    ]
    chosen = [value for value, out in enumerate(exported) if out]
    number = {value: position for position, value in enumerate(chosen)}
    read = [_read_from_outside(problem, run) for run in runs]
    inputs = [tuple(sorted(number[value] for value in values)) for values in read]
    outputs = [tuple(number[value] for operation in run for value in problem.outputs[operation] if exported[value]) for run in runs]
    consumers: list[list[int]] = [[] for _ in chosen]
    for group, values in enumerate(inputs):
        for value in values:
            consumers[value].append(group)
    main = [run.stop - 1 for run in runs]
    workspace = [
        _workspace(problem, run, outside, {chosen[value] for value in made}) for run, outside, made in zip(runs, read, outputs, strict=True)
    ]
    smaller = replace(
        problem,
        graph_operation=tuple(problem.graph_operation[operation] for operation in main),
        graph_value=tuple(problem.graph_value[value] for value in chosen),
        cost=tuple(sum(problem.cost[operation] for operation in run) for run in runs),
        workspace=tuple(workspace),
        pinned=tuple(any(problem.pinned[operation] for operation in run) for run in runs),
        backward=tuple(problem.backward[operation] for operation in main),
        inputs=tuple(inputs),
        outputs=tuple(outputs),
        size=tuple(problem.size[value] for value in chosen),
        producer=tuple(group_of[problem.producer[value]] for value in chosen),
        consumers=tuple(tuple(users) for users in consumers),
        kept=tuple(problem.kept[value] for value in chosen),
    )
    return Grouped(smaller, problem, runs, tuple(main))


def _read_from_outside(problem: Problem, order: Sequence[int]) -> set[int]:
    """Values that are read before one of the operations makes them."""
    made: set[int] = set()
    outside: set[int] = set()
    for operation in order:
        outside.update(value for value in problem.inputs[operation] if value not in made)
        made.update(problem.outputs[operation])
    return outside


def _workspace(problem: Problem, run: range, outside: Set[int], exported: Set[int]) -> int:
    """The memory of a group beyond its inputs and exported values. A group holds its inputs throughout, for later readers."""
    awaited = {*exported, *outside}
    beside = held = sum(problem.size[value] for value in awaited)
    most = 0
    for operation in reversed(run):
        read, made = problem.inputs[operation], problem.outputs[operation]
        there = {*read, *made} - awaited
        most = max(most, held + sum(problem.size[value] for value in there) + problem.workspace[operation])
        held += sum(problem.size[value] for value in read if value not in awaited)
        awaited.update(read)
        held -= sum(problem.size[value] for value in made if value in awaited)
        awaited.difference_update(made)
    return most - beside


def _only_within(problem: Problem, value: int, run: range) -> bool:
    return not problem.kept[value] and all(reader in run for reader in problem.consumers[value])
