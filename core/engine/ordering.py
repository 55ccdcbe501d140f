"""The order of first computations is ours to choose, and choosing it is often free memory.

Any strategy can be run under an order found by search. First comes an order in which nothing need be recomputed, which is optimal for any
order. Else order and recomputations are searched together. If nothing fits, a schedule is brought down to the budget, the strategy tries
what it finds under the given order, and goes on under the better one. Else short searches try other orders. If a schedule is then as cheap
as any under the given order can be, that order is left; else the strategy works under it for a part of the time. Order and recomputations
of the cheapest schedule are searched together again, as long as that helps, and the strategy goes on under the best order.
What it proves holds for the order it is given.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..baselines.best import KNOWN, infeasible, keep_everything
from ..bounds.relaxing import QUICKER, Relaxing
from ..events import Event, Watch
from ..model.floors import least_memory
from ..model.precedence import has_only_one_order
from ..model.problem import Problem
from ..model.transforms.permute import in_original, in_permuted, permuted
from ..model.transforms.unroll import unrolled
from ..result import Result, Scope, Status, Stop
from ..schedule.sequence import profile, prune
from ..search.fitting import cheapest_that_fits
from ..search.order import find_order, order_for_budget
from ..search.splice import MOST_INSISTENT, splice_from
from ..search.views import search_views, views_of
from ..search.walkers import walkers
from ..settings import Settings
from ..strategy import Strategy
from .descent import descend

MOVES_PER_OPERATION = 3000
MOST_MOVES = 400_000
TRIAL_MOVES = 30_000
DESCENT_MOVES = 10_000
SHARE = 0.15
"""The part of the time that is left that may go into each step before and after the strategy's own work."""
PROMISING = 0.01
DEARER = 0.02
DOWN_PART = 0.2
SCARCE_PART = 0.3
"""Where memory is so scarce that nothing fits at once, what is left of the time goes so far into bringing a schedule down to the budget,
and into the given order alone."""
SMALL_PART = 0.3
LARGE_PART = 0.75
MOST_PART = 0.9
"""What the given order gets of the time that is left: a small part if another order promises to be so much cheaper, or if a short search
under it finds nothing or something so much dearer than the search over orders; most of it if it finds something as cheap."""
TOGETHER = 2000
"""Moves per operation when orders and recomputations are searched together, as many as for orders alone at most."""
REORDERINGS = 4
WORTHWHILE = 1e-4
"""Times in a row that may make nothing cheaper by this share before that ends; each is twice as long, and more insistent."""


@dataclass(frozen=True, slots=True, eq=False)
class _Ordered:
    """An order, and the cheapest schedule found under it so far, in the numbers of the given problem; infinitely dear if there is none."""

    order: tuple[int, ...]
    cost: float = float("inf")
    sequence: tuple[int, ...] | None = None
    promise: float = float("inf")
    """What a linear relaxation says no schedule under this order can be cheaper than, if one was asked."""


def under_searched_order(problem: Problem, strategy: Strategy, settings: Settings, watch: Watch) -> Result:
    """Run a strategy under the most promising of the orders found and the given one."""
    known = keep_everything(problem) or (infeasible(problem) if least_memory(problem).bytes > problem.budget else None)
    if known is not None:
        return replace(known, bound_scope=Scope.ANY)
    watch.on_event(Event("order", message="looking for an order that needs no recomputation"))
    moves = min(MOVES_PER_OPERATION * problem.count, MOST_MOVES)
    lowest = find_order(problem, settings.seed, moves, watch.part(watch.remaining * SHARE), problem.budget, settings.threads)
    if profile(problem, lowest).peak <= problem.budget:
        return Result(Status.OPTIMAL, Stop.FINISHED, lowest, problem.ideal_cost, bound_scope=Scope.ANY, provenance={"found_by": "order"})
    given = tuple(range(problem.count))
    best = _together(problem, (given, lowest), settings, watch.part(watch.remaining * SHARE))
    if best.sequence is None and _rated(problem, settings.known.sequence)[1] is None:
        return _where_memory_is_scarce(problem, lowest, strategy, settings, moves, watch)
    promise, rounded = _linear(problem, settings, watch.part(watch.remaining * SHARE))
    best = _most_promising(problem, best, promise, lowest, settings, moves, watch.part(watch.remaining * SHARE))
    if best.cost <= promise:
        best = _reordered(problem, best, settings, moves, watch.part(watch.remaining * SHARE))
        return _go_on(problem, strategy, best, settings, watch)
    tried = _short_search(problem, rounded or given, settings, watch.part(watch.remaining * SHARE))
    start = best if best.order == given else _Ordered(given, *_rated(problem, tried))
    hopeful = best.promise >= promise * (1 - PROMISING) and (best.sequence is None or start.cost <= best.cost * (1 + DEARER))
    share = SMALL_PART if not hopeful else MOST_PART if start.cost <= best.cost < float("inf") else LARGE_PART
    part = watch.part(watch.remaining * share)
    first = _go_on(problem, strategy, start, settings, part)
    cost, sequence = _rated(problem, first.sequence)
    if sequence is None and best.sequence is None:
        return _go_on(problem, strategy, best, settings, watch)
    if cost <= best.cost:
        best = _Ordered(given, cost, sequence)
    best = _reordered(problem, best, settings, moves, watch.part(watch.remaining * SHARE))
    if best.order != given and best.cost < cost * (1 - settings.gap):
        last = _go_on(problem, strategy, best, settings, watch)
        return last if _rated(problem, last.sequence)[0] < cost else first
    best = best if best.order == given else _Ordered(given, cost, sequence)
    if first.status is Status.OPTIMAL or (watch.expired and best.cost >= cost):
        return first
    last = _go_on(problem, strategy, best, settings, watch, first)
    return last if _rated(problem, last.sequence)[0] <= cost else first


