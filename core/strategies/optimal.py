"""The MILP, solved to the gap asked for."""

from __future__ import annotations

from ..events import Watch
from ..milp.runs import liveness_entries, single_runs
from ..problem import Problem
from ..result import Solution, Status, Stop
from ..sequence import profile
from ..settings import Settings
from .exact import Exact, fits_in_time, solve_exactly
from .incumbent import best_heuristic, infeasible, keep_everything


def optimal(problem: Problem, settings: Settings, watch: Watch) -> Solution:
    """The exact MILP from the best heuristic, until it is solved to the gap or time is up."""
    known = infeasible(problem) or keep_everything(problem)
    if known is not None:
        return known
    incumbent, found_by = best_heuristic(problem, settings, watch)
    entries = liveness_entries(problem, single_runs(problem)) * (2 if settings.formulation == "paper" else 1)
    if not fits_in_time(entries, watch):
        reason = f"the exact model of {problem.count} operations has about {entries} nonzeros, too many for the time limit"
        status = Status.UNKNOWN if incumbent is None else Status.FEASIBLE
        stop = Stop.INTERRUPTED if watch.interrupted() else Stop.TIME_LIMIT
        return Solution(status, stop, incumbent, problem.ideal_cost, reason, {"found_by": found_by})
    exact = solve_exactly(problem, settings, watch, incumbent=incumbent)
    return conclude(problem, settings, exact, incumbent, found_by)


def conclude(problem: Problem, settings: Settings, exact: Exact, incumbent: tuple[int, ...] | None, found_by: str) -> Solution:
    """Take the better of what the MILP found and what was known, with what the MILP proved."""
    provenance: dict[str, str | int | float] = {"solver": settings.solver, "formulation": settings.formulation}
    if exact.status is Status.INFEASIBLE and incumbent is None:
        reason = (
            "no schedule fits: the MILP proves it for every schedule that follows the graph's order and computes each operation "
            "at most once per stage"
        )
        return Solution(Status.INFEASIBLE, exact.stop, reason=reason, provenance=provenance)
    best, by = incumbent, found_by
    if exact.sequence is not None and (best is None or profile(problem, exact.sequence).cost <= profile(problem, best).cost):
        best, by = exact.sequence, settings.solver
    if best is None:
        return Solution(Status.UNKNOWN, exact.stop, None, exact.bound, "no schedule was found", provenance)
    cost = profile(problem, best).cost
    bound = min(exact.bound, cost)
    proven = cost - bound <= settings.gap * cost
    return Solution(Status.OPTIMAL if proven else Status.FEASIBLE, exact.stop, best, bound, provenance=provenance | {"found_by": by})
