"""Keep-all: no recomputation. Its cost is the ideal cost, and percentages of a budget refer to its peak."""

from __future__ import annotations

from ..events import Watch
from ..model.problem import Problem
from ..result import Result
from ..settings import Settings
from .choice import judged


def keep_all(problem: Problem, settings: Settings, watch: Watch) -> Result:
    """Compute every operation once and keep each value until its last use."""
    return judged(problem, range(problem.count))
