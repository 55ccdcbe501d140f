"""Both formulations against exhaustive search and known optima."""

from __future__ import annotations

import math

import pytest
from chains import unit_chain
from oracles import staged_optimum, unrestricted_optimum
from random_graphs import random_problem

from checkmate.core.engine.strategies import get_strategy
from checkmate.core.events import Watch
from checkmate.core.milp import get_formulation
from checkmate.core.milp.stages import liveness_entries, merged_runs, single_runs
from checkmate.core.model.problem import Problem
from checkmate.core.result import Result, Status
from checkmate.core.schedule.certify import certify
from checkmate.core.schedule.sequence import profile
from checkmate.core.settings import FormulationName, Settings
from checkmate.core.solvers import get_solver

EXACT = (FormulationName.LIVENESS, FormulationName.PAPER)
"""Formulations whose solutions are schedules; any-order programs are relaxations."""


def solve(problem: Problem, formulation: str) -> Result:
    return get_strategy("optimal")(problem, Settings(formulation=formulation, gap=1e-6), Watch(120))


@pytest.mark.slow
@pytest.mark.parametrize("formulation", EXACT)
@pytest.mark.parametrize("block", range(6))
def test_the_optimum_equals_brute_force(formulation: str, block: int) -> None:
    for seed in range(block * 50, block * 50 + 50):
        problem = random_problem(seed)
        if not problem.count:
            continue
        expected = staged_optimum(problem)
        solution = solve(problem, formulation)
        if expected == math.inf:
            least = unrestricted_optimum(problem)
            assert solution.status is Status.INFEASIBLE or profile(problem, solution.sequence or ()).cost >= least > 0, seed
            assert solution.status is Status.INFEASIBLE or least < math.inf, seed
            continue
        assert solution.status is Status.OPTIMAL, seed
        assert solution.sequence is not None
        _, simulation = certify(problem, solution.sequence)
        assert simulation.peak_bytes <= problem.budget, seed
        assert simulation.cost == pytest.approx(expected), seed
        assert solution.bound is not None
        assert solution.bound <= expected + 1e-6 * max(1.0, expected), seed


@pytest.mark.parametrize(("layers", "budget", "cost"), [(4, 3, 15), (8, 4, 26), (16, 8, 43)])
def test_the_unit_chain_has_its_known_optimum(layers: int, budget: int, cost: int) -> None:
    solution = solve(unit_chain(layers, budget), "liveness")
    assert solution.status is Status.OPTIMAL
    assert solution.sequence is not None
    assert len(solution.sequence) == cost


def test_where_one_recomputation_per_stage_is_too_few_two_are_tried() -> None:
    """Random graph 38: nothing fits in the paper's search space, yet a schedule exists."""
    problem = random_problem(38)
    assert staged_optimum(problem) == math.inf
    solution = solve(problem, "liveness")
    assert solution.sequence is not None
    assert profile(problem, solution.sequence).cost == unrestricted_optimum(problem) == 39.0


@pytest.mark.slow
def test_infeasible_above_the_floor_names_the_smallest_budget() -> None:
    """Three values of 1 fit where two are needed at once, but the chain of 4 layers cannot be trained in them."""
    tight = unit_chain(6, 3).with_budget(2)
    assert get_strategy("optimal")(tight, Settings(), Watch(60)).smallest_budget == 3
    found = [random_problem(seed) for seed in range(400, 900)]
    proven = [problem for problem in found if problem.count and staged_optimum(problem) == math.inf]
    above_floor = 0
    for problem in proven:
        solution = solve(problem, "liveness")
        if solution.status is not Status.INFEASIBLE or "follows the graph's order" not in solution.reason:
            continue
        above_floor += 1
        assert solution.smallest_budget is not None
        assert solution.smallest_budget > problem.budget
        assert unrestricted_optimum(problem.with_budget(solution.smallest_budget)) < math.inf
        assert staged_optimum(problem.with_budget(solution.smallest_budget - 1)) == math.inf
    assert above_floor > 0


@pytest.mark.slow
@pytest.mark.parametrize("count", [2, 4])
def test_merged_stages_restrict(count: int) -> None:
    """Every solution is a schedule, so none is cheaper than the optimum."""
    solved = 0
    for seed in range(1000, 1060):
        problem = random_problem(seed, most=9)
        if problem.count < 4 or (expected := staged_optimum(problem)) == math.inf:
            continue
        runs = merged_runs(problem, count)
        solver = get_solver("highs")
        merged = get_formulation("liveness")(problem, runs)
        held = solver.solve(merged.form, Settings(gap=1e-6), Watch(60))
        if held.values is not None:
            made = profile(problem, merged.sequence(held.values))
            assert made.peak <= problem.budget
            assert made.cost >= expected - 1e-6
            solved += 1
    assert solved > 0


def test_a_start_is_a_solution_of_the_model() -> None:
    """What the encoder gives for a sequence decodes to that sequence."""
    problem = unit_chain(4, 3)
    solution = solve(problem, "liveness")
    assert solution.sequence is not None
    for formulation in EXACT:
        formulated = get_formulation(formulation)(problem)
        start = formulated.start(solution.sequence)
        assert start is not None
        values = formulated.form.column_lower.copy()
        for column, value in start.items():
            values[column] = value
        assert formulated.sequence(values) == solution.sequence


def test_the_size_of_the_model_is_estimated_before_it_is_built() -> None:
    for problem in (unit_chain(8, 4), unit_chain(20, 8)):
        runs = single_runs(problem)
        real = get_formulation("liveness")(problem, runs).form.matrix.nnz
        assert 0.5 * real <= liveness_entries(problem, runs) <= 2 * real
