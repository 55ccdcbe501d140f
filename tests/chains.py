"""The unit-cost training chain of the paper's figures."""

from __future__ import annotations

from checkmate.core.costs import given_costs
from checkmate.core.graph import OperationSpec, ValueSpec, Work, assemble
from checkmate.core.problem import Problem, build_problem


def unit_chain(layers: int, budget: int) -> Problem:
    """Operations 0..2L, edges i -> i+1 for all and i -> 2L-i for i < L, every cost and size 1."""
    last = 2 * layers
    inputs: list[list[int]] = [[] for _ in range(last + 1)]
    for index in range(last):
        inputs[index + 1].append(index)
    for index in range(layers):
        inputs[last - index].append(index)
    specs = [
        OperationSpec(str(index), "Op", tuple(map(str, used)), (ValueSpec(str(index), 1),), work=Work(cost=1.0))
        for index, used in enumerate(inputs)
    ]
    graph = assemble(f"chain-{layers}", specs, (), {})
    return build_problem(graph, given_costs(graph), budget=budget)
