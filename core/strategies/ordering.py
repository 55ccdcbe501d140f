"""The order of first computations is ours to choose, and choosing it is often free memory.

Any strategy can be run under an order found by search. First comes an order in which nothing need be recomputed, which is optimal for any
order. Else the strategy works under the given order for a part of the time, and short searches with recomputation try others; the cheapest
schedule is reordered with its recomputations, which makes room, and searched again under its new order, as long as that helps. Then the
strategy goes on under the best order. What it proves holds for the order it is given.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..events import Event, Watch
from ..least_memory import least_memory
from ..permute import in_original, permuted
from ..problem import Problem
from ..result import Solution, Status, Stop
from ..search.order import find_order, order_for_budget
from ..search.views import views_of
from ..sequence import first_computations, profile, prune
from ..settings import Known, Settings
from ..unrolled import unrolled
from . import Strategy
from .incumbent import KNOWN, infeasible, keep_everything
from .relaxing import Relaxing

MOVES_PER_OPERATION = 3000
MOST_MOVES = 400_000
TRIAL_MOVES = 30_000
SHARE = 0.15
"""The part of the time that may go into each of: an order without recomputation, trying orders, reordering schedules."""
PROMISING = 0.01
SMALL_PART = 0.3
LARGE_PART = 0.75
"""The given order gets the larger part of the time that is left, but the smaller one if another order promises to be so much cheaper."""
REORDERINGS = 4
THOROUGH = 500
"""Operations up to which every order is tried in every view."""


@dataclass(frozen=True, slots=True, eq=False)
class _Ordered:
    """An order, and the cheapest schedule found under it so far, in the numbers of the given problem; infinitely dear if there is none."""

    order: tuple[int, ...]
    cost: float = float("inf")
    sequence: tuple[int, ...] | None = None
    promise: float = float("inf")
    """What a linear relaxation says no schedule under this order can be cheaper than."""


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
    best = _most_promising(problem, lowest, settings, moves, watch.part(watch.remaining * SHARE))
    given = tuple(range(problem.count))
    promising = best.promise < _linear(problem, settings, watch)[0] * (1 - PROMISING)
    part = watch.part(watch.remaining * (SMALL_PART if promising else LARGE_PART))
    first = _translated(problem, given, strategy(problem, _told(settings, best if best.order == given else _Ordered(given)), part))
    cost, sequence = _rated(problem, first.sequence)
    if cost <= best.cost:
        best = _Ordered(given, cost, sequence)
    best = _reordered(problem, best, settings, moves, watch.part(watch.remaining * SHARE))
    if best.order != given and best.cost < cost * (1 - settings.gap):
        last = _translated(problem, best.order, strategy(permuted(problem, best.order), _told(settings, best), watch))
        if last.provenance.get("found_by") == KNOWN:
            last = replace(last, provenance=last.provenance | {"found_by": "order search"})
        return last if _rated(problem, last.sequence)[0] < cost else first
    if first.status is Status.OPTIMAL or watch.expired:
        return first
    told = _told(settings, _Ordered(given, cost, sequence))
    told = replace(told, known=replace(told.known, bound=max(told.known.bound, first.bound or 0.0)))
    return _translated(problem, given, strategy(problem, told, watch))


def _told(settings: Settings, best: _Ordered) -> Settings:
    """What is known, in the numbers of the order chosen. A bound for another order says nothing of this one."""
    known = settings.known
    same = known.bound_scope == "any" or (known.sequence is not None and tuple(dict.fromkeys(known.sequence)) == best.order)
    sequence = None if best.sequence is None else _renumbered(best.order, best.sequence)
    return replace(settings, known=Known(sequence, known.bound if same else 0.0, known.bound_scope))


def _most_promising(problem: Problem, lowest: tuple[int, ...], settings: Settings, moves: int, watch: Watch) -> _Ordered:
    """Of the order of the lowest peak, one chosen for the budget, and the one of a schedule known before: that under which a short search
    finds the cheapest schedule. One of low memory without recomputation can be bad with it."""
    known = settings.known.sequence
    best = _Ordered(tuple(range(problem.count)))
    if known is not None:
        best = _Ordered(tuple(dict.fromkeys(known)), *_rated(problem, known))
    for_budget = order_for_budget(problem, settings.seed, moves, watch.part(watch.remaining / 3))
    for order in {for_budget: None, lowest: None}:
        if watch.expired:
            break
        promise, sequence = _short_search(problem, order, None, settings, watch)
        cost, fitting = _rated(problem, sequence)
        watch.on_event(
            Event("order", None if fitting is None else cost, message=f"tried an order: {'fits' if fitting else 'nothing fits'}")
        )
        if cost < best.cost:
            best = _Ordered(order, cost, fitting, promise)
    return best


def _reordered(problem: Problem, best: _Ordered, settings: Settings, moves: int, watch: Watch) -> _Ordered:
    """Move everything the best schedule computes, recomputations too, to where it takes less; then search under that order."""
    for round_number in range(REORDERINGS):
        if watch.expired or best.sequence is None or best.cost <= problem.ideal_cost:
            break
        places = find_order(unrolled(problem, best.sequence), settings.seed + round_number, moves, watch)
        moved = prune(problem, [best.sequence[place] for place in places])
        order = tuple(dict.fromkeys(moved))
        _, found = _short_search(problem, order, moved, replace(settings, seed=settings.seed + round_number), watch)
        cost, sequence = min((_rated(problem, candidate) for candidate in (moved, found)), key=lambda rated: rated[0])
        watch.on_event(Event("order", None if sequence is None else cost, message="reordered the best schedule"))
        if cost >= best.cost:
            break
        best = _Ordered(order, cost, sequence)
    return best


def _short_search(
    problem: Problem, order: tuple[int, ...], start: Sequence[int] | None, settings: Settings, watch: Watch
) -> tuple[float, tuple[int, ...] | None]:
    """A bound and a schedule under an order, from a linear relaxation or a start that is known, searched for a moment."""
    ordered = permuted(problem, order)
    bound, begin = (0.0, _renumbered(order, start)) if start is not None else _linear(ordered, settings, watch)
    found: list[tuple[int, ...]] = []
    views = views_of(ordered)
    for number, view in enumerate(views if problem.count <= THOROUGH else views[:2]):
        sequence = view.walk(begin or tuple(range(ordered.count)), settings.seed + number, min(TRIAL_MOVES, 100 * problem.count), watch)
        found.extend(() if sequence is None else (sequence,))
    cheapest = min(found, key=lambda sequence: profile(ordered, sequence).cost, default=None)
    return bound, None if cheapest is None else in_original(order, cheapest)


def _linear(ordered: Problem, settings: Settings, watch: Watch) -> tuple[float, tuple[int, ...] | None]:
    """What linear relaxations say of a problem: a bound, and the last of them rounded."""
    relaxing = Relaxing(ordered, settings)
    rounded: tuple[int, ...] | None = None
    while relaxing.is_quick and not relaxing.exhausted and not watch.expired:
        rounded = relaxing.advance(watch, None) or rounded
    return relaxing.bound, rounded


def _rated(problem: Problem, sequence: tuple[int, ...] | None) -> tuple[float, tuple[int, ...] | None]:
    if sequence is None:
        return float("inf"), None
    made = profile(problem, sequence)
    return (made.cost, sequence) if made.peak <= problem.budget else (float("inf"), None)


def _renumbered(order: Sequence[int], sequence: Sequence[int]) -> tuple[int, ...]:
    """A sequence of the given problem in the numbers of the permuted one."""
    number = first_computations(len(order), order)
    return tuple(number[operation] for operation in sequence)


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
