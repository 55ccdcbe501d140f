"""The default: baselines, then any-order programs whose solutions are replayed, put in a better order and repaired; then what is left.

Where the order of first computations is free, a bound is one for every order. The work ends as soon as the gap to it is met. What is left
after the programs have given what they can, near the smallest budget and on graphs without a backbone, goes to the searches and relaxations
under chosen orders (`ordering.py`, `fixed_order.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from ..baselines.best import KNOWN, best_baseline, infeasible, keep_everything
from ..events import Watch
from ..model.floors import least_memory
from ..model.problem import Problem
from ..result import Provenance, Result, Scope, Status, Stop
from ..schedule.sequence import Candidate, candidate
from ..settings import FormulationName, Known, Order, Settings
from .bounder import Bounded, Bounder
from .breakpoints import Ground, rate_breakpoints
from .params import PARAMS
from .pool import Pool


def auto(problem: Problem, settings: Settings, watch: Watch) -> Result:
    """Any-order programs for bounds and schedules, searches from their replays; for graphs of any size."""
    free = settings.order is Order.SEARCH
    known = keep_everything(problem) or (infeasible(problem) if not free or least_memory(problem).bytes > problem.budget else None)
    if known is not None:
        return replace(known, bound_scope=Scope.ANY)
    return _Engine(problem, settings, watch).run()


class _Engine:
    """The pool, the programs, and what is done in turn."""

    def __init__(self, problem: Problem, settings: Settings, watch: Watch) -> None:
        self.problem, self.settings, self.watch = problem, settings, watch
        self.free = settings.order is Order.SEARCH
        self.pool = Pool(problem, self.free, watch.on_event)
        self.rounds = 0
        self.rounds_since_met = 0

    def run(self) -> Result:
        known = self.settings.known
        if known.sequence is not None:
            self.pool.offer(known.sequence, KNOWN)
        if known.bound_scope is Scope.ANY:
            self.pool.raise_bound(known.bound, KNOWN)
        self._try_baselines()
        if self._done or self.settings.formulation is FormulationName.PAPER:
            return self._conclude() if self._done else self._left_over()
        ground = Ground(self.problem, None if self.free else tuple(range(self.problem.count)))
        rated = rate_breakpoints(ground, self.watch)
        self.pool.raise_bound(rated[0][0], "linear program", ground.order)
        lanes = [Bounder(ground, first, self.settings, cuts=bool(number)) for number, (_, first) in enumerate(rated[: PARAMS.lanes])]
        while not self._done and not self._has_had_its_share:
            active = [lane for lane in lanes if not lane.exhausted]
            if not active:
                break
            self._round(active[:1] if not self.rounds else active)
            if any(lane.infeasible for lane in active):
                return self._nothing_fits()
        return self._conclude() if self._done else self._left_over()

    def _try_baselines(self) -> None:
        if self.pool.incumbent is None:
            found = best_baseline(self.problem, self.settings, self.watch.part(self.watch.remaining * PARAMS.baselines_share))
            if found is not None:
                self.pool.offer(found.sequence, found.found_by)

    @property
    def _done(self) -> bool:
        """Is the gap met? Small programs go on for a few rounds, down to the fine gap: that takes no time."""
        gap = self.pool.any_gap if self.free else self.pool.gap
        if self.watch.expired or gap <= PARAMS.fine_gap:
            return True
        return gap <= self.settings.gap and (self.rounds_since_met >= PARAMS.fine_rounds or self.problem.count > PARAMS.fine_operations)

    @property
    def _has_had_its_share(self) -> bool:
        if self.settings.iterations is not None:
            return self.rounds >= self.settings.iterations
        return self.watch.elapsed > self.watch.time_limit * PARAMS.programs_share

    def _round(self, lanes: Sequence[Bounder]) -> None:
        """A program of each lane, side by side, and what can be made of their solutions, one after the other."""
        incumbent = None if self.pool.incumbent is None else self.pool.incumbent.sequence
        with ThreadPoolExecutor(self.settings.threads or len(lanes)) as workers:
            bounded = list(workers.map(lambda lane: lane.step(incumbent, self.pool.any_bound, self.watch), lanes))
        self.rounds += 1
        if any(lane.infeasible for lane in lanes):
            return
        for lane, found in zip(lanes, bounded, strict=True):
            self.pool.raise_bound(found.bound, lane.name, lane.ground.order)
        for lane, found in zip(lanes, bounded, strict=True):
            best = self._best_replay(found)
            if best is not None and not best.fits(self.problem) and not self._done:
                best = self._make_it_fit(best)
            if self._done or lane.exhausted:
                continue
            if best is None or best.fits(self.problem):
                lane.exhausted = True
            else:
                lane.refine(best.sequence, solved=found.solved)
        if self.pool.gap <= self.settings.gap:
            self.rounds_since_met += 1

    def _best_replay(self, bounded: Bounded) -> Candidate | None:
        """Offer all; the one of the lowest peak of those made of the last solution."""
        offered = [self.pool.offer(sequence, "any-order program") for sequence in bounded.sequences]
        return min(offered[-2:], key=lambda found: found.peak, default=None)

    def _make_it_fit(self, start: Candidate) -> Candidate:
        """Put the computations in a better order, then repair what is left; the sequence of the lowest peak at the same cost."""
        from .repairing import lower_peak, repaired

        lowest = start
        if self.free:
            ordered = lower_peak(self.problem, start.sequence, self.settings, self.rounds, self.watch)
            lowest = min(start, candidate(self.problem, ordered), key=lambda found: found.peak)
            self.pool.offer(lowest.sequence, "order of a program's solution")
        if not self._done and not lowest.fits(self.problem):
            for sequence in repaired(
                self.problem, (lowest.sequence, start.sequence), self.settings, self.rounds, self.watch, free=self.free
            ):
                self.pool.offer(sequence, "repair")
        return lowest

    def _left_over(self) -> Result:
        """What the programs did not close: searches and relaxations under chosen orders, from the best so far."""
        from ..search.warm import warm_up_before
        from .fixed_order import fixed_order
        from .ordering import under_searched_order

        warm_up_before(self.watch)
        incumbent = self.pool.incumbent
        known = Known(None if incumbent is None else incumbent.sequence, self.pool.any_bound if self.free else self.pool.bound)
        settings = replace(self.settings, known=replace(known, bound_scope=Scope.ANY if self.free else Scope.ORDER))
        if self.free:
            result = under_searched_order(self.problem, fixed_order, settings, self.watch)
        else:
            result = fixed_order(self.problem, settings, self.watch)
        if result.sequence is not None:
            self.pool.offer(result.sequence, result.found_by)
            if result.bound is not None:
                scope = None if result.bound_scope is Scope.ANY else tuple(dict.fromkeys(result.sequence))
                self.pool.raise_bound(result.bound, result.found_by, scope)
        elif self.pool.incumbent is None:
            return result
        return self._conclude(result.stop)

    def _conclude(self, stop: Stop | None = None) -> Result:
        pool, settings, watch = self.pool, self.settings, self.watch
        stopped = stop or (Stop.INTERRUPTED if watch.interrupted() else Stop.TIME_LIMIT if watch.expired else Stop.FINISHED)
        provenance: Provenance = {"solver": settings.solver, "formulation": FormulationName.ANY_ORDER}
        if settings.iterations is not None:
            provenance["iterations"] = settings.iterations
        if pool.incumbent is None:
            return Result(Status.UNKNOWN, stopped, None, pool.any_bound, "no schedule was found", provenance=provenance)
        proven = pool.gap <= settings.gap
        provenance["found_by"] = pool.incumbent.found_by
        return Result(
            Status.OPTIMAL if proven else Status.FEASIBLE,
            Stop.FINISHED if proven else stopped,
            pool.incumbent.sequence,
            min(pool.bound, pool.cost),
            provenance=provenance,
            bound_scope=pool.scope,
            any_bound=pool.any_bound if self.free or pool.scope is Scope.ANY else None,
        )

    def _nothing_fits(self) -> Result:
        reason = "no schedule fits: an integer program that every schedule would satisfy has no solution"
        if not self.free:
            reason += " in this order"
        return Result(Status.INFEASIBLE, Stop.FINISHED, reason=reason, bound_scope=Scope.ANY if self.free else Scope.ORDER)
