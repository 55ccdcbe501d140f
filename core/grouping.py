"""Operations that belong together, solved as one.

A real training graph is mostly small steps one after the other: nine taps of one weight gradient, fourteen steps of the gradient of one
batch normalization. What such a run makes is used within it, but for one large value and some small ones. Solved as one operation, with
what it takes within itself as workspace, it is a tenth of the problem. Every schedule of the smaller problem, expanded, is one of the real
problem that costs the same and takes no more; some of the real ones are not there, so its optimum is none, and bounds must come from the
real problem.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, replace

from .problem import Problem, feasibility_floor

LONGEST_GROUP = 48
HARMLESS = 0.4
"""A group may take this share of the available memory, or a little more than the member that takes most."""
LITTLE = 1.02


SMALL = 3e-4
SMALL_TOGETHER = 0.3
"""Values are small below the first share of the available memory, as long as all of them together take less than the second share of
what the budget leaves above the least that could do."""


def small_below(problem: Problem, together_at_most: float = SMALL_TOGETHER) -> float:
    """Bytes below which a value hardly matters."""
    slack = together_at_most * max(0, problem.budget - feasibility_floor(problem).bytes)
    together = 0
    for size in sorted(problem.size):
        together += size
        if size >= SMALL * problem.available or together > slack:
            return float(size)
    return SMALL * problem.available


@dataclass(frozen=True, slots=True, eq=False)
class Grouped:
    """A smaller problem, and the operations of the real one that each of its operations stands for."""

    problem: Problem
    original: Problem
    members: tuple[range, ...]
    main: tuple[int, ...]
    """The member whose recomputation means that the group is: what makes its large value, or its last."""

    def expand(self, sequence: Sequence[int]) -> tuple[int, ...]:
        return tuple(member for group in sequence for member in self.members[group])

    def contract(self, sequence: Sequence[int]) -> tuple[int, ...]:
        """The nearest in the smaller problem; it may lack something that only a part of a group made again."""
        group_of = {main: group for group, main in enumerate(self.main)}
        return tuple(group_of[operation] for operation in sequence if operation in group_of)


def group_operations(problem: Problem, small: float) -> Grouped:
    """Make one of every longest run that gives away at most one value of `small` bytes or more."""
    members: list[range] = []
    start = 0
    while start < problem.count:
        stop = _longest_group(problem, start, small)
        members.append(range(start, stop))
        start = stop
    return _contracted(problem, tuple(members), small)


def _longest_group(problem: Problem, start: int, small: float) -> int:
    """Where the longest group from here ends. Nothing pinned is grouped: it may be computed once only."""
    best = start + 1
    if problem.pinned[start]:
        return best
    pending: dict[int, int] = {}
    """Large values made so far that something outside still reads: how many readers are missing."""
    for stop in range(start + 1, min(problem.count, start + LONGEST_GROUP) + 1):
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
    """Is a group about as easy to fit as its members? Else schedules would be lost that matter."""
    exported = {value for operation in run for value in problem.outputs[operation] if not _only_within(problem, value, run)}
    outside = {value for operation in run for value in problem.inputs[operation] if problem.producer[value] < run.start}
    together = sum(problem.size[value] for value in outside | exported) + _workspace(problem, run, exported)
    alone = max(problem.own_bytes(operation) for operation in run)
    return together <= max(HARMLESS * problem.available, LITTLE * alone)


def _connected(problem: Problem, start: int, stop: int) -> bool:
    """Does every operation of the run but the last make something for one of the run?"""
    return all(
        any(start <= reader < stop for value in problem.outputs[operation] for reader in problem.consumers[value])
        for operation in range(start, stop - 1)
    )


def _contracted(problem: Problem, members: tuple[range, ...], small: float) -> Grouped:
    group_of = [group for group, run in enumerate(members) for _ in run]
    exported = [
        problem.kept[value] or any(group_of[reader] != group_of[producer] for reader in problem.consumers[value])
        for value, producer in enumerate(problem.producer)
    ]
    chosen = [value for value, out in enumerate(exported) if out]
    number = {value: position for position, value in enumerate(chosen)}
    inputs = [
        tuple(sorted({number[value] for operation in run for value in problem.inputs[operation] if problem.producer[value] < run.start}))
        for run in members
    ]
    outputs = [tuple(number[value] for operation in run for value in problem.outputs[operation] if exported[value]) for run in members]
    consumers: list[list[int]] = [[] for _ in chosen]
    for group, read in enumerate(inputs):
        for value in read:
            consumers[value].append(group)
    main = [
        max((problem.producer[chosen[value]] for value in made if problem.size[chosen[value]] >= small), default=run.stop - 1)
        for run, made in zip(members, outputs, strict=True)
    ]
    smaller = replace(
        problem,
        graph_operation=tuple(problem.graph_operation[operation] for operation in main),
        graph_value=tuple(problem.graph_value[value] for value in chosen),
        cost=tuple(sum(problem.cost[operation] for operation in run) for run in members),
        workspace=tuple(_workspace(problem, run, number.keys()) for run in members),
        pinned=tuple(any(problem.pinned[operation] for operation in run) for run in members),
        backward=tuple(problem.backward[operation] for operation in main),
        inputs=tuple(inputs),
        outputs=tuple(outputs),
        size=tuple(problem.size[value] for value in chosen),
        producer=tuple(group_of[problem.producer[value]] for value in chosen),
        consumers=tuple(tuple(users) for users in consumers),
        kept=tuple(problem.kept[value] for value in chosen),
    )
    return Grouped(smaller, problem, members, tuple(main))


def _workspace(problem: Problem, run: range, exported: Set[int]) -> int:
    """What a group takes beyond everything it reads and gives away. What it reads is there throughout: it may be needed again."""
    last_read: dict[int, int] = {}
    outside: set[int] = set()
    for operation in run:
        for value in problem.inputs[operation]:
            last_read[value] = operation
            if problem.producer[value] < run.start:
                outside.add(value)
    live = sum(problem.size[value] for value in outside)
    most = 0
    beside = live + sum(problem.size[value] for operation in run for value in problem.outputs[operation] if value in exported)
    for operation in run:
        made = problem.outputs[operation]
        live += sum(problem.size[value] for value in made)
        most = max(most, live + problem.workspace[operation])
        dying = {value for value in problem.inputs[operation] if last_read[value] == operation} - outside - exported
        dying.update(value for value in made if value not in last_read and value not in exported)
        live -= sum(problem.size[value] for value in dying)
    return most - beside


def _only_within(problem: Problem, value: int, run: range) -> bool:
    return not problem.kept[value] and all(reader in run for reader in problem.consumers[value])
