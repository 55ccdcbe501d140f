"""Linear programs for bounds, by HiGHS, with a bound that holds whatever the solver's tolerances were.

Any prices of the rows, multiplied out, prove a bound on a program whose columns are boxed: that is what is returned, not the solver's word.
So it holds too when the solver was stopped before it was done.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..events import Watch
from ..milp.standard_form import StandardForm
from .highs import ask

ROUNDING = 1e-11
"""Relative to the largest sums: far more than what floating point can lose in adding up the proof, far less than anyone would notice."""


@dataclass(frozen=True, slots=True, eq=False)
class LinearSolution:
    """What came out of an LP. Values are there only if it was solved."""

    bound: float
    """Proven: no point of the program has an objective below this. Infinite if it has no point at all."""
    values: NDArray[np.float64] | None


def solve_linear(form: StandardForm, watch: Watch) -> LinearSolution:
    """Minimise, every column of `form` being boxed."""
    if not form.columns:
        return LinearSolution(form.offset if (form.row_lower <= 0.0).all() else np.inf, np.zeros(0))
    answer = ask(form, {"threads": 1}, watch)
    if answer.word == "kInfeasible":
        return LinearSolution(np.inf, None)
    if answer.prices is None or len(answer.prices) != len(form.row_lower) or not np.isfinite(answer.prices).all():
        return LinearSolution(-np.inf, None)
    return LinearSolution(proven_bound(form, answer.prices), answer.values if answer.word == "kOptimal" else None)


def proven_bound(form: StandardForm, prices: NDArray[np.float64]) -> float:
    """The Lagrangian bound of row prices; prices of the wrong sign for a row without a limit on that side count as nothing."""
    up = np.where(np.isfinite(form.row_lower), np.maximum(prices, 0.0), 0.0)
    down = np.where(np.isfinite(form.row_upper), np.minimum(prices, 0.0), 0.0)
    used = up + down
    limits = np.where(used > 0, form.row_lower, np.where(used < 0, form.row_upper, 0.0))
    rows = used * limits
    reduced = form.objective - form.matrix.T @ used
    columns = np.where(reduced > 0, form.column_lower, form.column_upper) * reduced
    size = float(np.abs(rows).sum() + np.abs(columns).sum() + abs(form.offset))
    return float(rows.sum() + columns.sum() + form.offset - ROUNDING * size)
