"""The order of first computations is ours to choose, and choosing it is often free memory.

Any strategy can be run under an order found by search: first for an order in which nothing need be recomputed, which is optimal for any
order; else for the order with the least memory above the budget, under which the strategy then works. What it proves holds for that order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..events import Event, Watch
from ..least_memory import least_memory
from ..permute import in_original, permuted
from ..problem import Problem
from ..result import Solution, Status, Stop
from ..search.local import search
from ..search.order import find_order, order_for_budget
from ..sequence import profile
from ..settings import Settings
from . import Strategy
from .incumbent import infeasible, keep_everything

MOVES_PER_OPERATION = 3000
MOST_MOVES = 400_000
TRIAL_MOVES = 30_000
SHARE = 0.25
"""The part of the time that may go into looking for an order."""


def under_searched_order(problem: Problem, strategy: Strategy, settings: Settings, watch: Watch) -> Solution:
    """Run a strategy under the most promising of the orders found and the given one."""
    known = keep_everything(problem) or (infeasible(problem) if least_memory(problem).bytes > problem.budget else None)
    if known is not None:
        return replace(known, bound_scope="any")
    watch.on_event(Event("order", message="looking for an order that needs no recomputation"))
    moves = min(MOVES_PER_OPERATION * problem.count, MOST_MOVES)
    lowest = find_order(problem, settings.seed, moves, watch.part(watch.remaining * SHARE), problem.budget)
    if profile(problem, lowest).peak <= problem.budget:
        return Solution(Status.OPTIMAL, Stop.FINISHED, lowest, problem.ideal_cost, bound_scope="any", provenance={"found_by": "order"})
    order = order_for_budget(problem, settings.seed, moves, watch.part(watch.remaining * SHARE))
    best = _most_promising(problem, [tuple(range(problem.count)), order, lowest], settings, watch.part(watch.remaining * SHARE))
    return _translated(problem, best, strategy(permuted(problem, best), settings, watch))


def _most_promising(problem: Problem, orders: Sequence[tuple[int, ...]], settings: Settings, watch: Watch) -> tuple[int, ...]:
    """The order under which a short search finds the cheapest schedule: one of low memory without recomputation can be bad with it.

    The given order is the first, and stays if none is better.
    """
    best, best_cost = orders[0], float("inf")
    different = tuple(dict.fromkeys(orders))
    for order in different if len(different) > 1 else ():
        ordered = permuted(problem, order)
        start = tuple(range(problem.count))
        found = search(ordered, [start, start], settings.seed, min(TRIAL_MOVES, 100 * problem.count), watch)
        cost = float("inf") if found is None else profile(ordered, found).cost
        watch.on_event(Event("order", message=f"tried order {orders.index(order)}: {'nothing fits' if found is None else 'fits'}"))
        if cost < best_cost:
            best, best_cost = order, cost
    return best


def _translated(problem: Problem, order: Sequence[int], solution: Solution) -> Solution:
    """In the numbers of the given problem. A proof for one order proves nothing of others, unless there are none."""
    scope = "any" if _is_only_order(problem) or (solution.bound or 0.0) <= problem.ideal_cost else "order"
    if solution.sequence is not None:
        return replace(solution, sequence=in_original(order, solution.sequence), bound_scope=scope)
    if solution.status is Status.INFEASIBLE and scope == "order" and least_memory(problem).bytes <= problem.budget:
        return replace(solution, status=Status.UNKNOWN, reason=f"under the orders tried, {solution.reason}")
    return replace(solution, bound_scope=scope)


def _is_only_order(problem: Problem) -> bool:
    """Does every operation read the one before it? Then there is no other order."""
    return all(
        any(problem.producer[value] == operation - 1 for value in problem.inputs[operation]) for operation in range(1, problem.count)
    )
