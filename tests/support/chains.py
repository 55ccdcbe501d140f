"""The training chain of the paper's figures, with unit costs and sizes or with random ones."""

from __future__ import annotations

import random
from dataclasses import replace

from checkmate.core.model.costs import given_costs
from checkmate.core.model.floors import feasibility_floor
from checkmate.core.model.graph import OperationSpec, ValueSpec, Work, assemble
from checkmate.core.model.problem import Problem, build_problem
from checkmate.core.schedule.sequence import profile


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


def random_chain(seed: int) -> Problem:
    """Three to five layers, everything else at random, with a budget between floor and peak: a few large values fill the memory."""
    rng = random.Random(seed)
    chain = unit_chain(rng.randrange(3, 6), 0)
    problem = replace(
        chain,
        size=tuple(rng.randrange(1, 6) for _ in chain.size),
        cost=tuple(float(rng.randrange(1, 9)) for _ in chain.cost),
        workspace=tuple(rng.choice((0, 0, 1, 3)) for _ in chain.cost),
        kept=tuple(rng.random() < 0.15 for _ in chain.size),
    )
    floor, peak = feasibility_floor(problem).bytes, profile(problem, range(problem.count)).peak
    return problem.with_budget(rng.randrange(floor, peak + 1) if peak > floor else floor)
