"""Where a budget is so tight that nothing fits at once: come down to it, schedule by schedule."""

from __future__ import annotations

from ..events import Event, Watch
from ..problem import Problem
from ..search.views import search_views
from ..sequence import profile
from ..settings import Settings
from ..units import format_bytes

MOVES_PER_OPERATION = 60
MOST_MOVES = 40_000
FIRST_STEP = 4
"""The first step is this part of the way; each that fails is halved."""
FINEST_STEP = 500
"""A descent that cannot save this part of the budget has ended."""


def descend(problem: Problem, settings: Settings, watch: Watch) -> tuple[int, ...] | None:
    """A schedule that fits, from keeping everything down through ever smaller budgets; None if that ends above the budget."""
    best = tuple(range(problem.count))
    reached = profile(problem, best).peak
    step = (reached - problem.budget) // FIRST_STEP
    moves = min(MOST_MOVES, MOVES_PER_OPERATION * problem.count)
    tries = 0
    while reached > problem.budget and not watch.expired:
        goal = max(problem.budget, reached - max(1, step))
        tries += 1
        found = search_views(problem.with_budget(goal), [best], settings.seed + tries, moves, watch)
        if found is None:
            step //= 2
            if step < reached // FINEST_STEP:
                return None
            continue
        best, reached = found, profile(problem, found).peak
        watch.on_event(Event("descent", message=f"down to {format_bytes(reached)}"))
    return best if reached <= problem.budget else None
