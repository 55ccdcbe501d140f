"""A budget below which no schedule exists whatever its order, by the memory model of the runtime that will judge it.

`feasibility_floor` speaks of the problem: first computations in the given order, nothing computed in place, and whoever reads a view taken
to read all that the view was made from. Here only what holds for every schedule of the graph counts.
"""

from __future__ import annotations

from .graph import Operation
from .problem import Floor, Problem, buffers
from .runtime import Runtime


def least_memory(problem: Problem) -> Floor:
    """The largest set of bytes that must be in memory at one moment in any order.

    While an operation first runs: the buffers it reads, its outputs (but for those it may write over an input) and workspace, and every
    value made only once that must have been made before and is read after, since a path of the graph says so. At the end: every output.
    """
    graph = problem.graph
    owners = buffers(graph)
    size = [value.bytes for value in graph.values]
    forced = _made_once_and_awaited(problem, owners)
    best = Floor(problem.base, "", "parameters, inputs and reserve alone")
    for number, operation in enumerate(graph.operations):
        if operation.view:
            continue
        together = {owner for value in (*operation.inputs, *operation.outputs) if (owner := owners[value]) is not None}
        own = sum(size[value] for value in together) - _overwritten(problem, operation, owners) + operation.workspace
        held = sum(size[value] for value in forced[number] - together)
        if problem.base + own + held > best.bytes:
            reason = "its inputs, outputs and workspace" + (f", and {held} bytes that cannot be made again" if held else "")
            best = Floor(problem.base + own + held, operation.name, reason)
    outputs = problem.base + sum(size[owner] for owner in {owners[value] for value in graph.outputs} if owner is not None)
    if outputs > best.bytes:
        best = Floor(outputs, "", "all graph outputs at the end")
    return best


def _overwritten(problem: Problem, operation: Operation, owners: list[int | None]) -> int:
    """At most so many bytes of its outputs can lie where its inputs were. A graph output gets a buffer of its own when made last."""
    if problem.runtime is Runtime.GENERIC:
        return 0
    values, outputs = problem.graph.values, set(problem.graph.outputs)
    targets: set[int] = set()
    for source, target in operation.in_place:
        owner = owners[source]
        if owner is not None and values[owner].bytes == values[target].bytes and target not in outputs:
            targets.add(target)
    return sum(values[target].bytes for target in targets)


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
