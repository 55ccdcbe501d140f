"""Zones: what it takes to pass, against every way there is; and bounds with zones, never above an optimum."""

from __future__ import annotations

import math
import random
from collections import Counter
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from chains import unit_chain
from oracles import small_problems, unrestricted_optimum
from random_graphs import random_problem

from checkmate.core.bounds.relaxing import Relaxing
from checkmate.core.engine.optimal import optimal
from checkmate.core.events import Watch
from checkmate.core.milp.relaxation import Relaxation, build_relaxation, reduce_problem
from checkmate.core.milp.stages import closing_run
from checkmate.core.model.floors import feasibility_floor
from checkmate.core.model.problem import Problem
from checkmate.core.schedule.sequence import in_stage_order, profile
from checkmate.core.search.views import recomputing_no_more
from checkmate.core.settings import Settings
from checkmate.core.solvers import get_solver
from checkmate.core.solvers.linear_program import solve_linear
from checkmate.core.zones.labels import Zone, find_zone


def relaxation_with_zones(problem: Problem, seed: int, free_below: float = 0.0) -> Relaxation:
    """Stages at random, about half of which are zones."""
    rng = random.Random(seed)
    cuts = sorted({0, problem.count, *rng.sample(range(1, problem.count), rng.randrange(0, min(4, problem.count)))})
    runs: list[range] = []
    zones: dict[int, Zone] = {}
    for start, stop in pairwise(cuts):
        zone = find_zone(problem, range(start, stop)) if rng.random() < 0.6 else None
        if zone is not None:
            zones[len(runs)] = zone
        runs += [range(start, stop)] if zone is None else [range(start, stop), range(stop, stop)]
    return build_relaxation(reduce_problem(problem, free_below), (*runs, *closing_run(problem)), zones)


@pytest.mark.slow
def test_no_linear_bound_with_zones_exceeds_the_optimum() -> None:
    above_ideal = 0
    for seed, problem, optimum in small_problems(140_000, 500):
        for number in range(3):
            relaxation = relaxation_with_zones(problem, seed * 10 + number, 3.0 * (number == 2))
            bound = solve_linear(relaxation.form, Watch(60)).bound * relaxation.unit
            assert bound <= optimum + 1e-9, (seed, number)
            above_ideal += bound > problem.ideal_cost + 1e-6
    assert above_ideal > 100


@pytest.mark.slow
def test_no_integer_bound_with_zones_exceeds_the_optimum() -> None:
    above_ideal = 0
    for seed, problem, optimum in small_problems(150_000, 250):
        relaxation = relaxation_with_zones(problem, seed)
        bound = get_solver("highs").solve(relaxation.as_integers(), Settings(gap=1e-7, presolve=False), Watch(60)).bound * relaxation.unit
        assert bound <= optimum * (1 + 1e-7) + 1e-6, seed
        above_ideal += bound > problem.ideal_cost + 1e-6
    assert above_ideal > 20


@pytest.mark.slow
def test_a_schedule_that_fits_is_a_point_of_the_relaxation_with_zones() -> None:
    """Without joined operations, which may be recomputed apart in a schedule."""
    points = 0
    for seed, problem, _ in small_problems(160_000, 250):
        if (reduce_problem(problem).joined_to != np.arange(problem.count)).any():
            continue
        solution = optimal(problem, Settings(), Watch(60))
        if solution.sequence is None:
            continue
        relaxation = relaxation_with_zones(problem, seed)
        start = relaxation.start(in_stage_order(problem, solution.sequence))
        point = np.array([start[column] for column in range(relaxation.form.columns)])
        short = relaxation.form.row_lower - relaxation.form.matrix @ point
        assert (short <= 1e-6).all(), (seed, np.flatnonzero(short > 1e-6), relaxation.runs)
        cost = (relaxation.form.objective @ point + relaxation.form.offset) * relaxation.unit
        assert cost <= profile(problem, solution.sequence).cost + 1e-9
        points += bool(relaxation.zones)
    assert points > 20


@pytest.mark.slow
def test_the_whole_of_a_small_problem_as_one_zone_is_its_optimum() -> None:
    """Where all values are large and none is wanted at the end, passing the zone is the problem itself."""
    compared = above_ideal = 0
    for seed in range(170_000, 170_400):
        drawn = random_problem(seed, most=8)
        problem = replace(drawn, kept=(False,) * len(drawn.size), size=tuple(max(1, min(size, 8)) for size in drawn.size))
        problem = problem.with_budget(feasibility_floor(problem).bytes + seed % 3)
        if not problem.count or min(problem.size) < 0.05 * problem.available:
            continue
        optimum = unrestricted_optimum(problem)
        zone = find_zone(problem, range(problem.count))
        assert zone is not None, seed
        cheapest = min((way.cost for way in zone.ways), default=math.inf)
        assert problem.ideal_cost + cheapest == pytest.approx(optimum), seed
        compared += 1
        above_ideal += problem.ideal_cost < optimum < math.inf
    assert compared > 50
    assert above_ideal > 10


@pytest.mark.slow
def test_a_way_through_a_zone_takes_and_costs_what_it_says() -> None:
    """Replayed backwards, with nothing but the values that are told apart: the rest is there for nothing."""
    ways = recomputing = 0
    for seed, problem, _ in small_problems(180_000, 300):
        rng = random.Random(seed)
        start = rng.randrange(problem.count)
        run = range(start, rng.randrange(start, problem.count) + 1)
        zone = find_zone(problem, run)
        for way in () if zone is None else zone.ways:
            if not way.operations:
                continue
            firsts = [
                operation
                for position, operation in enumerate(way.operations)
                if operation in run and operation not in way.operations[:position]
            ]
            assert firsts == list(run), seed
            again = Counter(way.operations) - Counter(run)
            assert sum(problem.cost[operation] * times for operation, times in again.items()) == pytest.approx(way.cost), seed
            awaited: set[int] = set()
            for operation in reversed(way.operations):
                read, made = zone.values & set(problem.inputs[operation]), zone.values & set(problem.outputs[operation])
                taken = sum(problem.size[value] for value in awaited | read | made) + problem.workspace[operation]
                assert taken <= problem.available, seed
                awaited = (awaited - made) | read
            assert awaited == way.needed, seed
            ways += 1
            recomputing += bool(again)
    assert ways > 100
    assert recomputing > 10


def test_dear_operations_are_made_again_only_where_a_sequence_does_so() -> None:
    problem = unit_chain(4, 8)
    dear = recomputing_no_more(replace(problem, cost=(1.0, 5.0, 5.0, *problem.cost[3:])), (0, 1, 0, 2, 1, *range(3, problem.count)), 2.0)
    assert [operation for operation, pinned in enumerate(dear.pinned) if pinned] == [2]


def test_a_zone_bounds_what_ends_of_stages_do_not_see() -> None:
    """Four layers' activations at most fit: without zones it takes many programs to find out what that costs."""
    problem = unit_chain(10, 4)
    bounds = []
    for zones in (False, True):
        relaxing = Relaxing(problem, Settings(gap=1e-4), zones=zones)
        while relaxing.is_quick and not relaxing.exhausted:
            relaxing.advance(Watch(60), None)
        bounds.append(relaxing.bound)
    assert bounds[0] < 31.0
    assert bounds[1] == pytest.approx(35.0)
    assert bounds[1] <= unrestricted_optimum(problem) == 35.0
