"""Believe no solver: what it claims is held against the matrix it was given.

A solution must satisfy the rows, its objective must agree with the bound, and what another solver calls infeasible must be so for HiGHS.
An answer that does not hold is dropped, and the user hears of it.
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
"""How far a solution may be off, relative to each limit: solvers work to 1e-6, and what is within ours is judged to the byte later on."""


class Checked:
    """A solver whose answers are checked; `judge` is asked where one alone cannot be believed."""

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
        """That nothing fits is the one claim which comes with nothing to check."""
        assert self._judge is not None
        watch.on_event(Event(f"{self.name} says that nothing fits; asking {self._judge.name}"))
        second = self._judge.solve(form, replace(settings, gap=0.5), watch)
        if second.status is Status.INFEASIBLE:
            return result
        if second.values is not None and not found_lie(form, second):
            watch.on_event(failure(self.name, "it calls infeasible what is not; its answer is ignored"))
            return second
        return SolverResult(Status.UNKNOWN, second.stop)


def found_lie(form: StandardForm, result: SolverResult) -> str:
    """What is wrong with an answer, or nothing."""
    values = result.values
    if result.status is Status.OPTIMAL and values is None:
        return "it claims an optimum without a solution"
    if values is None:
        return ""
    if values.shape != (form.columns,) or not np.isfinite(values).all():
        return "its solution has missing values"
    if _excess(values, form.column_lower, form.column_upper) > TOLERANCE:
        return "its solution exceeds the limits of a variable"
    if form.integer.any() and np.abs(values[form.integer] - np.rint(values[form.integer])).max() > TOLERANCE:
        return "its solution is not whole"
    if _excess(form.matrix @ values, form.row_lower, form.row_upper) > TOLERANCE:
        return "its solution violates a constraint"
    cost = _cost(form, values)
    if result.bound - cost > TOLERANCE * max(1.0, abs(cost)):
        return f"its solution costs {cost:.6g}, but it claims to have proven that none is below {result.bound:.6g}"
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
