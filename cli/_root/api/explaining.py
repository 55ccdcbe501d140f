"""Explain a schedule, and find what more memory would gain."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil

from ..core.events import Watch
from ..core.result import Scope, Stop
from ..core.settings import Known, Order, Settings
from ..core.studies.explanation import Peak, Purchase, explain_peak, largest_dropped, recomputations, what_it_buys
from .schedule_file import Schedule


@dataclass(frozen=True, slots=True)
class LargerBudget:
    """What a larger budget would gain: the best schedule found for it, or the present one if none is cheaper."""

    budget: int
    share: Fraction
    cost: float
    bound: float
    """No schedule within the larger budget is cheaper than this."""
    bound_scope: Scope
    recomputed: int
    peak: int
    improved: bool
    stop: Stop
    seconds: float


@dataclass(frozen=True, slots=True)
class Explanation:
    """The facts that `checkmate explain` puts into words."""

    schedule: Schedule
    peak: Peak
    repeated: int
    """Operations that run more than once."""
    repeats_cost: float
    purchases: tuple[Purchase, ...]
    larger: LargerBudget | None


def explain_schedule(schedule: Schedule) -> Explanation:
    """What is in memory at its peak, what is recomputed, and how much memory the largest recomputations save."""
    examined = schedule.examined
    repeated = recomputations(examined)
    purchases = tuple(what_it_buys(examined, entry) for entry in largest_dropped(repeated))
    return Explanation(schedule, explain_peak(examined), len(repeated), sum(entry.cost for entry in repeated), purchases, None)


def larger_budget(explanation: Explanation, more: Fraction, watch: Watch) -> LargerBudget:
    """Solve with the larger budget, starting from the present schedule, which fits it too."""
    examined, document = explanation.schedule.examined, explanation.schedule.document
    problem, present = examined.problem.with_budget(ceil(document.budget_bytes * (1 + more))), examined.simulation
    nothing = LargerBudget(
        budget=problem.budget,
        share=more,
        cost=present.cost,
        bound=problem.ideal_cost,
        bound_scope=Scope.ANY,
        recomputed=present.recomputed,
        peak=present.peak_bytes,
        improved=False,
        stop=Stop.FINISHED,
        seconds=0.0,
    )
    if present.cost <= problem.ideal_cost:
        return nothing
    from ..core.engine.run import run_strategy

    settings = Settings(order=Order.SEARCH, seed=document.seed, known=Known(examined.sequence))
    found = run_strategy(problem, "auto", settings, watch)
    nothing = replace(nothing, stop=found.stop, seconds=found.seconds)
    bound = found.bound or problem.ideal_cost
    if bound > problem.ideal_cost:
        nothing = replace(nothing, bound=min(bound, present.cost), bound_scope=found.bound_scope)
    if not found.fits or found.cost >= present.cost:
        return nothing
    return replace(
        nothing,
        cost=found.cost,
        bound=bound,
        bound_scope=found.bound_scope,
        recomputed=found.recomputed,
        peak=found.peak_bytes,
        improved=True,
    )
