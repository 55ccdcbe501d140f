"""What tests say of any walk of the search over stages."""

from __future__ import annotations

from checkmate.core.schedule.sequence import profile
from checkmate.core.search.local import LocalSearch, decode


def takes_what_it_says(walk: LocalSearch) -> bool:
    """The sequence of a state is never dearer or larger than the state says. Is it exactly as large?"""
    problem = walk.problem
    made = profile(problem, decode(problem, walk.layout, walk.state))
    peak = problem.base + int((walk.state.stages["held"] + walk.state.stages["extra"]).max())
    assert made.cost <= problem.ideal_cost + walk.cost + 1e-9
    assert made.peak <= max(peak, problem.base)
    return made.peak == peak
