"""The default strategy: the same for the same seed, and never worse for what it was told."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from chains import unit_chain
from oracles import staged_optimum
from random_graphs import random_problem

from checkmate.core.engine.auto import auto
from checkmate.core.engine.run import run_strategy
from checkmate.core.events import Event, Watch
from checkmate.core.result import Status, Stop
from checkmate.core.schedule.sequence import profile
from checkmate.core.settings import Known, Settings


@pytest.mark.slow
@pytest.mark.parametrize("order", ["given", "search"])
def test_the_same_seed_gives_the_same_schedule(order: str) -> None:
    """If nothing is cut short by the clock."""
    problem = unit_chain(90, 24)
    settings = Settings(gap=0.08, seed=3, order=order)

    def solve() -> tuple[int, ...] | None:
        return auto(problem, settings, Watch(600)).sequence

    first, second = solve(), solve()
    assert first is not None
    assert first == second


@pytest.mark.slow
@pytest.mark.parametrize("order", ["given", "search"])
def test_iterations_end_the_work_and_how_long_it_may_take_changes_nothing(order: str) -> None:
    """A gap of zero is never met here: with twice the time, divided among the parts, the work would be another."""
    problem = unit_chain(50, 9)
    settings = Settings(gap=0.0, seed=3, order=order, iterations=3)
    watches = Watch(300), Watch(600)
    first, second = (run_strategy(problem, "auto", settings, watch) for watch in watches)
    assert first.fits
    assert first.schedule == second.schedule
    assert (first.bound, first.stop) == (second.bound, Stop.FINISHED)
    assert not any(watch.expired for watch in watches)


def test_what_is_known_is_where_it_begins() -> None:
    """A schedule and a bound that meet leave nothing to do; the result is never dearer than what was known."""
    problem = unit_chain(16, 8)
    solved = auto(problem, Settings(gap=1e-4), Watch(120))
    assert solved.sequence is not None
    assert solved.bound is not None
    cost = profile(problem, solved.sequence).cost
    assert cost == 43
    events: list[Event] = []
    known = Known(solved.sequence, solved.bound)
    again = auto(problem, Settings(gap=1e-4, known=known), Watch(120, on_event=events.append))
    assert again.status is Status.OPTIMAL
    assert again.provenance["found_by"] == "known before"
    assert not any("relaxation" in event.message for event in events)


def test_a_known_schedule_that_does_not_fit_is_ignored() -> None:
    problem = unit_chain(8, 4)
    known = Known(tuple(range(problem.count)))
    solution = auto(problem, Settings(gap=1e-4, known=known), Watch(60))
    assert solution.sequence is not None
    assert profile(problem, solution.sequence).cost == 26


@pytest.mark.slow
def test_bounds_hold_and_gaps_are_met_on_small_graphs() -> None:
    """Within the gap asked for, and no bound above the optimum."""
    solved = 0
    for seed in range(90_000, 90_120):
        problem = random_problem(seed)
        if not problem.count or (optimum := staged_optimum(problem)) == math.inf:
            continue
        solution = auto(problem, Settings(gap=0.05), Watch(60))
        assert solution.sequence is not None, seed
        made = profile(problem, solution.sequence)
        assert made.peak <= problem.budget, seed
        assert made.cost <= optimum / 0.95 + 1e-9, seed
        assert (solution.bound or 0.0) <= made.cost + 1e-9, seed
        tight = auto(problem, replace(Settings(), gap=1e-6), Watch(60))
        assert tight.bound is not None
        assert tight.bound <= optimum * (1 + 1e-6) + 1e-6, seed
        solved += 1
    assert solved > 30
