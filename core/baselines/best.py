"""Results before any solving: no schedule fits, keep-all fits, or the cheapest baseline that fits."""

from __future__ import annotations

from ..events import Event, Watch
from ..model.bounding import bounding_problem
from ..model.floors import Floor, feasibility_floor, least_memory
from ..model.problem import Problem
from ..model.units import format_bytes
from ..result import Result, Status, Stop
from ..schedule.peak import keep_all_profile
from ..schedule.sequence import Candidate, candidate, in_stage_order, prune
from ..settings import Settings
from . import BASELINES, get_baseline

KNOWN = "known before"
"""`found_by` of a schedule that a strategy was given to start from."""


def infeasible(problem: Problem) -> Result | None:
    """A proof that no schedule fits, if the values that must be in memory together already exceed the budget.

    The solver's model ignores computing in place and what views allow; if the budget is exceeded only because of that, nothing is proven.
    """
    floor = least_memory(problem)
    if floor.bytes > problem.budget:
        return _nothing_fits(problem, floor, Status.INFEASIBLE, "that is the smallest budget that could work")
    floor = feasibility_floor(problem)
    if floor.bytes <= problem.budget or keep_all_profile(problem).peak <= problem.budget:
        return None
    if bounding_problem(problem) is problem:
        return _nothing_fits(problem, floor, Status.INFEASIBLE, "that is the smallest budget that could work in this order")
    return _nothing_fits(problem, floor, Status.UNKNOWN, "one might fit by computing in place, which the solver does not model")


def _nothing_fits(problem: Problem, floor: Floor, status: Status, consequence: str) -> Result:
    needs = f"operation {floor.operation!r} alone needs" if floor.operation else "every schedule needs"
    reason = (
        f"no schedule fits {format_bytes(problem.budget)}: {needs} {format_bytes(floor.bytes)} ({floor.bytes} bytes) for {floor.reason}; "
        f"{consequence}"
    )
    return Result(status, Stop.FINISHED, reason=reason, smallest_budget=floor.bytes, binding_operation=floor.operation)


def keep_everything(problem: Problem) -> Result | None:
    """Keep-all, if it fits: the optimum."""
    sequence = tuple(range(problem.count))
    if keep_all_profile(problem).peak > problem.budget:
        return None
    return Result(Status.OPTIMAL, Stop.FINISHED, sequence, problem.ideal_cost, provenance={"found_by": "keep-all"})


def best_baseline(problem: Problem, settings: Settings, watch: Watch) -> Candidate | None:
    """The cheapest schedule of a baseline that fits, without useless recomputations."""
    best: Candidate | None = None
    for name in BASELINES:
        if watch.expired:
            break
        sequence = get_baseline(name)(problem, settings, watch).sequence
        if sequence is None:
            continue
        for variant in {prune(problem, sequence), in_stage_order(problem, sequence)}:
            found = candidate(problem, variant, name)
            if found.fits(problem) and (best is None or found.cost < best.cost):
                best = found
                watch.on_event(Event("baselines", found.cost, problem.ideal_cost, f"{name} fits"))
    return best
