"""What came of solving, for `solve` and for each job of a batch: an outcome that fits, or the error that says why there is none."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..core.certify import Certified
from ..core.errors import LimitError
from ..core.problem import Floor, Problem
from ..core.result import Status, Stop
from ..core.units import Budget, format_bytes
from .amounts import exact_bytes, format_elapsed
from .exit_codes import InterruptedWorkError
from .options import SolvingRequest
from .outcome import Outcome, outcome_of
from .pipeline import NoScheduleError, Prepared


def require_fitting(
    certified: Certified, prepared: Prepared, problem: Problem, solving: SolvingRequest, *, interrupted: bool = False
) -> Outcome:
    """The outcome, or the error that says why there is nothing to write."""
    if certified.simulation is not None and certified.fits:
        return outcome_of(certified, problem, prepared.keep_all.peak, solving.settings_for(certified.strategy).gap)
    solution = certified.solution
    if solution.status is Status.INFEASIBLE:
        smallest = Floor(solution.smallest_budget or problem.budget + 1, solution.binding_operation, "the schedule of the lowest peak")
        raise NoScheduleError(solution.reason, problem.budget, smallest)
    if interrupted:
        raise InterruptedWorkError("interrupted before any schedule was found that fits; nothing was written")
    if certified.simulation is not None:
        peak, over = certified.simulation.peak_bytes, certified.simulation.peak_bytes - problem.budget
        reason = f"its peak is {exact_bytes(peak)}, {format_bytes(over)} above {format_bytes(problem.budget)}"
    else:
        reason = solution.reason or "it gave none"
    if certified.strategy != "auto":
        advice = "try --strategy auto"
    elif solution.stop is Stop.TIME_LIMIT:
        advice = f"try a longer --time-limit than {format_elapsed(solving.time_limit)} or a larger budget"
    else:
        advice = "try a larger budget"
    raise LimitError(f"strategy {certified.strategy} found no schedule within the budget ({reason}); {advice}")


def solved_fields(prepared: Prepared, budget: Budget, outcome: Outcome, written: Sequence[Path]) -> dict[str, Any]:
    """The keys of `solve --json`, but for its format."""
    return {
        "graph": {"name": prepared.graph.name, "source": prepared.loaded.source, "format": prepared.loaded.format},
        **outcome.fields(),
        "budget": budget.text,
        "smallest_budget_bytes": prepared.floor.bytes,
        "cost_model": prepared.costs.model,
        "cost_unit": prepared.costs.unit,
        "outputs": [str(path) for path in written],
    }
