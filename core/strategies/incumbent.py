"""The best schedule known so far, and the heuristics that give the first one."""

from __future__ import annotations

from ..events import Event, Watch
from ..keep_all import keep_all_profile
from ..least_memory import least_memory
from ..problem import Floor, Problem, feasibility_floor
from ..result import Solution, Status, Stop
from ..runtime import Runtime
from ..sequence import in_stage_order, profile, prune
from ..settings import Settings
from ..units import format_bytes
from . import HEURISTICS, get_strategy

KNOWN = "known before"
"""Who found a schedule that a strategy was given to begin with."""


def infeasible(problem: Problem) -> Solution | None:
    """A proof that nothing fits, if the largest set of bytes that must be in memory together already says so.

    The optimizer's own model counts nothing as computed in place; where only that stands in the way, nothing is proven.
    """
    floor = least_memory(problem)
    if floor.bytes > problem.budget:
        return _nothing_fits(problem, floor, Status.INFEASIBLE, "that is the smallest budget that could work")
    floor = feasibility_floor(problem)
    if floor.bytes <= problem.budget or keep_all_profile(problem).peak <= problem.budget:
        return None
    if problem.runtime is Runtime.GENERIC:
        return _nothing_fits(problem, floor, Status.INFEASIBLE, "that is the smallest budget that could work in this order")
    return _nothing_fits(problem, floor, Status.UNKNOWN, "the optimizer counts on nothing being computed in place")


def _nothing_fits(problem: Problem, floor: Floor, status: Status, consequence: str) -> Solution:
    needs = f"{floor.operation!r} alone needs" if floor.operation else "it takes"
    reason = (
        f"no schedule fits {format_bytes(problem.budget)}: {needs} {format_bytes(floor.bytes)} ({floor.bytes} bytes) for {floor.reason}; "
        f"{consequence}"
    )
    return Solution(status, Stop.FINISHED, reason=reason, smallest_budget=floor.bytes, binding_operation=floor.operation)


def keep_everything(problem: Problem) -> Solution | None:
    """The optimum, if nothing needs to be recomputed."""
    sequence = tuple(range(problem.count))
    if keep_all_profile(problem).peak > problem.budget:
        return None
    return Solution(Status.OPTIMAL, Stop.FINISHED, sequence, problem.ideal_cost, provenance={"found_by": "keep-all"})


def best_heuristic(problem: Problem, settings: Settings, watch: Watch) -> tuple[tuple[int, ...] | None, str]:
    """The cheapest heuristic schedule that fits, pruned, and which heuristic made it."""
    best: tuple[int, ...] | None = None
    best_cost = float("inf")
    found_by = ""
    for name in HEURISTICS:
        if watch.expired:
            break
        sequence = get_strategy(name)(problem, settings, watch).sequence
        if sequence is None:
            continue
        for candidate in {prune(problem, sequence), in_stage_order(problem, sequence)}:
            made = profile(problem, candidate)
            if made.peak <= problem.budget and made.cost < best_cost:
                best, best_cost, found_by = candidate, made.cost, name
                watch.on_event(Event("heuristics", made.cost, problem.ideal_cost, f"{name} fits"))
    return best, found_by
