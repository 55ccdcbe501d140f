"""Where few stages should end, and the integer programs that say so."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from chains import unit_chain
from oracles import unrestricted_optimum
from random_graphs import random_problem

from checkmate.core.bounds.relaxing import Relaxing
from checkmate.core.bounds.selecting import FINE, Selecting
from checkmate.core.events import Watch
from checkmate.core.milp.relaxation import Relaxation, build_relaxation, reduce_problem
from checkmate.core.milp.stages import closing_run, single_runs
from checkmate.core.model.problem import Problem
from checkmate.core.settings import Settings
from checkmate.core.solvers.integer_program import solve_whole
from checkmate.core.solvers.linear_program import solve_linear


def run_to_the_end(selecting: Selecting, worth: dict[int, float], most: int = 500) -> list[frozenset[int]]:
    """Tell it bounds that rise by what the nearest place worth anything is worth, less the farther from it."""
    asked = []
    while not selecting.exhausted:
        ends = selecting.next_ends
        asked.append(ends)
        assert len(asked) < most
        gains = [max((gain * 0.99 ** abs(place - end) for end in ends), default=0.0) for place, gain in worth.items()]
        selecting.tell(100.0 + sum(gains))
    return asked


def test_the_best_place_is_found_between_those_first_tried() -> None:
    selecting = Selecting(1000, frozenset({500}))
    asked = run_to_the_end(selecting, {777: 10.0})
    assert any(abs(place - 777) <= 1000**2 // FINE for place in selecting.chosen)
    assert len(asked) < 60


def test_one_place_after_the_other_as_long_as_the_bound_rises() -> None:
    selecting = Selecting(1000, frozenset({500}))
    run_to_the_end(selecting, {250: 10.0, 750: 8.0})
    assert any(abs(place - 250) <= 1000**2 // FINE for place in selecting.chosen)
    assert any(abs(place - 750) <= 70 for place in selecting.chosen)


def test_likely_places_come_first() -> None:
    asked = run_to_the_end(Selecting(1000, frozenset({500}), (333, 444)), {333: 10.0})
    assert asked[1:3] == [{500, 333}, {500, 444}]


def test_where_nothing_helps_it_ends_with_what_it_had() -> None:
    selecting = Selecting(1000, frozenset({500}))
    asked = run_to_the_end(selecting, {})
    assert selecting.chosen == {500}
    assert len(asked) < 60


def test_nothing_is_asked_twice_beside_the_same_ends() -> None:
    asked = run_to_the_end(Selecting(100, frozenset({40})), {20: 1.0, 77: 3.0})
    assert len(set(asked)) == len(asked)


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_the_smallest_graphs_end_too(count: int) -> None:
    selecting = Selecting(count, frozenset({1}))
    run_to_the_end(selecting, {1: 1.0})
    assert selecting.exhausted


def stages(problem: Problem, *ends: int) -> Relaxation:
    cuts = [0, *ends, problem.count]
    runs = [range(start, stop) for start, stop in pairwise(cuts)]
    return build_relaxation(reduce_problem(problem), (*runs, *closing_run(problem)))


def whole_bound(relaxation: Relaxation, to_beat: float = 0.0) -> float:
    return solve_whole(relaxation.as_integers(), 1e-7, 0, to_beat / relaxation.unit, Watch(60), None) * relaxation.unit


def test_whole_numbers_in_two_stages_bound_more_than_fractions_in_all() -> None:
    problem = random_problem(70_025, most=8)
    all_stages = build_relaxation(reduce_problem(problem), single_runs(problem))
    fractions = solve_linear(all_stages.form, Watch(60)).bound * all_stages.unit
    assert fractions < 52.0
    assert whole_bound(stages(problem, 7)) == pytest.approx(62.0)
    assert unrestricted_optimum(problem) == 62.0


def test_no_such_bound_exceeds_the_optimum_nor_what_was_to_be_beaten() -> None:
    above_ideal = 0
    for seed in range(60_000, 60_120):
        problem = random_problem(seed, most=8)
        if problem.count < 3 or (optimum := unrestricted_optimum(problem)) == math.inf:
            continue
        relaxation = stages(problem, problem.count // 2)
        bound = whole_bound(relaxation)
        assert bound <= optimum + 1e-6, seed
        assert whole_bound(relaxation, bound + 1.0) <= optimum + 1e-6, seed
        above_ideal += bound > problem.ideal_cost + 1e-6
    assert above_ideal > 5


def test_what_cannot_be_is_bounded_by_nothing() -> None:
    problem = unit_chain(3, 2)
    assert whole_bound(stages(problem, 4)) == np.inf


@pytest.mark.slow
def test_a_bound_goes_on_rising_after_few_stages_have_given_what_they_can() -> None:
    """Programs of few stages end at 30: then stages are cut finer again."""
    problem = unit_chain(10, 4)
    relaxing = Relaxing(problem, Settings(gap=1e-4), zones=False)
    watch = Watch(120)
    chose = False
    while not relaxing.exhausted:
        relaxing.advance(watch, None)
        chose = chose or relaxing.is_selecting
    assert chose
    assert relaxing.bound == pytest.approx(35.0)
    assert relaxing.bound <= unrestricted_optimum(problem) == 35.0


def test_a_budget_that_cannot_be_met_ends_it() -> None:
    problem = unit_chain(10, 4).with_budget(2)
    relaxing = Relaxing(problem, Settings())
    while not relaxing.exhausted:
        relaxing.advance(Watch(60), None)
    assert relaxing.bound == np.inf
