"""A proven lower bound for graphs of any size, from the merged-stage relaxation."""

from __future__ import annotations

from ..events import Event, Watch
from ..milp.runs import merged_runs
from ..milp.windows import build_windows
from ..problem import Problem
from ..result import Status
from ..settings import Settings
from ..solvers import get_solver

SAFETY = 1e-7
"""Taken off every LP value, relative: the solver's dual tolerance must not make a bound too high."""


def windows_bound(problem: Problem, settings: Settings, watch: Watch) -> float:
    """The best bound that ever more stages give while time remains; at least the ideal cost."""
    best = problem.ideal_cost
    for count in (2, 8, 24):
        if watch.expired or problem.count * count > 40_000 * watch.remaining:
            break
        formulated = build_windows(problem, merged_runs(problem, count))
        result = get_solver(settings.solver).solve(formulated.form.relaxed(), settings, watch)
        if result.status is not Status.OPTIMAL:
            break
        best = max(best, result.bound * formulated.unit * (1 - SAFETY))
        watch.on_event(Event("bounding", bound=best, message=f"{count} stages"))
    return best
