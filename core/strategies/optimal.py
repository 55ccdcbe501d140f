"""The MILP, solved to the gap asked for."""

from __future__ import annotations

from dataclasses import replace

from ..events import Event, Watch
from ..milp.runs import liveness_entries, repeated_runs, single_runs
from ..problem import Problem
from ..result import Solution, Status, Stop
from ..sequence import profile
from ..settings import Settings
from ..solvers.base import failure
from ..units import format_bytes
from .exact import Exact, fits_in_time, smallest_peak, solve_exactly
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
        return Solution(status, stop, incumbent, problem.ideal_cost, reason, provenance={"found_by": found_by})
    return solve_from(problem, settings, watch, incumbent, found_by)


def solve_from(problem: Problem, settings: Settings, watch: Watch, incumbent: tuple[int, ...] | None, found_by: str) -> Solution:
    """The exact MILP from an incumbent; where the paper's search space holds nothing, a larger one, and the smallest budget that works."""
    exact = solve_exactly(problem, settings, watch, incumbent=incumbent)
    if exact.status is not Status.INFEASIBLE or incumbent is not None:
        return _conclude(problem, settings, exact, incumbent, found_by)
    wider = replace(settings, formulation="liveness")
    watch.on_event(Event("nothing fits with one recomputation per stage; allowing two"))
    exact = solve_exactly(problem, wider, watch, repeated_runs(problem))
    if exact.status is Status.INFEASIBLE:
        return _explain_infeasible(problem, wider, watch)
    return _conclude(problem, wider, exact, None, "")


def _conclude(problem: Problem, settings: Settings, exact: Exact, incumbent: tuple[int, ...] | None, found_by: str) -> Solution:
    """Take the better of what the MILP found and what was known, with what the MILP proved."""
    provenance: dict[str, str | int | float] = {"solver": settings.solver, "formulation": settings.formulation}
    best, by = incumbent, found_by
    if exact.sequence is not None and (best is None or profile(problem, exact.sequence).cost <= profile(problem, best).cost):
        best, by = exact.sequence, settings.solver
    if best is None:
        return Solution(Status.UNKNOWN, exact.stop, None, exact.bound, "no schedule was found", provenance=provenance)
    cost = profile(problem, best).cost
    bound = min(exact.bound, cost)
    proven = cost - bound <= settings.gap * cost
    return Solution(Status.OPTIMAL if proven else Status.FEASIBLE, exact.stop, best, bound, provenance=provenance | {"found_by": by})


def _explain_infeasible(problem: Problem, settings: Settings, watch: Watch) -> Solution:
    """Say which budget would work, and which operation stands in the way."""
    watch.on_event(Event("no schedule fits; looking for the smallest budget that works"))
    limit, sequence = smallest_peak(problem, settings, watch)
    scope = "proven for every schedule that follows the graph's order and recomputes an operation at most twice per stage"
    reason = f"no schedule fits {format_bytes(problem.budget)} ({scope}); "
    if sequence is None:
        above = max(limit, problem.budget + 1)
        reason += f"the smallest budget that could work is at least {format_bytes(above)} ({above} bytes)"
        return Solution(Status.INFEASIBLE, Stop.FINISHED, reason=reason, smallest_budget=above)
    made = profile(problem, sequence)
    if made.peak <= problem.budget:
        watch.on_event(failure(settings.solver, "it calls infeasible what is not; its answer is ignored"))
        return Solution(Status.FEASIBLE, Stop.FINISHED, sequence, problem.ideal_cost, provenance={"found_by": "smallest peak"})
    binding = problem.operation_name(sequence[made.memory.index(made.peak)])
    word = "the smallest budget that could work is" if limit >= made.peak else "a budget that works is"
    reason += f"{word} {format_bytes(made.peak)} ({made.peak} bytes), taken while {binding!r} runs"
    return Solution(Status.INFEASIBLE, Stop.FINISHED, reason=reason, smallest_budget=made.peak, binding_operation=binding)
