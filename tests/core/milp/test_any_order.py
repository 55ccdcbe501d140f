"""Any-order programs against exhaustive search over orders, recomputations and computing in place: no bound is above the optimum."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from any_order_programs import EXACT, drawn, optimum_of, random_breakpoints
from chains import unit_chain
from oracles import any_order_optimum
from random_graphs import random_training

from checkmate.core.events import Watch
from checkmate.core.milp import get_formulation
from checkmate.core.milp.any_order import AnyOrderProgram
from checkmate.core.milp.presolve import presolve, unchanged
from checkmate.core.milp.stage_windows import Windows, first_stages
from checkmate.core.model.bounding import bounding_problem
from checkmate.core.model.memory_model import MemoryModel
from checkmate.core.model.precedence import PartialOrder, Precedence, TotalOrder
from checkmate.core.result import Status
from checkmate.core.schedule.sequence import profile
from checkmate.core.solvers import SOLVERS, get_solver
from checkmate.core.solvers.linear_program import solve_linear


@pytest.mark.slow
@pytest.mark.parametrize("block", range(4))
def test_no_bound_is_above_the_optimum(block: int) -> None:
    """With integers and without, with cuts and without, presolved. A thousand times as many were held to it once, with the same result."""
    strict = 0
    for seed in range(block * 40, block * 40 + 40):
        problem = drawn(seed)
        if problem.count < 3 or (best := any_order_optimum(problem)) == math.inf:
            continue
        bounding = bounding_problem(problem)
        precedence = PartialOrder(bounding)
        chain = random_breakpoints(bounding, precedence, seed)
        for cuts in (False, True):
            program = AnyOrderProgram.of(bounding, precedence, chain, cuts=cuts)
            linear = solve_linear(program.form.relaxed(), Watch(60)).bound * program.unit
            whole = optimum_of(program)
            assert linear <= best * (1 + 1e-7) + 1e-7, (seed, chain, cuts)
            assert whole <= best * (1 + 1e-7) + 1e-7, (seed, chain, cuts)
            assert linear <= whole * (1 + 1e-6) + 1e-6, (seed, chain, cuts)
            strict += whole > problem.ideal_cost + 1e-6
    assert strict > 0


def test_what_is_computed_in_place_is_not_counted_twice() -> None:
    """A budget that only computing in place fits: every program has a solution, and the generic model has none."""
    found = 0
    for seed in range(3, 2000, 4):
        problem = random_training(seed, in_place=True)
        generic = replace(problem, memory_model=MemoryModel.GENERIC)
        if any_order_optimum(generic) < math.inf or any_order_optimum(problem) == math.inf:
            continue
        found += 1
        bounding = bounding_problem(problem)
        precedence = PartialOrder(bounding)
        for operation in range(problem.count):
            assert optimum_of(AnyOrderProgram.of(bounding, precedence, [operation])) < math.inf, (seed, operation)
        if found == 3:
            return
    pytest.fail("no such graph was drawn")


@pytest.mark.slow
@pytest.mark.parametrize("total", [False, True])
def test_presolve_keeps_the_optimum(total: bool) -> None:
    merged = 0
    for seed in range(240):
        problem = bounding_problem(drawn(seed))
        if problem.count < 3:
            continue
        precedence: Precedence = TotalOrder(range(problem.count)) if total else PartialOrder(problem)
        chain = random_breakpoints(problem, precedence, seed)
        small = AnyOrderProgram.of(problem, precedence, chain, exact=True)
        windows = Windows.of(unchanged(problem), *first_stages(problem.count, precedence, chain), len(chain))
        plain = AnyOrderProgram(problem, unchanged(problem), tuple(chain), windows)
        assert optimum_of(small) == pytest.approx(optimum_of(plain), rel=1e-6, abs=1e-6), (seed, chain)
        merged += problem.count - small.problem.count
    assert merged > 50


def test_presolve_relaxes_only() -> None:
    """What it takes to be smaller than it is makes programs cheaper, never dearer."""
    for seed in range(2, 120, 4):
        problem = random_training(seed)
        precedence = PartialOrder(problem)
        chain = random_breakpoints(problem, precedence, seed)
        exact, relaxed = (AnyOrderProgram.of(problem, precedence, chain, exact=exact) for exact in (True, False))
        assert optimum_of(relaxed) <= optimum_of(exact) * (1 + 1e-6) + 1e-6, seed


def test_presolve_is_as_quick_on_long_chains() -> None:
    """Whatever can be one is found without looking at everything again and again: this took hours with 20,000 operations."""
    chain = unit_chain(10_000, 100)
    assert presolve(chain).problem.count == 1
    assert presolve(chain, [10_000]).problem.count > 9_000


@pytest.mark.parametrize("seed", [2, 6, 10, 14])
def test_the_pyomo_model_has_the_same_optimum_with_every_solver(seed: int) -> None:
    problem = random_training(seed)
    precedence = PartialOrder(problem)
    chain = random_breakpoints(problem, precedence, seed)
    expected = optimum_of(AnyOrderProgram.of(problem, precedence, chain, exact=True))
    built = get_formulation("any-order")(problem, None, chain)
    for name in SOLVERS:
        result = get_solver(name).solve(built.form, EXACT, Watch(60))
        if expected == math.inf:
            assert result.status is Status.INFEASIBLE, name
        else:
            assert result.bound * built.unit == pytest.approx(expected, rel=1e-5, abs=1e-5), name


def test_a_schedule_is_a_point_of_the_program() -> None:
    """At its own cost, if it computes nothing twice in a stage; and it comes back."""
    problem = unit_chain(4, 4)
    sequence = (0, 1, 2, 3, 4, 5, 0, 1, 2, 6, 0, 1, 7, 8)
    assert profile(problem, sequence).peak <= problem.budget
    built = get_formulation("any-order")(problem, None, [4, 6])
    point = np.zeros(built.form.columns)
    start = built.start(sequence)
    point[list(start)] = list(start.values())
    sides = built.form.matrix @ point
    assert (sides >= built.form.row_lower - 1e-9).all()
    assert (sides <= built.form.row_upper + 1e-9).all()
    assert (point >= built.form.column_lower).all()
    assert float(built.form.objective @ point) == profile(problem, sequence).cost
    assert sorted(built.sequence(point)) == sorted(sequence)
