"""Linear programs for bounds, solved by HiGHS, with a bound that does not depend on the solver's tolerances.

If all columns are bounded, any dual values of the rows prove a bound, by weak duality. This bound is returned, not the solver's objective,
so it also holds if the solver was stopped early.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..events import Watch
from ..milp.standard_form import StandardForm
from ..params import PARAMS
from .highs import ask

ROUNDING = 1e-11
"""Relative to the largest sums: far above the rounding errors of the bound, and far below any relevant difference."""


@dataclass(frozen=True, slots=True, eq=False)
class LinearSolution:
    """The result of an LP. It has values only if it was solved."""

    bound: float
    """Proven: no point of the program has an objective below this. Infinite if it has no point at all."""
    values: NDArray[np.float64] | None


def solve_linear(form: StandardForm, watch: Watch) -> LinearSolution:
    """Minimize; every column of `form` must be bounded."""
    if not form.columns:
        return LinearSolution(form.offset if (form.row_lower <= 0.0).all() else np.inf, np.zeros(0))
    options: dict[str, object] = {"threads": 1}
    if form.columns > PARAMS.integer_columns:
        options["solver"] = "ipm"
    answer = ask(form, options, watch)
    if answer.word == "kInfeasible":
        return LinearSolution(np.inf, None)
    if answer.prices is None or len(answer.prices) != len(form.row_lower) or not np.isfinite(answer.prices).all():
        return LinearSolution(-np.inf, None)
    return LinearSolution(proven_bound(form, answer.prices), answer.values if answer.word == "kOptimal" else None)


def proven_bound(form: StandardForm, prices: NDArray[np.float64]) -> float:
    """The Lagrangian bound from dual values of the rows; a dual value with the wrong sign for a one-sided row counts as 0."""
    up = np.where(np.isfinite(form.row_lower), np.maximum(prices, 0.0), 0.0)
    down = np.where(np.isfinite(form.row_upper), np.minimum(prices, 0.0), 0.0)
    used = up + down
    limits = np.where(used > 0, form.row_lower, np.where(used < 0, form.row_upper, 0.0))
    rows = used * limits
    reduced = form.objective - form.matrix.transposed_times(used)
    columns = np.where(reduced > 0, form.column_lower, form.column_upper) * reduced
    size = float(np.abs(rows).sum() + np.abs(columns).sum() + abs(form.offset))
    return float(rows.sum() + columns.sum() + form.offset - ROUNDING * size)
