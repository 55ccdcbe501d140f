"""The smallest budget for which a schedule is found, and a proven limit below which none exists.

From above: search orders and schedules for smaller and smaller budgets. A budget at which nothing was found is not proven impossible, so
the descent is repeated with more moves. From below: the values that must be in memory together; for the given order and small graphs also
a MILP.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..baselines import BASELINES
from ..engine.auto import any_schedule
from ..engine.exact import fits_in_time, smallest_peak
from ..engine.strategies import get_strategy
from ..events import Event, Watch
from ..milp.stages import liveness_entries, repeated_runs
from ..model.floors import Floor, feasibility_floor, least_memory
from ..model.problem import Problem
from ..model.transforms.permute import in_original, in_permuted, permuted
from ..model.units import format_bytes
from ..result import Scope, Stop
from ..schedule.schedule import expand
from ..schedule.sequence import profile
from ..schedule.simulate import simulate
from ..search.order import find_order, order_for_budget
from ..search.views import search_views
from ..search.warm import warm_up_before
from ..settings import Order, Settings

EXACT_ENTRIES = 60_000
"""A MILP with more nonzeros than this gives no useful limit within a minute."""
FIRST_MOVES = 10_000
ROUNDS = 4
"""Number of descents, each with twice the moves of the one before, unless `iterations` is set."""
PRECISION = 1000
"""A descent ends when it fails to save this share of the budget."""
ORDER_MOVES = 300_000
SOLVE_ROUNDS = 4
"""Rounds of `auto` at a budget that the search does not reach: programs say which values to keep, which the search does not find alone."""


@dataclass(frozen=True, slots=True)
class Smallest:
    """A schedule, the memory it needs, and the memory every schedule needs."""

    sequence: tuple[int, ...]
    budget: int
    """Bytes, everything included, with the memory model of the problem."""
    found_by: str
    limit: Floor
    scope: Scope
    """The limit holds for `any` schedule, or for those in the given `order` that recompute an operation at most twice per stage."""
    stop: Stop


def find_smallest(problem: Problem, settings: Settings, watch: Watch) -> Smallest:
    """Search until the limit is reached, all descents are done, or the time limit is reached. `settings.order` says whether the order may
    change."""
    if problem.count:
        warm_up_before(watch)
    work = _Smallest(problem, settings, watch)
    if problem.count:
        work.run()
    stop = Stop.INTERRUPTED if watch.interrupted() else Stop.TIME_LIMIT if watch.expired and not work.proven else Stop.FINISHED
    return Smallest(work.best, work.budget, work.found_by, work.limit, work.scope, stop)


class _Smallest:
    """The best schedule so far and the best limit, and the phases that improve them."""

    def __init__(self, problem: Problem, settings: Settings, watch: Watch) -> None:
        self.problem = problem
        self.settings = settings
        self.watch = Watch(watch.time_limit, self._tell, watch.interrupted, watch.started, undivided=settings.iterations is not None)
        self._listener = watch.on_event
        self.limit, self.scope = least_memory(problem), Scope.ANY
        self.given = tuple(range(problem.count))
        self.best, self.order, self.found_by = self.given, self.given, "keep-all"
        self.budget = taken(problem, self.given)
        self.model_budget = profile(problem, self.given).peak
        """The same without computing in place, which the search ignores: the search must get below this."""

    @property
    def proven(self) -> bool:
        return self.budget <= self.limit.bytes

    @property
    def done(self) -> bool:
        return self.proven or self.watch.expired

    def run(self) -> None:
        if self.settings.order is Order.GIVEN:
            self._raise_limit(feasibility_floor(self.problem))
        elif not self.done:
            part = self.watch.part(self.watch.remaining / 5)
            order = find_order(self.problem, self.settings.seed, ORDER_MOVES, part, self.limit.bytes, self.settings.threads)
            self._offer(order, self.given, "order")
        self._try_heuristics()
        self._solve_exactly()
        for number in range(self.settings.iterations or ROUNDS):
            self._descend(number)
        self._cheapen()

    def _raise_limit(self, floor: Floor) -> None:
        """Raise the limit to one that holds for the problem in the given order."""
        if floor.bytes > self.limit.bytes and _says_all(self.problem):
            self.limit, self.scope = floor, Scope.ORDER

    def _try_heuristics(self) -> None:
        for name in BASELINES:
            if self.done:
                break
            floor = self.problem.with_budget(self.limit.bytes)
            found = get_strategy(name)(floor, self.settings, self.watch.part(self.watch.remaining / 10)).sequence
            if found is not None:
                self._offer(self.given, found, name)

    def _solve_exactly(self) -> None:
        """Solve the MILP for the smallest peak in the best order so far; its limit is used only if this is the given order."""
        entries = liveness_entries(self.problem, repeated_runs(self.problem))
        unfit = self.settings.iterations is not None or entries > EXACT_ENTRIES
        if self.done or unfit or not fits_in_time(entries, self.watch):
            return
        self.watch.on_event(Event(f"{self.settings.solver} for the smallest peak"))
        under = permuted(self.problem, self.order)
        limit, found = smallest_peak(under, self.settings, self.watch.part(self.watch.remaining / 3))
        if found is not None:
            self._offer(self.order, found, self.settings.solver)
        if self.order == self.given and self.settings.order is Order.GIVEN:
            self._raise_limit(Floor(limit, "", "the schedule of the lowest peak"))

    def _descend(self, number: int) -> None:
        """Try budgets below the best: a quarter of the way to the limit first, half as far after each failure."""
        step = self.model_budget - self.limit.bytes >> 2 + number
        moves = min(FIRST_MOVES << number, 50 * self.problem.count << number)
        seed = self.settings.seed + number
        finest = max(1, self.model_budget // PRECISION)
        while not self.done and (step := max(step, finest)):
            target = self.problem.with_budget(max(self.limit.bytes, self.model_budget - step))
            if not self._reach(target, seed, moves, other_orders=number > 0 and self.settings.order is Order.SEARCH):
                if step == finest:
                    return
                step //= 2

    def _reach(self, target: Problem, seed: int, moves: int, *, other_orders: bool) -> bool:
        """Search a schedule for this budget: in the order of the best, in the given order, and in one built for the budget. True: found."""
        if self._search(target, self.order, seed, moves):
            return True
        if not other_orders:
            return False
        if self.order != self.given and self._search(target, self.given, seed, moves):
            return True
        order = order_for_budget(target, seed, ORDER_MOVES // 10, self.watch.part(self.watch.remaining / 10), self.settings.threads)
        return self._search(target, order, seed, moves) or self._solve(target)

    def _solve(self, target: Problem) -> bool:
        """What `solve` would find for this budget in its first rounds."""
        if self.done:
            return False
        found = any_schedule(target, self.settings, SOLVE_ROUNDS, self.watch.part(self.watch.remaining / 4))
        if found is not None:
            self._offer(self.given, found, "solve")
        return found is not None

    def _cheapen(self) -> None:
        """The first schedule that fits often recomputes more than necessary: search for a cheaper one that needs no more memory."""
        if self.watch.expired:
            return
        under = permuted(self.problem.with_budget(self.model_budget), self.order)
        found = search_views(
            under, [in_permuted(self.order, self.best)], self.settings.seed, FIRST_MOVES, self.watch, self.settings.threads
        )
        if found is None:
            return
        cheaper = in_original(self.order, found)
        if profile(self.problem, cheaper).cost < profile(self.problem, self.best).cost and taken(self.problem, cheaper) <= self.budget:
            self.best = cheaper

    def _search(self, target: Problem, order: tuple[int, ...], seed: int, moves: int) -> bool:
        if self.done:
            return False
        under = permuted(target, order)
        if profile(under, self.given).peak <= target.budget:
            self._offer(order, self.given, "order")
            return True
        starts = [in_permuted(self.order, self.best), self.given] if order == self.order else [self.given]
        found = search_views(under, starts, seed, moves, self.watch.part(self.watch.remaining / 4), self.settings.threads)
        if found is not None:
            self._offer(order, found, "search")
        return found is not None

    def _offer(self, order: tuple[int, ...], sequence: tuple[int, ...], name: str) -> None:
        """Accept a schedule if it needs less memory; its operations are numbered by the order it was made for."""
        original = in_original(order, sequence)
        made = profile(self.problem, original).peak
        if made >= self.model_budget:
            return
        needed = taken(self.problem, original)
        self.model_budget = made
        if needed <= self.budget:
            self.best, self.budget, self.order, self.found_by = original, needed, order, name
            self._tell(Event(name, message=f"{format_bytes(needed)} is enough"))

    def _tell(self, event: Event) -> None:
        """Costs do not matter here: report the budget found and the limit instead."""
        figures = f"found {format_bytes(self.budget)}, limit {format_bytes(self.limit.bytes)}"
        self._listener(Event(event.phase, message=event.message or figures))


def taken(problem: Problem, sequence: tuple[int, ...]) -> int:
    """The peak of a sequence with the memory model of the problem."""
    if not problem.memory_model.overwrites:
        return profile(problem, sequence).peak
    reserve = problem.base - problem.graph.fixed_bytes
    return simulate(problem.graph, problem.costs, expand(problem, sequence), reserve=reserve, memory_model=problem.memory_model).peak_bytes


def _says_all(problem: Problem) -> bool:
    """True if problem and graph need the same memory: no output may overwrite an input, and no view reads more than one value."""
    operations = problem.graph.operations
    return not problem.memory_model.overwrites and not any(operation.view and len(set(operation.inputs)) > 1 for operation in operations)
