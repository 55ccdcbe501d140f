"""What one run of a strategy amounts to, in the numbers people and programs ask for. Every command reports these and no others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..core.certify import Certified
from ..core.events import relative_gap
from ..core.problem import Problem
from ..core.result import Status, Stop


@dataclass(frozen=True, slots=True)
class Outcome:
    """A certified schedule, whether or not it fits."""

    strategy: str
    status: Status
    stop: Stop
    fits: bool
    cost: float
    ideal_cost: float
    bound: float
    gap: float | None
    """None if it does not fit: then its cost says nothing about the optimum."""
    peak_bytes: int
    budget_bytes: int
    keep_all_peak_bytes: int
    operations: int
    recomputed: int
    seconds: float
    provenance: dict[str, str | int | float]
    bound_scope: str
    """Whether the bound holds for schedules in this order of first computations only (`order`), or in `any`."""

    @property
    def overhead(self) -> float:
        """How much more than the ideal it costs, as a share of the ideal."""
        return self.cost / self.ideal_cost - 1 if self.ideal_cost > 0 else 0.0

    def fields(self) -> dict[str, Any]:
        """The keys of `--json`."""
        return {
            "status": self.status.value,
            "stop": self.stop.value,
            "strategy": self.strategy,
            "cost": self.cost,
            "ideal_cost": self.ideal_cost,
            "overhead": self.overhead,
            "bound": self.bound,
            "gap": self.gap,
            "bound_scope": self.bound_scope,
            "peak_bytes": self.peak_bytes,
            "budget_bytes": self.budget_bytes,
            "keep_all_peak_bytes": self.keep_all_peak_bytes,
            "operations": self.operations,
            "recomputed": self.recomputed,
            "seconds": round(self.seconds, 6),
            "provenance": dict(self.provenance),
        }


def outcome_of(certified: Certified, problem: Problem, keep_all_peak: int, gap_asked: float) -> Outcome:
    """Weigh a schedule. The ideal cost bounds every schedule from below, so even a strategy that proves nothing has a gap;
    a gap within what was asked for is the definition of optimal."""
    assert certified.simulation is not None
    cost, ideal = certified.simulation.cost, problem.ideal_cost
    bound = min(cost, max(ideal, certified.solution.bound or 0.0))
    gap = relative_gap(cost, bound) if certified.fits else None
    status = certified.solution.status
    if gap is not None and gap <= gap_asked:
        status = Status.OPTIMAL
    return Outcome(
        strategy=certified.strategy,
        status=status,
        stop=certified.solution.stop,
        fits=certified.fits,
        cost=cost,
        ideal_cost=ideal,
        bound=bound,
        gap=gap,
        peak_bytes=certified.simulation.peak_bytes,
        budget_bytes=problem.budget,
        keep_all_peak_bytes=keep_all_peak,
        operations=len(problem.graph.operations),
        recomputed=certified.simulation.recomputed,
        seconds=certified.seconds,
        provenance=certified.solution.provenance,
        bound_scope="any" if bound <= ideal else certified.solution.bound_scope,
    )
