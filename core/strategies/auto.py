"""The default: best heuristic, then a proven bound, then the MILP from there, within the time limit."""

from __future__ import annotations

from ..events import Event, Watch, relative_gap
from ..milp.runs import liveness_entries, merged_runs, single_runs
from ..problem import Problem
from ..result import Solution, Status, Stop
from ..sequence import profile
from ..settings import Settings
from .exact import fits_in_time, solve_exactly
from .incumbent import best_heuristic, infeasible, keep_everything
from .lp_rounding import round_relaxation
from .optimal import solve_from
from .windows_bound import windows_bound

EXACT_ENTRIES = 400_000
"""Above this many nonzeros the exact model rarely gets anywhere in a minute: merged stages come first."""


def auto(problem: Problem, settings: Settings, watch: Watch) -> Solution:
    """Best heuristic, then MILP from there: exact for small graphs, merged stages and a relaxation for large ones."""
    known = infeasible(problem) or keep_everything(problem)
    if known is not None:
        return known
    incumbent, found_by = best_heuristic(problem, settings, watch)
    entries = liveness_entries(problem, single_runs(problem))
    if settings.formulation == "paper" or (entries <= EXACT_ENTRIES and fits_in_time(entries, watch)):
        return solve_from(problem, settings, watch, incumbent, found_by)
    return _large(problem, settings, watch, incumbent, found_by)


def _large(problem: Problem, settings: Settings, watch: Watch, incumbent: tuple[int, ...] | None, found_by: str) -> Solution:
    """Too large for the exact model: a bound from a relaxation, schedules from rounding and from ever more stages."""
    bound = windows_bound(problem, settings, watch.part(watch.remaining / 4))
    best, by = incumbent, found_by
    provenance: dict[str, str | int | float] = {"solver": settings.solver, "formulation": settings.formulation}

    def better(sequence: tuple[int, ...] | None, name: str) -> None:
        nonlocal best, by
        if sequence is None:
            return
        made = profile(problem, sequence)
        if made.peak <= problem.budget and (best is None or made.cost < profile(problem, best).cost):
            best, by = sequence, name
            watch.on_event(Event(name, made.cost, bound))

    def done() -> bool:
        return watch.expired or (best is not None and relative_gap(profile(problem, best).cost, bound) <= settings.gap)

    if not done():
        better(round_relaxation(problem, settings, watch.part(watch.remaining / 3)), "lp-rounding")
    for count in (12, 24, 48, 96):
        runs = merged_runs(problem, count)
        if done() or not fits_in_time(liveness_entries(problem, runs), watch):
            break
        exact = solve_exactly(problem, settings, watch.part(watch.remaining / 2), runs, best)
        better(exact.sequence, f"{settings.solver} with {len(runs)} stages")
        provenance["stages"] = len(runs)
    stop = Stop.INTERRUPTED if watch.interrupted() else Stop.TIME_LIMIT if watch.expired else Stop.FINISHED
    if best is None:
        return Solution(Status.UNKNOWN, stop, None, bound, "no schedule was found within the time limit", provenance=provenance)
    proven = relative_gap(profile(problem, best).cost, bound) <= settings.gap
    return Solution(Status.OPTIMAL if proven else Status.FEASIBLE, stop, best, bound, provenance=provenance | {"found_by": by})
