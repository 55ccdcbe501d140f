"""Keep everything: the ideal cost and the peak that percentages of a budget refer to."""

from __future__ import annotations

from ..events import Watch
from ..problem import Problem
from ..result import Solution
from ..settings import Settings
from .outcome import judged


def keep_all(problem: Problem, settings: Settings, watch: Watch) -> Solution:
    """Compute every operation once and keep each value until its last use."""
    return judged(problem, range(problem.count))
