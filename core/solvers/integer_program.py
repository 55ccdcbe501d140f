"""Integer programs for bounds. Always solved by HiGHS, because it can be told to stop as soon as a bound is of no use."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..events import Watch
from ..milp.standard_form import StandardForm
from .highs import ask

SAFETY = 1e-7
"""Relative; subtracted from a bound, because it depends on the solver's tolerances."""


def solve_whole(form: StandardForm, gap: float, seed: int, to_beat: float, watch: Watch, start: Mapping[int, float] | None) -> float:
    """No point of the program has an objective below this; infinite if it has no point at all.

    The solver stops as soon as it has found a point with an objective of no more than `to_beat`.
    """
    if not form.columns:
        return form.offset if (form.row_lower <= 0.0).all() else np.inf
    options = {"mip_rel_gap": gap, "mip_abs_gap": 1e-9, "random_seed": seed, "threads": 1, "objective_target": to_beat}
    answer = ask(form, options, watch, start)
    return np.inf if answer.word == "kInfeasible" else answer.bound - SAFETY * abs(answer.bound)
