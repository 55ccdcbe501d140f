"""Orders of small problems: random, with recomputations, and all of them."""

from __future__ import annotations

import random
from itertools import permutations

from checkmate.core.model.costs import given_costs
from checkmate.core.model.graph import OperationSpec, ValueSpec, Work, assemble
from checkmate.core.model.problem import Problem, build_problem


def random_order(problem: Problem, seed: int) -> tuple[int, ...]:
    """A topological order, every ready operation as likely as any other."""
    rng = random.Random(seed)
    missing = [len({problem.producer[value] for value in row}) for row in problem.inputs]
    ready = [operation for operation, needs in enumerate(missing) if not needs]
    order: list[int] = []
    while ready:
        operation = ready.pop(rng.randrange(len(ready)))
        order.append(operation)
        for user in sorted({user for value in problem.outputs[operation] for user in problem.consumers[value]}):
            missing[user] -= 1
            if not missing[user]:
                ready.append(user)
    return tuple(order)


def is_topological(problem: Problem, order: tuple[int, ...]) -> bool:
    place = {operation: position for position, operation in enumerate(order)}
    makers = ((position, problem.producer[value]) for position, operation in enumerate(order) for value in problem.inputs[operation])
    return sorted(order) == list(range(problem.count)) and all(place[maker] < position for position, maker in makers)


def with_repeats(problem: Problem, order: tuple[int, ...], seed: int) -> tuple[int, ...]:
    """The order with recomputations of what may be recomputed thrown in."""
    rng = random.Random(seed)
    sequence: list[int] = []
    for operation in order:
        again = [earlier for earlier in sorted(set(sequence)) if not problem.pinned[earlier] and rng.random() < 0.2]
        sequence += [*(earlier for earlier in order if earlier in again), operation]
    return tuple(sequence)


def all_orders(problem: Problem) -> list[tuple[int, ...]]:
    return [order for order in permutations(range(problem.count)) if is_topological(problem, order)]


def wide(branches: int) -> Problem:
    """Branches that are all made first and read last in the given order, though each could be done with at once."""
    work = Work(cost=1.0)
    specs = [OperationSpec("source", "Op", (), (ValueSpec("s", 1),), work=work)]
    specs += [OperationSpec(f"make{k}", "Op", ("s",), (ValueSpec(f"big{k}", 100),), work=work) for k in range(branches)]
    specs += [OperationSpec(f"shrink{k}", "Op", (f"big{k}",), (ValueSpec(f"small{k}", 1),), work=work) for k in range(branches)]
    specs.append(OperationSpec("sum", "Op", tuple(f"small{k}" for k in range(branches)), (ValueSpec("total", 1),), work=work))
    graph = assemble("wide", specs, ["total"], {"parameters": 7})
    return build_problem(graph, given_costs(graph))
