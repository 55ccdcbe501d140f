"""The MILP, solved to the gap asked for."""

from __future__ import annotations

from dataclasses import replace

from ..baselines.best import best_baseline, infeasible, keep_everything
from ..events import Event, Watch
from ..milp.stages import liveness_entries, repeated_runs, single_runs
from ..model.bounding import bounding_problem
from ..model.memory_model import MemoryModel
from ..model.problem import Problem
from ..model.units import format_bytes
from ..result import Provenance, Result, Status, Stop
from ..schedule.sequence import Candidate, cheaper, profile
from ..settings import FormulationName, Settings
from ..solvers.base import failure
from .exact import Exact, fits_in_time, smallest_peak, solve_exactly


def optimal(problem: Problem, settings: Settings, watch: Watch) -> Result:
    """The exact MILP from the best heuristic, until it is solved to the gap or time is up."""
    if settings.formulation is FormulationName.ANY_ORDER:
        from .auto import programs_only

        return programs_only(problem, settings, watch)
    known = infeasible(problem) or keep_everything(problem)
    if known is not None:
        return known
    incumbent = best_baseline(problem, settings, watch)
    entries = liveness_entries(problem, single_runs(problem)) * (2 if settings.formulation is FormulationName.PAPER else 1)
    if not fits_in_time(entries, watch):
        reason = f"the exact model of {problem.count} operations has about {entries} nonzeros, too many for the time limit"
        status = Status.UNKNOWN if incumbent is None else Status.FEASIBLE
        stop = Stop.INTERRUPTED if watch.interrupted() else Stop.TIME_LIMIT
        sequence, found_by = (None, "") if incumbent is None else (incumbent.sequence, incumbent.found_by)
        return Result(status, stop, sequence, problem.ideal_cost, reason, provenance={"found_by": found_by})
    return solve_from(problem, settings, watch, incumbent)


def solve_from(problem: Problem, settings: Settings, watch: Watch, incumbent: Candidate | None) -> Result:
    """The exact MILP from an incumbent; where the paper's search space holds nothing, a larger one, and the smallest budget that works."""
    exact = solve_exactly(problem, settings, watch, incumbent=incumbent)
    if exact.status is not Status.INFEASIBLE or incumbent is not None:
        return _conclude(problem, settings, exact, incumbent)
    wider = replace(settings, formulation=FormulationName.LIVENESS)
    watch.on_event(Event("nothing fits with one recomputation per stage; allowing two"))
    exact = solve_exactly(problem, wider, watch, repeated_runs(problem))
    if exact.status is Status.INFEASIBLE:
        explained = _explain_infeasible(problem, wider, watch)
        proven = bounding_problem(problem) is problem or explained.status is not Status.INFEASIBLE
        return explained if proven else replace(explained, status=Status.UNKNOWN)
    return _conclude(problem, wider, exact, None)


def _conclude(problem: Problem, settings: Settings, exact: Exact, incumbent: Candidate | None) -> Result:
    """Take the better of what the MILP found and what was known, with what the MILP proved."""
    provenance: Provenance = {"solver": settings.solver, "formulation": settings.formulation}
    best = cheaper(exact.candidate, incumbent)
    if best is None:
        return Result(Status.UNKNOWN, exact.stop, None, exact.bound, "no schedule was found", provenance=provenance)
    bound = min(exact.bound, best.cost)
    status = Status.OPTIMAL if best.cost - bound <= settings.gap * best.cost else Status.FEASIBLE
    model = MemoryModel.GENERIC if bounding_problem(problem) is not problem else None
    return Result(status, exact.stop, best.sequence, bound, provenance=provenance | {"found_by": best.found_by}, bound_model=model)


def _explain_infeasible(problem: Problem, settings: Settings, watch: Watch) -> Result:
    """Say which budget would work, and which operation stands in the way."""
    watch.on_event(Event("no schedule fits; looking for the smallest budget that works"))
    limit, sequence = smallest_peak(problem, settings, watch)
    scope = "proven for every schedule that follows the graph's order and recomputes an operation at most twice per stage"
    reason = f"no schedule fits {format_bytes(problem.budget)} ({scope}); "
    if sequence is None:
        above = max(limit, problem.budget + 1)
        reason += f"the smallest budget that could work is at least {format_bytes(above)} ({above} bytes)"
        return Result(Status.INFEASIBLE, Stop.FINISHED, reason=reason, smallest_budget=above)
    made = profile(problem, sequence)
    if made.peak <= problem.budget:
        watch.on_event(failure(settings.solver, "it calls infeasible what is not; its answer is ignored"))
        return Result(Status.FEASIBLE, Stop.FINISHED, sequence, problem.ideal_cost, provenance={"found_by": "smallest peak"})
    binding = problem.operation_name(sequence[made.memory.index(made.peak)])
    word = "the smallest budget that could work is" if limit >= made.peak else "a budget that works is"
    reason += f"{word} {format_bytes(made.peak)} ({made.peak} bytes), taken while {binding!r} runs"
    return Result(Status.INFEASIBLE, Stop.FINISHED, reason=reason, smallest_budget=made.peak, binding_operation=binding)
