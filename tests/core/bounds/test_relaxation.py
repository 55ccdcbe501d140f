"""Bounds: never above an optimum, whatever the stages; and schedules that come with them."""

from __future__ import annotations

import random
from itertools import pairwise

import numpy as np
import pytest
from chains import unit_chain
from oracles import small_problems, unrestricted_optimum

from checkmate.core.bounds.relaxing import Relaxing
from checkmate.core.engine.optimal import optimal
from checkmate.core.events import Watch
from checkmate.core.milp.relaxation import build_relaxation, reduce_problem
from checkmate.core.milp.stages import closing_run, single_runs
from checkmate.core.model.costs import given_costs
from checkmate.core.model.floors import feasibility_floor
from checkmate.core.model.graph import OperationSpec, ValueSpec, Work, assemble
from checkmate.core.model.problem import Problem, build_problem
from checkmate.core.schedule.sequence import in_stage_order, profile
from checkmate.core.settings import Settings
from checkmate.core.solvers import get_solver
from checkmate.core.solvers.linear_program import proven_bound, solve_linear


def random_runs(problem: Problem, seed: int) -> tuple[range, ...]:
    rng = random.Random(seed)
    cuts = {0, problem.count, *rng.sample(range(1, problem.count), rng.randrange(0, problem.count))}
    return (*(range(start, stop) for start, stop in pairwise(sorted(cuts))), *closing_run(problem))


@pytest.mark.slow
def test_no_linear_bound_exceeds_the_optimum() -> None:
    """Over any schedule with first computations in order, not only the paper's; with any stages; with and without free values."""
    above_ideal = 0
    for seed, problem, optimum in small_problems(40_000, 700):
        for runs in (single_runs(problem), random_runs(problem, seed)):
            for free_below in (0.0, 3.0):
                relaxation = build_relaxation(reduce_problem(problem, free_below), runs)
                bound = solve_linear(relaxation.form, Watch(60)).bound * relaxation.unit
                assert bound <= optimum + 1e-9, seed
                above_ideal += bound > problem.ideal_cost + 1e-6
    assert above_ideal > 100


def waiting_problem(seed: int) -> Problem:
    """The cheapest schedule makes m while y is there, carries it past c, and makes q of it when x is there: m and q apart.

    With any seed but 0 a few things are changed at random.
    """
    rng = random.Random(seed)
    size = {"y": 4, "x": 4, "m": 2, "q": 2, "a": 1, "c": 1, "b": 1}
    cost = {name: 10 if name == "y" else 1 for name in size}
    workspace = {name: {"a": 7, "c": 8}.get(name, 0) for name in size}
    inputs = {"y": [], "x": [], "m": ["y"], "q": ["m", "x"], "a": ["y"], "c": ["a"], "b": ["x", "q", "c"]}
    names = list(size)
    for _ in range(rng.randint(1, 5) if seed else 0):
        name = rng.choice(names)
        size[name] = max(1, size[name] + rng.randint(-1, 1))
        workspace[rng.choice(names)] += rng.randint(0, 2)
        cost[rng.choice(names)] = rng.choice((1, 2, 5, 10))
        earlier = rng.choice(["", *names[: names.index(name)]])
        if earlier and earlier not in inputs[name]:
            inputs[name].append(earlier)
    specs = [
        OperationSpec(
            name, "Op", tuple(inputs[name]), (ValueSpec(name, size[name]),), work=Work(cost=float(cost[name])), workspace=workspace[name]
        )
        for name in names
    ]
    graph = assemble("waiting", specs, (), {})
    problem = build_problem(graph, given_costs(graph))
    return problem.with_budget(feasibility_floor(problem).bytes + (rng.choice((0, 0, 1, 2)) if seed else 0))


def test_what_waits_for_another_input_is_not_taken_to_be_recomputed_with_its_reader() -> None:
    problem = waiting_problem(0)
    optimum = unrestricted_optimum(problem)
    assert optimum == problem.ideal_cost + 3.0
    relaxation = build_relaxation(reduce_problem(problem), single_runs(problem))
    bound = solve_linear(relaxation.form, Watch(60)).bound * relaxation.unit
    assert bound == pytest.approx(optimum)
    assert bound <= optimum


def test_no_bound_of_the_like_exceeds_the_optimum() -> None:
    above_ideal = 0
    for seed in range(1, 200):
        problem = waiting_problem(seed)
        optimum = unrestricted_optimum(problem)
        relaxation = build_relaxation(reduce_problem(problem), single_runs(problem))
        bound = solve_linear(relaxation.form, Watch(60)).bound * relaxation.unit
        assert bound <= optimum + 1e-9, seed
        above_ideal += bound > problem.ideal_cost + 1e-6
    assert above_ideal > 100


def test_no_integer_bound_exceeds_the_optimum() -> None:
    above_ideal = 0
    for seed, problem, optimum in small_problems(50_000, 150):
        relaxation = build_relaxation(reduce_problem(problem), random_runs(problem, seed))
        bound = get_solver("highs").solve(relaxation.as_integers(), Settings(gap=1e-7), Watch(60)).bound * relaxation.unit
        assert bound <= optimum * (1 + 1e-7) + 1e-6, seed
        above_ideal += bound > problem.ideal_cost + 1e-6
    assert above_ideal > 10


def test_any_prices_prove_a_bound() -> None:
    """Prices that no solver would give prove little, but nothing false."""
    rng = np.random.default_rng(1)
    for seed, problem, optimum in small_problems(60_000, 100):
        relaxation = build_relaxation(reduce_problem(problem), random_runs(problem, seed))
        prices = rng.normal(0, 3, len(relaxation.form.row_lower))
        assert proven_bound(relaxation.form, prices) * relaxation.unit <= optimum + 1e-9, seed


def test_a_schedule_that_fits_is_a_point_of_the_relaxation() -> None:
    """Without joined operations, which may be recomputed apart in a schedule."""
    points = 0
    for seed, problem, _ in small_problems(70_000, 120):
        reduced = reduce_problem(problem)
        if (reduced.joined_to != np.arange(problem.count)).any():
            continue
        solution = optimal(problem, Settings(), Watch(60))
        if solution.sequence is None:
            continue
        relaxation = build_relaxation(reduced, random_runs(problem, seed))
        start = relaxation.start(in_stage_order(problem, solution.sequence))
        point = np.array([start[column] for column in range(relaxation.form.columns)])
        assert (relaxation.form.matrix @ point >= relaxation.form.row_lower - 1e-9).all(), seed
        cost = (relaxation.form.objective @ point + relaxation.form.offset) * relaxation.unit
        assert cost <= profile(problem, solution.sequence).cost + 1e-9
        points += 1
    assert points > 20


@pytest.mark.parametrize("layers", [8, 16])
def test_cutting_finer_closes_in_on_the_chain(layers: int) -> None:
    problem = unit_chain(layers, 8)
    relaxing = Relaxing(problem, Settings(gap=1e-4))
    bounds = []
    found = []
    for _ in range(12):
        if relaxing.exhausted:
            break
        schedule = relaxing.advance(Watch(60), None)
        bounds.append(relaxing.bound)
        if schedule is not None:
            found.append(profile(problem, schedule))
    assert bounds == sorted(bounds)
    fitting = [made.cost for made in found if made.peak <= problem.budget]
    assert all(cost >= bounds[-1] - 1e-6 for cost in fitting)
    optimum = {8: 19.0, 16: 43.0}[layers]
    assert problem.ideal_cost <= bounds[-1] <= optimum + 1e-6