def _where_memory_is_scarce(
    problem: Problem, lowest: tuple[int, ...], strategy: Strategy, settings: Settings, moves: int, watch: Watch
) -> Result:
    """A schedule brought down to the budget, and what the strategy finds under the given order for a part of the time: the cheaper of the
    two is made the most of, order and recomputations together, and the strategy goes on under the order that gives. The given order is left
    only for one that is much cheaper: what is proven of it would be lost."""
    given = _Ordered(tuple(range(problem.count)))
    best = _brought_down(problem, lowest, settings, watch.part(watch.remaining * DOWN_PART))
    if best.sequence is not None:
        best = _reordered(problem, best, settings, moves, watch.part(watch.remaining * DOWN_PART))
    if infeasible(problem) is not None:
        return _go_on(problem, strategy, best, settings, watch)
    told = replace(settings, known=replace(settings.known, elsewhere=best.cost))
    first = _go_on(problem, strategy, given, told, watch.part(watch.remaining * SCARCE_PART))
    cost, sequence = _rated(problem, first.sequence)
    given = replace(given, cost=cost, sequence=sequence)
    if first.status is Status.OPTIMAL and cost <= best.cost:
        return first
    if cost <= best.cost:
        best = _reordered(problem, given, settings, moves, watch.part(watch.remaining * SHARE))
    if best.cost >= cost * (1 - PROMISING):
        last = _go_on(problem, strategy, given, settings, watch, first)
        return last if _rated(problem, last.sequence)[0] <= cost else first
    return _go_on(problem, strategy, best, settings, watch)


def _go_on(problem: Problem, strategy: Strategy, best: _Ordered, settings: Settings, watch: Watch, earlier: Result | None = None) -> Result:
    """The strategy under the best order, from the best schedule and from what it found earlier under that order."""
    told = _told(settings, best)
    if earlier is not None:
        known = replace(told.known, bound=max(told.known.bound, earlier.bound or 0.0), unfinished=earlier.unfinished)
        told = replace(told, known=known)
    last = _translated(problem, best.order, strategy(permuted(problem, best.order), told, watch))
    if last.provenance.get("found_by") == KNOWN:
        last = replace(last, provenance=last.provenance | {"found_by": "order search"})
    return last


def _told(settings: Settings, best: _Ordered) -> Settings:
    """What is known, in the numbers of the order chosen. A bound for another order says nothing of this one."""
    known = settings.known
    same = known.bound_scope is Scope.ANY or (known.sequence is not None and tuple(dict.fromkeys(known.sequence)) == best.order)
    sequence = None if best.sequence is None else in_permuted(best.order, best.sequence)
    return replace(settings, known=replace(known, sequence=sequence, bound=known.bound if same else 0.0))


def _most_promising(
    problem: Problem, best: _Ordered, promise: float, lowest: tuple[int, ...], settings: Settings, moves: int, watch: Watch
) -> _Ordered:
    """Of the order of the best so far, that of the lowest peak, one chosen for the budget, and the one of a schedule known before: that
    under which a short search finds the cheapest schedule. One of low memory without recomputation can be bad with it: what promises no
    more than the given order is not searched, as long as anything fits."""
    enough = min(promise, best.cost) if best.cost < float("inf") else float("inf")
    known = settings.known.sequence
    if known is not None and (cost := _rated(problem, known)[0]) < best.cost:
        best = _Ordered(tuple(dict.fromkeys(known)), cost, known)
    for_budget = order_for_budget(problem, settings.seed, moves, watch.part(watch.remaining / 3), settings.threads)
    for order in {for_budget: None, lowest: None}:
        if watch.expired:
            break
        ordered = permuted(problem, order)
        promised, rounded = _linear(ordered, settings, watch)
        if promised >= enough:
            continue
        found = _short_search(ordered, rounded or tuple(range(problem.count)), settings, watch)
        cost, fitting = _rated(problem, None if found is None else in_original(order, found))
        watch.on_event(
            Event("order", None if fitting is None else cost, message=f"tried an order: {'fits' if fitting else 'nothing fits'}")
        )
        if cost < best.cost:
            best = _Ordered(order, cost, fitting, promised)
    return best


