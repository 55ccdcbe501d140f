"""What a strategy gives back: what it holds (Status) apart from why it stopped (Stop)."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum


class Status(Enum):
    """What is known about the problem."""

    OPTIMAL = "optimal"
    """A schedule that fits, and a proof that none is cheaper by more than the gap asked for."""
    FEASIBLE = "feasible"
    """A schedule that fits."""
    INFEASIBLE = "infeasible"
    """A proof that no schedule fits."""
    UNKNOWN = "unknown"
    """Neither a schedule that fits nor a proof that none does."""


class Stop(Enum):
    """Why the work ended."""

    FINISHED = "finished"
    TIME_LIMIT = "time-limit"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True)
class Solution:
    """The outcome of a strategy, in operations of the problem. A sequence may not fit the budget if the strategy ignores budgets."""

    status: Status
    stop: Stop
    sequence: tuple[int, ...] | None = None
    bound: float | None = None
    """A proven lower limit on the cost of any schedule in the paper's search space; None if the strategy proves nothing."""
    reason: str = ""
    """Why there is no schedule, for the user."""
    smallest_budget: int | None = None
    """Where nothing fits: the smallest budget that could work."""
    binding_operation: str = ""
    """Where nothing fits: the operation during which that budget is taken."""
    provenance: dict[str, str | int | float] = field(default_factory=dict)
    """Which solver, formulation, parameters made it."""
    bound_scope: str = "order"
    """Whether the bound holds for the order of first computations in this schedule only, or for `any`."""
    unfinished: object = field(default=None, compare=False, repr=False)
    """What the strategy can go on from, if it is told so as `Known`, for the same problem in the same order."""
