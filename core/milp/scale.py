"""Numbers that suit a solver."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

from ..model.problem import Problem

LARGEST_COEFFICIENT = 1e4
"""Memory rows are scaled to this: far from the solvers' absolute tolerance of 1e-6 and from numerical trouble."""

LEAST_COST = 1e-3
"""Costs are left as they are if none is below this: a solver takes differences of 1e-7 for none."""


@dataclass(frozen=True, slots=True)
class Scale:
    """Bytes and costs in numbers that suit a solver.

    Sizes are divided by their greatest common divisor first, so that the budget can be rounded down to a whole multiple: left-hand sides of
    memory rows are multiples too, and a solver's tolerance cannot let a schedule through that is a little too large.
    """

    size: tuple[float, ...]
    workspace: tuple[float, ...]
    available: float
    cost: tuple[float, ...]
    bytes_unit: float
    cost_unit: float
    """The real bytes and the real cost of one unit of the scaled model."""

    @staticmethod
    def of(problem: Problem) -> Scale:
        unit = functools.reduce(math.gcd, (*problem.size, *problem.workspace)) or 1
        most = max(max(problem.size, default=0), max(problem.workspace, default=0), 1)
        bytes_unit = max(1.0, most / unit / LARGEST_COEFFICIENT) * unit
        ideal = problem.ideal_cost
        least = min((cost for cost in problem.cost if cost > 0), default=1.0)
        cost_unit = 1.0 if least >= LEAST_COST and ideal <= 1e5 else ideal / 1000
        return Scale(
            size=tuple(size / bytes_unit for size in problem.size),
            workspace=tuple(size / bytes_unit for size in problem.workspace),
            available=(problem.available // unit * unit) / bytes_unit,
            cost=tuple(cost / cost_unit for cost in problem.cost),
            bytes_unit=bytes_unit,
            cost_unit=cost_unit,
        )
