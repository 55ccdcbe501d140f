"""The protocol of a strategy.

A strategy takes a problem and returns a sequence of its operations. It may ignore the budget, as most of the paper's baselines do: the
simulator and the verifier check afterwards whether the result fits.
"""

from __future__ import annotations

from typing import Protocol

from .events import Watch
from .model.problem import Problem
from .result import Result
from .settings import Settings


class Strategy(Protocol):
    """The first line of its docstring is its description in `checkmate compare` and in the docs."""

    def __call__(self, problem: Problem, settings: Settings, watch: Watch) -> Result: ...
