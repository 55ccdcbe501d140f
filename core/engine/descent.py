"""Where a budget is so tight that nothing fits at once: come down to it, schedule by schedule."""

from __future__ import annotations

from collections.abc import Callable

from ..events import Event, Watch
from ..model.problem import Problem
from ..model.units import format_bytes
from ..schedule.sequence import profile

FIRST_STEP = 4
"""The first step is this part of the way; each that fails is halved."""
FINEST_STEP = 500
"""A descent that cannot save this part of the budget has ended."""

Search = Callable[[Problem, tuple[int, ...], int], tuple[int, ...] | None]
"""Looks for a schedule of a problem, from a schedule that takes a little too much, with a seed."""


def descend(problem: Problem, start: tuple[int, ...], seed: int, search: Search, watch: Watch) -> tuple[int, ...]:
    """From a schedule down through ever smaller budgets: the schedule of the lowest peak found, or the first that fits."""
    best = start
    reached = profile(problem, best).peak
    step = (reached - problem.budget) // FIRST_STEP
    while reached > problem.budget and not watch.expired:
        goal = max(problem.budget, reached - max(1, step))
        seed += 1
        found = search(problem.with_budget(goal), best, seed)
        if found is None:
            step //= 2
            if step < max(1, reached // FINEST_STEP):
                break
            continue
        best, reached = found, profile(problem, found).peak
        watch.on_event(Event("descent", message=f"down to {format_bytes(reached)}"))
    return best
