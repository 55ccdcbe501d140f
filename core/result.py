"""The result of solving one problem. What is known (Status) is separate from why the search ended (Stop).

A strategy returns a result without a certificate. `certified` adds the schedule, replayed by the simulator and passed by the verifier.
Every figure that is shown or written comes from the certificate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum, StrEnum
from functools import cached_property

from .errors import InfeasibleError
from .events import Event, relative_gap
from .model.memory_model import MemoryModel
from .model.problem import Problem
from .schedule.certify import certify
from .schedule.peak import keep_all_profile
from .schedule.schedule import Schedule
from .schedule.simulate import Simulation


class Status(Enum):
    """What is known about the problem."""

    OPTIMAL = "optimal"
    """A schedule that fits, with a gap of at most the one asked for."""
    FEASIBLE = "feasible"
    """A schedule that fits."""
    INFEASIBLE = "infeasible"
    """A proof that no schedule fits."""
    UNKNOWN = "unknown"
    """Neither a schedule that fits nor a proof that none does."""


class Stop(Enum):
    """Why the search ended."""

    FINISHED = "finished"
    TIME_LIMIT = "time-limit"
    INTERRUPTED = "interrupted"


class Scope(StrEnum):
    """Which schedules a bound holds for."""

    ORDER = "order"
    """Schedules with the same order of first computations."""
    ANY = "any"
    """All."""


Provenance = dict[str, str | int | float]


@dataclass(frozen=True)
class Result:
    """The result of one strategy on one problem. The sequence may exceed the budget if the strategy ignores budgets."""

    status: Status
    stop: Stop
    sequence: tuple[int, ...] | None = None
    """Operations of the problem in the order in which they are computed, recomputations included."""
    bound: float | None = None
    """A proven lower limit on the cost of every schedule in `bound_scope`; None if the strategy proves nothing."""
    reason: str = ""
    """Why there is no schedule, for the user."""
    smallest_budget: int | None = None
    """If no schedule fits: the smallest budget that could work."""
    binding_operation: str = ""
    """If no schedule fits: the operation that needs that budget."""
    provenance: Provenance = field(default_factory=dict)
    """The solver, formulation and parameters that found it."""
    bound_scope: Scope = Scope.ORDER
    any_bound: float | None = None
    """The same for every schedule, whatever its order, where `bound` holds for one order only."""
    bound_model: MemoryModel | None = None
    """The memory model that `bound` is for: `generic` if schedules that compute in place are not among those it holds for. None for the
    memory model of the problem."""
    strategy: str = ""
    seconds: float = 0.0
    certificate: Certificate | None = field(default=None, repr=False)
    """None until `certified`, and if there is no sequence."""

    @property
    def found_by(self) -> str:
        """The part of the strategy that found the schedule."""
        return str(self.provenance.get("found_by", self.strategy))

    @property
    def fits(self) -> bool:
        """True if there is a certified schedule within the budget."""
        return self.certificate is not None and self.certificate.fits

    @property
    def proof(self) -> Certificate:
        """The certificate of a result that has one."""
        assert self.certificate is not None
        return self.certificate

    @property
    def schedule(self) -> Schedule | None:
        return None if self.certificate is None else self.certificate.schedule

    @property
    def simulation(self) -> Simulation | None:
        return None if self.certificate is None else self.certificate.simulation

    @property
    def cost(self) -> float:
        """Infinite without a schedule."""
        return float("inf") if self.certificate is None else self.certificate.simulation.cost

    @property
    def peak_bytes(self) -> int:
        return self.proof.simulation.peak_bytes

    @property
    def recomputed(self) -> int:
        """Computations beyond the first of each operation, views not counted."""
        return self.proof.simulation.recomputed

    @property
    def overhead(self) -> float:
        """(cost - ideal cost) / ideal cost."""
        ideal = self.proof.problem.ideal_cost
        return self.cost / ideal - 1 if ideal > 0 else 0.0

    @property
    def gap(self) -> float | None:
        """(cost - bound) / cost. None if the schedule does not fit, because its cost then says nothing about the optimum."""
        return relative_gap(self.cost, self.bound or 0.0) if self.fits else None


@dataclass(frozen=True)
class Certificate:
    """A schedule and its problem. The simulator replayed it, and the independent verifier agreed on every number."""

    problem: Problem
    schedule: Schedule
    simulation: Simulation

    @property
    def fits(self) -> bool:
        return self.simulation.peak_bytes <= self.problem.budget

    @cached_property
    def keep_all_peak_bytes(self) -> int:
        """The peak of keep-all for the same graph."""
        return keep_all_profile(self.problem).peak


def certified(result: Result, problem: Problem, gap: float, on_event: Callable[[Event], None] = lambda event: None) -> Result:
    """The same result with its certificate. The ideal cost is a bound for every schedule, so even a strategy that proves nothing has one.
    The status is optimal if the gap is at most the one asked for. Raises VerificationError."""
    bound = max(result.bound or 0.0, problem.ideal_cost)
    scope = Scope.ANY if bound <= problem.ideal_cost else result.bound_scope
    model = problem.memory_model if scope is Scope.ANY or result.bound_model is None else result.bound_model
    any_bound = bound if scope is Scope.ANY else max(result.any_bound or 0.0, problem.ideal_cost)
    result = replace(result, bound=bound, bound_scope=scope, any_bound=any_bound, bound_model=model)
    if result.sequence is None:
        return result
    certificate = Certificate(problem, *certify(problem, result.sequence, on_event))
    if not certificate.fits:
        return replace(result, certificate=certificate)
    cost = certificate.simulation.cost
    bound = min(bound, cost)
    status = Status.OPTIMAL if relative_gap(cost, bound) <= gap else result.status
    return replace(result, certificate=certificate, bound=bound, any_bound=min(any_bound, cost), status=status)


def infeasible_error(result: Result, budget: int) -> InfeasibleError:
    """The error for a result that proves that no schedule fits."""
    smallest = result.smallest_budget or budget + 1
    return InfeasibleError(result.reason, budget, smallest, result.binding_operation, "the schedule of the lowest peak")
