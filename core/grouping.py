"""Operations that belong together, solved as one.

A real training graph is mostly small steps one after the other: nine taps of one weight gradient, fourteen steps of the gradient of one
batch normalization. What such a run makes is used within it, but for one large value and some small ones. Solved as one operation, with
what it takes within itself as workspace, it is a tenth of the problem. Every schedule of the smaller problem, expanded, is one of the real
problem that costs the same and takes no more; some of the real ones are not there, so its optimum is none, and bounds must come from the
real problem.

A zone (`zones.py`) is one operation too, if the way through it is given: what it recomputes on the way is a part of it. What it reads is
not counted on the way once it is no longer needed there; a schedule that keeps it for later takes more than it seems to.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence, Set
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
    members: tuple[Sequence[int], ...]
    """In the order in which they are computed. Of a zone, all that is recomputed on the way too."""
    main: tuple[int, ...]
    """The member whose recomputation means that the group is: what makes its large value, or its last."""
    zones: tuple[range, ...] = ()
    """Runs that are passed on given ways."""

    def expand(self, sequence: Sequence[int]) -> tuple[int, ...]:
        return tuple(member for group in sequence for member in self.members[group])

    def contract(self, sequence: Sequence[int]) -> tuple[int, ...]:
        """The nearest in the smaller problem; it may lack something that only a part of a group made again."""
        group_of = {main: group for group, main in enumerate(self.main)}
        return tuple(group_of[operation] for operation in self._outside_zones(sequence) if operation in group_of)

    def _outside_zones(self, sequence: Sequence[int]) -> Iterator[int]:
        """Without all that is between the first and the last first computation of a zone, and all that is made again of it."""
        ends = {run.start: run.stop - 1 for run in self.zones}
        inside = {operation for run in self.zones for operation in run}
        until = -1
        for operation in sequence:
            if until < 0:
                until = ends.pop(operation, -1)
            if operation == until:
                until = -1
                yield operation
            elif until < 0 and operation not in inside:
                yield operation


def group_operations(problem: Problem, small: float) -> Grouped:
    """Make one of every longest run that gives away at most one value of `small` bytes or more."""
    members: list[range] = []
    start = 0
    while start < problem.count:
        stop = _longest_group(problem, start, small)
        members.append(range(start, stop))
        start = stop
    return _contracted(problem, tuple(members), tuple(members), small)


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
    together = sum(problem.size[value] for value in outside | exported) + _workspace(problem, run, outside, exported, True)
    alone = max(problem.own_bytes(operation) for operation in run)
    return together <= max(HARMLESS * problem.available, LITTLE * alone)


def _connected(problem: Problem, start: int, stop: int) -> bool:
    """Does every operation of the run but the last make something for one of the run?"""
    return all(
        any(start <= reader < stop for value in problem.outputs[operation] for reader in problem.consumers[value])
        for operation in range(start, stop - 1)
    )


def pass_zones(problem: Problem, ways: Mapping[range, Sequence[int]]) -> Grouped:
    """Make one operation of every zone, which is passed on a given way and only once."""
    starts = {run.start: run for run in ways}
    members: list[Sequence[int]] = []
    runs: list[range] = []
    operation = 0
    while operation < problem.count:
        run = starts.get(operation, range(operation, operation + 1))
        runs.append(run)
        members.append(ways.get(run, run))
        operation = run.stop
    grouped = _contracted(problem, tuple(runs), tuple(members), math.inf)
    pinned = tuple(was or run in ways for was, run in zip(grouped.problem.pinned, runs, strict=True))
    return replace(grouped, problem=replace(grouped.problem, pinned=pinned), zones=tuple(ways))


def _contracted(problem: Problem, runs: tuple[range, ...], members: tuple[Sequence[int], ...], small: float) -> Grouped:
    group_of = [group for group, run in enumerate(runs) for _ in run]
    exported = [
        problem.kept[value] or any(group_of[reader] != group_of[producer] for reader in problem.consumers[value])
        for value, producer in enumerate(problem.producer)
    ]
    chosen = [value for value, out in enumerate(exported) if out]
    number = {value: position for position, value in enumerate(chosen)}
    read = [_read_from_outside(problem, order) for order in members]
    inputs = [tuple(sorted(number[value] for value in values)) for values in read]
    outputs = [tuple(number[value] for operation in run for value in problem.outputs[operation] if exported[value]) for run in runs]
    consumers: list[list[int]] = [[] for _ in chosen]
    for group, values in enumerate(inputs):
        for value in values:
            consumers[value].append(group)
    main = [
        max((problem.producer[chosen[value]] for value in made if problem.size[chosen[value]] >= small), default=run.stop - 1)
        for run, made in zip(runs, outputs, strict=True)
    ]
    workspace = [
        _workspace(problem, order, outside, {chosen[value] for value in made}, run is order)
        for run, order, outside, made in zip(runs, members, read, outputs, strict=True)
    ]
    smaller = replace(
        problem,
        graph_operation=tuple(problem.graph_operation[operation] for operation in main),
        graph_value=tuple(problem.graph_value[value] for value in chosen),
        cost=tuple(sum(problem.cost[operation] for operation in order) for order in members),
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
    return Grouped(smaller, problem, members, tuple(main))


def _read_from_outside(problem: Problem, order: Sequence[int]) -> set[int]:
    """What is read before any of the operations makes it."""
    made: set[int] = set()
    outside: set[int] = set()
    for operation in order:
        outside.update(value for value in problem.inputs[operation] if value not in made)
        made.update(problem.outputs[operation])
    return outside


def _workspace(problem: Problem, order: Sequence[int], outside: Set[int], exported: Set[int], keeps_what_it_reads: bool) -> int:
    """What a group takes beyond everything it reads and gives away. What it reads is there throughout, as it may be needed again; on the
    way through a zone it is not, so that this may be less than nothing."""
    awaited = {*exported, *(outside if keeps_what_it_reads else ())}
    held = sum(problem.size[value] for value in awaited)
    most = 0
    for operation in reversed(order):
        read, made = problem.inputs[operation], problem.outputs[operation]
        there = {*read, *made} - awaited
        most = max(most, held + sum(problem.size[value] for value in there) + problem.workspace[operation])
        held += sum(problem.size[value] for value in read if value not in awaited)
        awaited.update(read)
        dropped = [value for value in made if value in awaited and not (keeps_what_it_reads and value in outside)]
        held -= sum(problem.size[value] for value in dropped)
        awaited.difference_update(dropped)
    beside = sum(problem.size[value] for value in {*outside, *exported})
    return most - beside


def _only_within(problem: Problem, value: int, run: range) -> bool:
    return not problem.kept[value] and all(reader in run for reader in problem.consumers[value])
