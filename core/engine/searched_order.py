"""Strategies that keep the order of the graph, under a better order of first computations.

Two orders are tried: the graph's own, and the one of the lowest peak without recomputation. `auto` has no need of this: its programs choose
the order.
"""

from __future__ import annotations

from dataclasses import replace

from ..baselines.best import infeasible, keep_everything
from ..events import Event, Watch
from ..model.floors import least_memory
from ..model.precedence import has_only_one_order
from ..model.problem import Problem
from ..model.transforms.permute import in_original, permuted
from ..params import PARAMS
from ..result import Result, Scope, Status, Stop
from ..schedule.sequence import candidate, profile
from ..search.order import find_order
from ..settings import Settings
from ..strategy import Strategy


def under_searched_order(problem: Problem, strategy: Strategy, settings: Settings, watch: Watch) -> Result:
    """The cheaper of what a strategy finds under the two orders."""
    known = keep_everything(problem) or (infeasible(problem) if least_memory(problem).bytes > problem.budget else None)
    if known is not None:
        return replace(known, bound_scope=Scope.ANY)
    watch.on_event(Event("order", message="looking for an order that needs no recomputation"))
    moves = PARAMS.moves(PARAMS.order_moves, problem.count)
    lowest = find_order(problem, settings.seed, moves, watch.part(watch.remaining / 2), problem.budget)
    if profile(problem, lowest).peak <= problem.budget:
        return Result(Status.OPTIMAL, Stop.FINISHED, lowest, problem.ideal_cost, bound_scope=Scope.ANY, provenance={"found_by": "order"})
    given = tuple(range(problem.count))
    results = []
    for order, part in {given: 0.5, lowest: 1.0}.items():
        found = _translated(problem, order, strategy(permuted(problem, order), settings, watch.part(watch.remaining * part)))
        if found.status is Status.OPTIMAL and found.bound_scope is Scope.ANY:
            return found
        results.append(found)
    return min(results, key=lambda found: _rated(problem, found))


def _rated(problem: Problem, found: Result) -> tuple[float, float]:
    """What fits comes first, the cheaper the better; then what is nearest to the budget."""
    if found.sequence is None:
        return float("inf"), float("inf")
    made = candidate(problem, found.sequence)
    return (made.cost, 0.0) if made.fits(problem) else (float("inf"), made.peak)


def _translated(problem: Problem, order: tuple[int, ...], found: Result) -> Result:
    """In the numbers of the problem itself. A proof for one order proves nothing for others, unless there are none."""
    scope = Scope.ANY if has_only_one_order(problem) or (found.bound or 0.0) <= problem.ideal_cost else Scope.ORDER
    if found.sequence is not None:
        return replace(found, sequence=in_original(order, found.sequence), bound_scope=scope)
    if found.status is Status.INFEASIBLE and scope is Scope.ORDER:
        return replace(found, status=Status.UNKNOWN, reason=f"under the orders tried, {found.reason}", bound_scope=scope)
    return replace(found, bound_scope=scope)
