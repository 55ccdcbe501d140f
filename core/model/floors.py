"""Budgets below which provably no schedule exists.

`least_memory` holds for every schedule of the graph, in any order and with the memory model of the problem. `feasibility_floor` holds for
the problem: first computations in the given order, nothing computed in place, and a reader of a view reads everything that the view was
made from.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

from .bounding import overwritable_bytes
from .problem import Problem, buffers


@dataclass(frozen=True, slots=True)
class Floor:
    """A budget below which no schedule can exist, and the operation that needs this budget."""

    bytes: int
    operation: str
    reason: str


def least_memory(problem: Problem) -> Floor:
    """The largest number of bytes that must be in memory at one moment, in any order.

    At the first computation of an operation these are: the buffers it reads, its outputs (except those that may overwrite an input), its
    workspace, and every value that cannot be recomputed and that, because of a path in the graph, was made before and is read later. At
    the end: every output. Before that: of the values that an operation reads, or that are outputs, one is made last, and the others are in
    memory beside it and whatever it is made of.
    """
    graph = problem.graph
    owners = buffers(graph)
    needs = _Needs(problem, owners)
    forced = _made_once_and_awaited(problem, owners)
    best = Floor(problem.base, "", "parameters, inputs and reserve alone")
    for number, operation in enumerate(graph.operations):
        if operation.view:
            continue
        own = needs.own[number]
        held = sum(needs.size[value] for value in forced[number] - needs.together[number])
        if problem.base + own + held > best.bytes:
            reason = "its inputs, outputs and workspace" + (f", and {held} bytes that cannot be recomputed" if held else "")
            best = Floor(problem.base + own + held, operation.name, reason)
        before = needs.to_have_together({owners[value] for value in operation.inputs})
        if problem.base + before > best.bytes:
            best = Floor(problem.base + before, operation.name, "making the last of its inputs beside the others")
    outputs = {owners[value] for value in graph.outputs}
    at_the_end = sum(needs.size[owner] for owner in outputs if owner is not None)
    if problem.base + at_the_end > best.bytes:
        best = Floor(problem.base + at_the_end, "", "all graph outputs at the end")
    if problem.base + needs.to_have_together(outputs) > best.bytes:
        best = Floor(problem.base + needs.to_have_together(outputs), "", "making the last graph output beside the others")
    return best


class _Needs:
    """What operations need while they run, in any schedule."""

    def __init__(self, problem: Problem, owners: list[int | None]) -> None:
        graph = problem.graph
        outputs = frozenset(graph.outputs)
        self.size = [value.bytes for value in graph.values]
        self.producers = graph.producers()
        self.together: list[frozenset[int]] = []
        """The buffers that an operation reads and makes."""
        self.own: list[int] = []
        """Their bytes and its workspace, except for outputs that may overwrite an input."""
        for operation in graph.operations:
            there = frozenset(owner for value in (*operation.inputs, *operation.outputs) if (owner := owners[value]) is not None)
            self.together.append(there)
            overwritable = 0 if operation.view else overwritable_bytes(problem, operation, owners, outputs)
            self.own.append(sum(self.size[value] for value in there) - overwritable + operation.workspace)

    def to_have_together(self, values: Set[int | None]) -> int:
        """What it takes to have these values in memory at one moment: the others are there while the one that is made last is made."""
        wanted = {value for value in values if value is not None}
        whole = sum(self.size[value] for value in wanted)
        least = min(
            (self._beside(self.producers[value], wanted, whole) for value in wanted),
            default=0,
        )
        return max(least, 0)

    def _beside(self, maker: int, wanted: Set[int], whole: int) -> int:
        return self.own[maker] + whole - sum(self.size[value] for value in self.together[maker] if value in wanted)


def _made_once_and_awaited(problem: Problem, owners: list[int | None]) -> list[set[int]]:
    """For each operation of the graph: values of pinned operations on a path to it or from it, made before it and read after it."""
    graph = problem.graph
    once = [value for operation in graph.operations if operation.pinned and not operation.view for value in operation.outputs]
    if not once:
        return [set()] * len(graph.operations)
    bit = {value: 1 << number for number, value in enumerate(once)}
    producers = graph.producers()
    made = [0] * len(graph.operations)
    for number, operation in enumerate(graph.operations):
        for value in operation.outputs:
            made[number] |= bit.get(value, 0)
        for value in operation.inputs:
            made[number] |= made[producers[value]]
    awaited = [0] * len(graph.operations)
    for number in reversed(range(len(graph.operations))):
        for value in graph.operations[number].inputs:
            owner = owners[value]
            awaited[number] |= bit.get(owner, 0) if owner is not None else 0
            awaited[producers[value]] |= awaited[number]
    kept = 0
    for value in graph.outputs:
        owner = owners[value]
        kept |= bit.get(owner, 0) if owner is not None else 0
    return [_chosen(once, before & (after | kept)) for before, after in zip(made, awaited, strict=True)]


def _chosen(values: list[int], bits: int) -> set[int]:
    """The values whose bits are set."""
    chosen: set[int] = set()
    while bits:
        lowest = bits & -bits
        chosen.add(values[lowest.bit_length() - 1])
        bits ^= lowest
    return chosen


def feasibility_floor(problem: Problem) -> Floor:
    """The smallest budget that could work: the largest number of bytes that must be in memory at one moment.

    At the first computation of an operation these are: its inputs, outputs and workspace, and every value of a pinned operation that was
    made before and is used later (it cannot be recomputed). At the end: every graph output.
    """
    needed_later = _pinned_spans(problem)
    best = Floor(problem.base, "", "parameters, inputs and reserve alone")
    for operation in range(problem.count):
        together = set(problem.inputs[operation]) | set(problem.outputs[operation])
        size = problem.own_bytes(operation)
        held = needed_later[operation] - sum(problem.size[value] for value in together if _spans(problem, value, operation))
        if problem.base + size + held > best.bytes:
            reason = "its inputs, outputs and workspace" + (f", and {held} bytes that cannot be recomputed" if held else "")
            best = Floor(problem.base + size + held, problem.operation_name(operation), reason)
    outputs = problem.base + sum(size for size, kept in zip(problem.size, problem.kept, strict=True) if kept)
    if outputs > best.bytes:
        best = Floor(outputs, problem.operation_name(problem.count - 1), "all graph outputs at the end")
    return best


def _spans(problem: Problem, value: int, operation: int) -> bool:
    """True if this value is made only once and must be in memory at the first computation of the operation."""
    producer = problem.producer[value]
    if not problem.pinned[producer] or operation < producer:
        return False
    return operation <= _last_first_read(problem, value)


def _last_first_read(problem: Problem, value: int) -> int:
    """The last operation at whose first computation the value is still needed."""
    return problem.count - 1 if problem.kept[value] else max(problem.consumers[value], default=problem.producer[value])


def _pinned_spans(problem: Problem) -> list[int]:
    """Bytes of values made only once that are in memory at the first computation of each operation."""
    change = [0] * (problem.count + 1)
    for value, producer in enumerate(problem.producer):
        if problem.pinned[producer]:
            change[producer] += problem.size[value]
            change[_last_first_read(problem, value) + 1] -= problem.size[value]
    spans: list[int] = []
    total = 0
    for step in change[:-1]:
        total += step
        spans.append(total)
    return spans
