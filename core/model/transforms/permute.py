"""The same problem with its operations in another order, so that algorithms for the given order work for any order.

Sequences of both problems differ only in the numbers of operations; `in_original` and `in_permuted` translate between them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..problem import Problem


def permuted(problem: Problem, order: Sequence[int]) -> Problem:
    """The problem whose operation k is operation `order[k]` of this one. The order must be topological."""
    operation_number = _inverse(order)
    values = [value for operation in order for value in problem.outputs[operation]]
    value_number = _inverse(values)
    inputs = [tuple(sorted(value_number[value] for value in problem.inputs[operation])) for operation in order]
    producer = [operation_number[problem.producer[value]] for value in values]
    for position, row in enumerate(inputs):
        for value in row:
            if producer[value] >= position:
                raise ValueError(f"not a topological order: {problem.operation_name(order[position])} comes before what it reads")
    return replace(
        problem,
        graph_operation=tuple(problem.graph_operation[operation] for operation in order),
        graph_value=tuple(problem.graph_value[value] for value in values),
        cost=tuple(problem.cost[operation] for operation in order),
        workspace=tuple(problem.workspace[operation] for operation in order),
        pinned=tuple(problem.pinned[operation] for operation in order),
        backward=tuple(problem.backward[operation] for operation in order),
        inputs=tuple(inputs),
        outputs=tuple(tuple(sorted(value_number[value] for value in problem.outputs[operation])) for operation in order),
        size=tuple(problem.size[value] for value in values),
        producer=tuple(producer),
        consumers=tuple(tuple(sorted(operation_number[user] for user in problem.consumers[value])) for value in values),
        kept=tuple(problem.kept[value] for value in values),
    )


def in_original(order: Sequence[int], sequence: Sequence[int]) -> tuple[int, ...]:
    """Translate a sequence of the permuted problem to the numbers of the original."""
    return tuple(order[operation] for operation in sequence)


def in_permuted(order: Sequence[int], sequence: Sequence[int]) -> tuple[int, ...]:
    """Translate a sequence of the original problem to the numbers of the permuted one."""
    number = _inverse(order)
    return tuple(number[operation] for operation in sequence)


def _inverse(permutation: Sequence[int]) -> list[int]:
    inverse = [-1] * len(permutation)
    for position, item in enumerate(permutation):
        inverse[item] = position
    if -1 in inverse:
        raise ValueError("an order must name every operation once")
    return inverse
