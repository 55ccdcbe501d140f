"""A schedule as a problem in which every recomputation is a separate operation, so that a search over orders can move it too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..problem import Problem


def unrolled(problem: Problem, sequence: Sequence[int]) -> Problem:
    """Operation k is the k-th computation of the sequence; each reads the copies that it reads in the sequence.

    Every topological order of this problem, translated to operations of the original, is a sequence with the same cost.
    """
    latest = [-1] * len(problem.size)
    values: list[int] = []
    producer: list[int] = []
    consumers: list[list[int]] = []
    inputs: list[tuple[int, ...]] = []
    outputs: list[tuple[int, ...]] = []
    for place, operation in enumerate(sequence):
        read = tuple(sorted(latest[value] for value in problem.inputs[operation]))
        inputs.append(read)
        for value in read:
            consumers[value].append(place)
        for value in problem.outputs[operation]:
            latest[value] = len(values)
            values.append(value)
            producer.append(place)
            consumers.append([])
        outputs.append(tuple(latest[value] for value in problem.outputs[operation]))
    kept = {latest[value] for value, needed in enumerate(problem.kept) if needed}
    return replace(
        problem,
        graph_operation=tuple(problem.graph_operation[operation] for operation in sequence),
        graph_value=tuple(problem.graph_value[value] for value in values),
        cost=tuple(problem.cost[operation] for operation in sequence),
        workspace=tuple(problem.workspace[operation] for operation in sequence),
        pinned=tuple(problem.pinned[operation] for operation in sequence),
        backward=tuple(problem.backward[operation] for operation in sequence),
        inputs=tuple(inputs),
        outputs=tuple(outputs),
        size=tuple(problem.size[value] for value in values),
        producer=tuple(producer),
        consumers=tuple(tuple(users) for users in consumers),
        kept=tuple(value in kept for value in range(len(values))),
    )
