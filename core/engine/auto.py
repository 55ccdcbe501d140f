"""The default: baselines, then any-order programs whose solutions are replayed, put in a better order and repaired by annealing.

Where the order of first computations is free, a bound is one for every order, and the work ends as soon as the gap to it is met.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ..baselines.best import KNOWN, infeasible, keep_everything
from ..events import Event, Watch
from ..model.floors import least_memory
from ..model.precedence import has_only_one_order
from ..model.problem import Problem
from ..params import PARAMS
from ..result import Provenance, Result, Scope, Status, Stop
from ..schedule.sequence import Candidate
from ..settings import FormulationName, Order, Settings
from .breakpoints import Ground
from .groups import Groups
from .pool import Computations, Pool
from .scheduler import Scheduler
from .worker import Worker
from .workers.annealing import Improve, Repair, Restart
from .workers.baselines import QUICK, SLOW, Baselines
from .workers.descent import KINDS, Descent
from .workers.incumbent_order import IncumbentOrder
from .workers.margins import Margin
from .workers.programs import ProgramLane


def auto(problem: Problem, settings: Settings, watch: Watch) -> Result:
    """Any-order programs for bounds and schedules, searches from their replays; for graphs of any size."""
    known = _known_at_once(problem, settings)
    if known is not None:
        return known
    pool = Pool(problem, _order_is_free(problem, settings), watch.on_event)
    _tell(pool, settings)
    scheduler = Scheduler(pool, workers(problem, settings), settings, watch)
    if settings.formulation is not FormulationName.PAPER:
        scheduler.run()
    if _may_be_exact(pool, settings, watch) and scheduler.round != settings.iterations:
        return _solve_exactly(pool, settings, watch)
    return _conclude(pool, settings, _stop(watch))


def lower_peaks(problem: Problem, start: Computations, settings: Settings, watch: Watch, accept: Callable[[Candidate], None]) -> None:
    """Schedules of ever lower peaks, down to the budget if that can be, whatever they cost: only those who look for them are at work."""

    def tell(event: Event) -> None:
        if pool.lowest is not None:
            accept(pool.lowest)

    free = _order_is_free(problem, settings)
    pool = Pool(problem, free, tell)
    highest = pool.offer(start, KNOWN).peak
    groups = Groups(problem, free=free, amount=(problem.budget + highest) // 2)
    team: list[Worker] = [
        Baselines(problem, settings, QUICK),
        Baselines(problem, settings, SLOW, from_round=1),
        *(Descent(problem, groups, settings, number, free=free, from_round=1) for number in range(KINDS)),
    ]
    Scheduler(pool, team, settings, watch).run()


def programs_only(problem: Problem, settings: Settings, watch: Watch) -> Result:
    """Any-order programs with ever more breakpoints, and nothing else: what `--formulation any-order` asks of the exact strategy."""
    known = _known_at_once(problem, settings)
    if known is not None:
        return known
    pool = Pool(problem, _order_is_free(problem, settings), watch.on_event)
    everyone = workers(problem, settings)
    Scheduler(pool, [worker for worker in everyone if not worker.is_search], settings, watch).run()
    return _conclude(pool, settings, _stop(watch))


def _may_be_exact(pool: Pool, settings: Settings, watch: Watch) -> bool:
    """Programs count memory at breakpoints only. Where they have nothing left to say and there is one order, the exact model may close the
    gap, if it is small enough to be built in time."""
    if watch.expired or pool.infeasible or pool.gap <= settings.gap:
        return False
    if settings.order is Order.SEARCH and not has_only_one_order(pool.problem):
        return False
    from ..milp.stages import liveness_entries, single_runs
    from .exact import fits_in_time

    return fits_in_time(liveness_entries(pool.problem, single_runs(pool.problem)), watch)


def _solve_exactly(pool: Pool, settings: Settings, watch: Watch) -> Result:
    """The exact model from the incumbent; the better of its bound and the programs'."""
    from .optimal import solve_from  # imports Pyomo

    exact = solve_from(pool.problem, settings, watch, pool.incumbent)
    if exact.sequence is None:
        return exact
    pool.offer(exact.sequence, exact.found_by)
    is_for_all = exact.bound_model is None
    if is_for_all and pool.order_is_free:
        pool.any_bound = max(pool.any_bound, exact.bound or 0.0)
    elif (exact.bound or 0.0) > pool.bound:
        pool.order_bounds[pool.order] = exact.bound or 0.0
        pool.order_model = exact.bound_model
    return _conclude(pool, settings, exact.stop)


