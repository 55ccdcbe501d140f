"""A proven lower bound for graphs of any size, from the merged-stage relaxation."""

from __future__ import annotations

from collections.abc import Iterator

from ..events import Event, Watch
from ..milp.runs import merged_runs, tight_runs
from ..milp.windows import build_windows
from ..problem import Problem
from ..result import Status
from ..settings import Settings
from ..solvers import get_solver
from .exact import BUILD_RATE

SAFETY = 1e-7
"""Taken off every LP value, relative: the solver's dual tolerance must not make a bound too high."""
ENTRIES_PER_OPERATION = 16
"""About how many nonzeros one operation has in one stage of the relaxation."""


def windows_bound(problem: Problem, settings: Settings, watch: Watch, incumbent: tuple[int, ...] | None = None) -> float:
    """The best bound that ever more stages give while time remains; at least the ideal cost.

    Stages end where the incumbent takes the most memory, if there is one.
    """
    best = problem.ideal_cost
    for runs in _cuts(problem, incumbent):
        if watch.expired or problem.count * len(runs) * ENTRIES_PER_OPERATION > BUILD_RATE * watch.remaining:
            break
        formulated = build_windows(problem, runs)
        result = get_solver(settings.solver).solve(formulated.form.relaxed(), settings, watch)
        if result.status is not Status.OPTIMAL:
            break
        best = max(best, result.bound * formulated.unit * (1 - SAFETY))
        watch.on_event(Event("bounding", bound=best, message=f"{len(runs)} stages"))
    return best


def _cuts(problem: Problem, incumbent: tuple[int, ...] | None) -> Iterator[tuple[range, ...]]:
    yield merged_runs(problem, 2)
    for count in (8, 24, 64):
        yield merged_runs(problem, count) if incumbent is None else tight_runs(problem, incumbent, count)
