"""The problem that bounds are proven on: what every schedule of the graph must satisfy, by the memory model that judges schedules.

A `Problem` is made for finding schedules: it takes an operation to need more than it may need, so that whatever fits it fits the graph. Two
things are then left out which a schedule of the graph may do, and a bound must allow for:

- An operation may write an output over an input (`Operation.in_place`, where the memory model knows that). While it runs, that output does
  not count on top of the input. At any other moment values in memory have buffers of their own, so nothing else changes.
- Who reads a view is taken to read all that the view was made from. But a view that was made once stays for as long as its buffer does: a
  reader may come when the other inputs of the view (a computed shape) are gone.

Operations and values have the same numbers in both, so that what is proven of one is proven of the other.
"""

from __future__ import annotations

from dataclasses import replace

from .graph import Operation
from .problem import Problem, buffers


def bounding_problem(problem: Problem) -> Problem:
    """The relaxed problem; the same object where nothing is relaxed."""
    credits = in_place_credits(problem)
    inputs, kept = _buffers_really_read(problem)
    if not any(credits) and inputs == problem.inputs and kept == problem.kept:
        return problem
    consumers: list[list[int]] = [[] for _ in problem.size]
    for operation, read in enumerate(inputs):
        for value in read:
            consumers[value].append(operation)
    return replace(
        problem,
        workspace=tuple(own - credit for own, credit in zip(problem.workspace, credits, strict=True)),
        inputs=inputs,
        consumers=tuple(tuple(users) for users in consumers),
        kept=kept,
    )


def in_place_credits(problem: Problem) -> tuple[int, ...]:
    """Bytes of its outputs that each operation may write over inputs, at most."""
    if not problem.memory_model.overwrites:
        return (0,) * problem.count
    owners, outputs = buffers(problem.graph), frozenset(problem.graph.outputs)
    return tuple(
        overwritable_bytes(problem, problem.graph.operations[index], owners, outputs) if problem.graph.operations[index].in_place else 0
        for index in problem.graph_operation
    )


def overwritable_bytes(problem: Problem, operation: Operation, owners: list[int | None], outputs: frozenset[int]) -> int:
    """At most so many bytes of its outputs can lie where its inputs were. A graph output gets a buffer of its own when made last."""
    if not problem.memory_model.overwrites:
        return 0
    values = problem.graph.values
    targets: set[int] = set()
    for source, target in operation.in_place:
        owner = owners[source]
        if owner is not None and values[owner].bytes == values[target].bytes and target not in outputs:
            targets.add(target)
    return sum(values[target].bytes for target in targets)


def _buffers_really_read(problem: Problem) -> tuple[tuple[tuple[int, ...], ...], tuple[bool, ...]]:
    """For each operation the values whose buffers it reads, itself or through views; and which values hold graph outputs."""
    graph = problem.graph
    if not any(operation.view and len(operation.inputs) > 1 for operation in graph.operations):
        return problem.inputs, problem.kept
    owners = buffers(graph)
    number = {value: position for position, value in enumerate(problem.graph_value)}
    inputs = tuple(
        tuple(sorted({number[owner] for value in graph.operations[index].inputs if (owner := owners[value]) is not None}))
        for index in problem.graph_operation
    )
    outputs = {owners[value] for value in graph.outputs}
    return inputs, tuple(value in outputs for value in problem.graph_value)