def _stop(watch: Watch) -> Stop:
    return Stop.INTERRUPTED if watch.interrupted() else Stop.TIME_LIMIT if watch.expired else Stop.FINISHED


def workers(problem: Problem, settings: Settings) -> list[Worker]:
    """Everyone, in the order in which reports are merged."""
    free = _order_is_free(problem, settings)
    ground, groups = Ground(problem, None if free else tuple(range(problem.count))), Groups(problem, free=free)
    return [
        Baselines(problem, settings, QUICK),
        Margin(ground, settings),
        ProgramLane(ground, settings, 0),
        ProgramLane(ground, settings, 1, cuts=True, from_round=1),
        ProgramLane(ground, settings, 2, tails=True, from_round=PARAMS.tails_from_round),
        *([IncumbentOrder(problem, settings)] if free else []),
        Baselines(problem, settings, SLOW, from_round=2),
        Repair(problem, settings, 0, free=free),
        Improve(problem, settings, 0, free=free),
        Restart(problem, groups, settings, 0, free=free),
        Repair(problem, settings, 1, free=free),
        Improve(problem, settings, 1, free=free),
        Restart(problem, groups, settings, 1, free=free),
        *(Descent(problem, groups, settings, number, free=free, from_round=PARAMS.search_from_round) for number in range(KINDS)),
    ]


def _order_is_free(problem: Problem, settings: Settings) -> bool:
    """May first computations be in any order? Where there is only one, what holds for it holds for any."""
    return settings.order is Order.SEARCH or has_only_one_order(problem)


def _known_at_once(problem: Problem, settings: Settings) -> Result | None:
    """What is known without solving: keep-all fits, or nothing does."""
    everything = keep_everything(problem)
    if everything is not None:
        return replace(everything, bound_scope=Scope.ANY)
    nothing = infeasible(problem)
    if nothing is None or nothing.status is not Status.INFEASIBLE:
        return None
    if least_memory(problem).bytes > problem.budget:
        return replace(nothing, bound_scope=Scope.ANY)
    return None if _order_is_free(problem, settings) else nothing


def _tell(pool: Pool, settings: Settings) -> None:
    """What was known before."""
    known = settings.known
    if known.sequence is not None:
        pool.offer(known.sequence, KNOWN)
    if known.bound_scope is Scope.ANY:
        pool.any_bound = max(pool.any_bound, known.bound)
    elif known.sequence is not None:
        pool.order_bounds[tuple(dict.fromkeys(known.sequence))] = known.bound


def _conclude(pool: Pool, settings: Settings, stop: Stop) -> Result:
    provenance: Provenance = {"solver": settings.solver, "formulation": FormulationName.ANY_ORDER}
    if settings.iterations is not None:
        provenance["iterations"] = settings.iterations
    if pool.infeasible:
        where = "" if pool.order_is_free else " in this order"
        reason = f"no schedule fits{where}: an integer program that every schedule would satisfy has no solution"
        scope = Scope.ANY if pool.order_is_free else Scope.ORDER
        return Result(Status.INFEASIBLE, Stop.FINISHED, reason=reason, bound_scope=scope)
    if pool.incumbent is None:
        lowest = None if pool.lowest is None else pool.lowest.sequence
        return Result(Status.UNKNOWN, stop, lowest, pool.any_bound, "no schedule was found", provenance=provenance)
    proven = pool.gap <= settings.gap
    provenance["found_by"] = pool.incumbent.found_by
    return Result(
        Status.OPTIMAL if proven else Status.FEASIBLE,
        Stop.FINISHED if proven else stop,
        pool.incumbent.sequence,
        min(pool.bound, pool.cost),
        provenance=provenance,
        bound_scope=pool.scope,
        bound_model=pool.order_model,
        any_bound=pool.any_bound if pool.order_is_free or pool.scope is Scope.ANY else None,
    )
