"""Check the answers of solvers against the matrix they were given.

A solution must satisfy the rows, its objective must agree with the bound, and if another solver reports infeasibility, HiGHS must confirm
it. A wrong answer is ignored, with a warning.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..events import Event, Watch
from ..milp.standard_form import StandardForm
from ..result import Status, Stop
from ..settings import Settings
from .base import Progress, Solver, SolverResult, failure, ignore

TOLERANCE = 1e-3
"""How far a solution may violate a limit, relative to it: solvers use 1e-6, and the schedule is verified exactly later."""


class Checked:
    """A solver whose answers are checked; `judge` is a second solver that must confirm infeasibility."""

    def __init__(self, solver: Solver, judge: Solver | None = None) -> None:
        self._solver, self._judge = solver, judge
        self.name = solver.name

    def require(self) -> None:
        self._solver.require()

    def version(self) -> str:
        return self._solver.version()

    def solve(
        self,
        form: StandardForm,
        settings: Settings,
        watch: Watch,
        start: Mapping[int, float] | None = None,
        on_progress: Progress = ignore,
    ) -> SolverResult:
        result = self._solver.solve(form, settings, watch, start, on_progress)
        lie = found_lie(form, result)
        if lie:
            watch.on_event(failure(self.name, f"{lie}; its answer is ignored"))
            return SolverResult(Status.UNKNOWN, Stop.FINISHED)
        if result.status is Status.INFEASIBLE and self._judge is not None:
            return self._second_opinion(form, settings, watch, result)
        if result.status is Status.OPTIMAL and not _is_within_gap(form, result, settings.gap):
            return replace(result, status=Status.FEASIBLE)
        return result

    def _second_opinion(self, form: StandardForm, settings: Settings, watch: Watch, result: SolverResult) -> SolverResult:
        """Infeasibility is the one claim that cannot be checked without solving again."""
        assert self._judge is not None
        watch.on_event(Event(f"{self.name} reports that no schedule fits; checking with {self._judge.name}"))
        second = self._judge.solve(form, replace(settings, gap=0.5), watch)
        if second.status is Status.INFEASIBLE:
            return result
        if second.values is not None and not found_lie(form, second):
            watch.on_event(failure(self.name, "it reports a feasible model as infeasible; its answer is ignored"))
            return second
        return SolverResult(Status.UNKNOWN, second.stop)


def found_lie(form: StandardForm, result: SolverResult) -> str:
    """What is wrong with an answer; empty if nothing is."""
    values = result.values
    if result.status is Status.OPTIMAL and values is None:
        return "it claims an optimum without a solution"
    if values is None:
        return ""
    if values.shape != (form.columns,) or not np.isfinite(values).all():
        return "its solution has missing values"
    if _excess(values, form.column_lower, form.column_upper) > TOLERANCE:
        return "its solution violates the limits of a variable"
    if form.integer.any() and np.abs(values[form.integer] - np.rint(values[form.integer])).max() > TOLERANCE:
        return "its solution is not integer"
    if _excess(form.matrix @ values, form.row_lower, form.row_upper) > TOLERANCE:
        return "its solution violates a constraint"
    cost = _cost(form, values)
    if result.bound - cost > TOLERANCE * max(1.0, abs(cost)):
        return f"its solution costs {cost:.6g}, which is below the bound of {result.bound:.6g} that it claims"
    return ""


def _excess(amounts: NDArray[np.float64], lower: NDArray[np.float64], upper: NDArray[np.float64]) -> float:
    """The largest violation, relative to its limit."""
    above = (amounts - upper) / np.maximum(1.0, np.abs(np.where(np.isfinite(upper), upper, 0.0)))
    below = (lower - amounts) / np.maximum(1.0, np.abs(np.where(np.isfinite(lower), lower, 0.0)))
    return float(max(above.max(initial=0.0), below.max(initial=0.0)))


def _cost(form: StandardForm, values: NDArray[np.float64]) -> float:
    return float(form.objective @ values) + form.offset


def _is_within_gap(form: StandardForm, result: SolverResult, gap: float) -> bool:
    assert result.values is not None
    cost = _cost(form, result.values)
    return cost - result.bound <= max(gap, 1e-6) * max(1.0, abs(cost)) * (1 + TOLERANCE)
