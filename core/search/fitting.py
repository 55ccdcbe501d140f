"""What a search may return: only what fits."""

from __future__ import annotations

from collections.abc import Sequence

from ..model.problem import Problem
from ..schedule.sequence import profile


def cheapest_that_fits(problem: Problem, candidates: Sequence[tuple[int, ...]]) -> tuple[int, ...] | None:
    """The cheapest of some sequences, of those that fit."""
    fitting = [(made.cost, candidate) for candidate in candidates if (made := profile(problem, candidate)).peak <= problem.budget]
    return min(fitting)[1] if fitting else None