def _brought_down(problem: Problem, lowest: tuple[int, ...], settings: Settings, watch: Watch) -> _Ordered:
    """Nothing fits so far: insist on it, then come down to the budget under the given order and under that of the lowest peak."""
    given = tuple(range(problem.count))
    found = _together(problem, (given, lowest), settings, watch, MOST_INSISTENT - 1)
    if found.sequence is not None:
        return found
    moves = min(DESCENT_MOVES, 50 * problem.count)
    for order, share in ((given, 0.5), (lowest, 1.0)):
        part = watch.part(watch.remaining * share)

        def search(target: Problem, start: tuple[int, ...], seed: int, part: Watch = part) -> tuple[int, ...] | None:
            return search_views(target, [start, given], seed, moves, part, settings.threads)

        reached = in_original(order, descend(permuted(problem, order), given, settings.seed, search, part))
        cost, sequence = _rated(problem, reached)
        if sequence is not None:
            return _Ordered(order, cost, sequence)
    return _Ordered(lowest)


def _together(
    problem: Problem, starts: Sequence[tuple[int, ...]], settings: Settings, watch: Watch, insistence: int = 0, doublings: int = 0
) -> _Ordered:
    """Search orders and recomputations together, from each start twice, side by side; the cheapest schedule found."""
    moves = min(TOGETHER * problem.count, MOST_MOVES) << doublings
    with walkers(settings.threads) as pool:
        walks = [
            pool.submit(
                splice_from, problem, start, settings.seed * 1000 + number, moves, watch, free=True, insistence=insistence + number % 2
            )
            for number, start in enumerate(start for start in starts for _ in range(2))
        ]
        rated = [_rated(problem, walk.result()) for walk in walks]
    cost, sequence = min(rated, key=lambda each: each[0])
    watch.on_event(Event("order", None if sequence is None else cost, message="searched orders and recomputations together"))
    return _Ordered(tuple(range(problem.count)) if sequence is None else tuple(dict.fromkeys(sequence)), cost, sequence)


def _reordered(problem: Problem, best: _Ordered, settings: Settings, moves: int, watch: Watch) -> _Ordered:
    """Improve the best schedule and its order: both together, and, to make room, the order alone with all recomputations in their place."""
    failed = round_number = 0
    while failed < REORDERINGS and not watch.expired and best.sequence is not None and best.cost > problem.ideal_cost:
        round_number += 1
        if failed % 2:
            places = find_order(unrolled(problem, best.sequence), settings.seed + round_number, moves, watch, threads=settings.threads)
            moved = prune(problem, [best.sequence[place] for place in places])
        else:
            moved = best.sequence
        found = _together(problem, (moved,), replace(settings, seed=settings.seed + round_number), watch, failed, failed)
        failed = 0 if found.cost < best.cost * (1 - WORTHWHILE) else failed + 1
        best = found if found.cost < best.cost else best
    return best


def _short_search(ordered: Problem, start: tuple[int, ...], settings: Settings, watch: Watch) -> tuple[int, ...] | None:
    """A schedule in the given order, if a moment of search finds any."""
    views = views_of(ordered)
    moves = min(TRIAL_MOVES, 100 * ordered.count)
    with walkers(settings.threads) as pool:
        walks = [pool.submit(view.walk, start, settings.seed + number, moves, watch) for number, view in enumerate(views)]
        return cheapest_that_fits(ordered, [found for walk in walks if (found := walk.result()) is not None])


def _linear(ordered: Problem, settings: Settings, watch: Watch) -> tuple[float, tuple[int, ...] | None]:
    """What linear relaxations say of a problem: a bound, and the last of them rounded."""
    relaxing = Relaxing(ordered, settings, QUICKER, zones=False)
    rounded: tuple[int, ...] | None = None
    while relaxing.is_quick and not relaxing.exhausted and not watch.expired:
        rounded = relaxing.advance(watch, None) or rounded
    return relaxing.bound, rounded


def _rated(problem: Problem, sequence: tuple[int, ...] | None) -> tuple[float, tuple[int, ...] | None]:
    if sequence is None:
        return float("inf"), None
    made = profile(problem, sequence)
    return (made.cost, sequence) if made.peak <= problem.budget else (float("inf"), None)


def _translated(problem: Problem, order: Sequence[int], solution: Result) -> Result:
    """In the numbers of the given problem. A proof for one order proves nothing of others, unless there are none."""
    scope = Scope.ANY if has_only_one_order(problem) or (solution.bound or 0.0) <= problem.ideal_cost else Scope.ORDER
    if solution.sequence is not None:
        return replace(solution, sequence=in_original(order, solution.sequence), bound_scope=scope)
    if solution.status is Status.INFEASIBLE and scope == "order" and least_memory(problem).bytes <= problem.budget:
        return replace(solution, status=Status.UNKNOWN, reason=f"under the orders tried, {solution.reason}")
    return replace(solution, bound_scope=scope)
