"""Tails: exact where everything is tracked, a bound where not, and never above the optimum in programs."""

from __future__ import annotations

import math

import pytest
from any_order_programs import drawn, optimum_of, random_breakpoints, random_tails
from chains import random_chain, unit_chain
from oracles import any_order_optimum, unrestricted_optimum
from random_graphs import random_problem

from checkmate.core.events import Watch
from checkmate.core.labels.label_setting import Effort, find_tail, labels_by
from checkmate.core.labels.tail import Tail
from checkmate.core.milp.any_order import AnyOrderProgram
from checkmate.core.model.bounding import bounding_problem
from checkmate.core.model.precedence import PartialOrder, Precedence, TotalOrder
from checkmate.core.model.problem import Problem
from checkmate.core.solvers.linear_program import solve_linear

MANY = 100_000


def all_tracked(problem: Problem, precedence: Precedence, begin: int) -> Tail:
    tail = labels_by(problem, precedence, begin, range(len(problem.size)), math.inf, MANY)
    assert tail is not None
    return tail


def test_with_everything_tracked_a_tail_is_the_optimum_of_an_order() -> None:
    """The tail that begins with the first operation is the whole schedule."""
    recomputing = 0
    for seed in range(120):
        problem = random_problem(seed, most=8)
        if problem.count < 3:
            continue
        least = all_tracked(problem, TotalOrder(range(problem.count)), 0).least + problem.ideal_cost
        assert least == pytest.approx(unrestricted_optimum(problem), rel=1e-9), seed
        recomputing += math.inf > least > problem.ideal_cost * (1 + 1e-9)
    assert recomputing > 10


def test_with_everything_tracked_a_tail_is_the_optimum_of_any_order() -> None:
    recomputing = 0
    for seed in range(80):
        problem = random_chain(seed)
        precedence = PartialOrder(problem)
        if not precedence.relatives(0).descendants[1:].all():
            continue
        least = all_tracked(problem, precedence, 0).least + problem.ideal_cost
        assert least == pytest.approx(any_order_optimum(problem), rel=1e-9), seed
        recomputing += math.inf > least > problem.ideal_cost * (1 + 1e-9)
    assert recomputing > 10


def test_a_search_that_is_cut_short_proves_less() -> None:
    problem = unit_chain(6, 5)
    order = TotalOrder(range(problem.count))
    exact = all_tracked(problem, order, 0)
    for most in (2, 5, 20, 80):
        cut = labels_by(problem, order, 0, range(len(problem.size)), math.inf, most)
        assert cut is not None
        assert 0.0 <= cut.least <= exact.least
    dear = labels_by(problem, order, 0, range(len(problem.size)), exact.least / 2, MANY)
    assert dear is not None
    assert exact.least / 2 < dear.least <= exact.least


def test_the_values_that_labels_use_are_tracked_too() -> None:
    """Of a chain no value is large, but each is read by the recomputation of the next."""
    problem = unit_chain(6, 5)
    found = find_tail(problem, TotalOrder(range(problem.count)), 0, math.inf, Effort(MANY, 6), Watch(60))
    assert found is not None
    assert found.least + problem.ideal_cost == pytest.approx(unrestricted_optimum(problem))


@pytest.mark.parametrize("total", [False, True])
@pytest.mark.parametrize("block", range(3))
def test_no_program_with_tails_is_above_the_optimum(block: int, *, total: bool) -> None:
    raised = 0
    for seed in range(block * 40, block * 40 + 40):
        problem = drawn(seed)
        if problem.count < 3:
            continue
        best = unrestricted_optimum(problem) if total else any_order_optimum(problem)
        if best == math.inf:
            continue
        bounding = bounding_problem(problem)
        precedence: Precedence = TotalOrder(range(problem.count)) if total else PartialOrder(bounding)
        chain = random_breakpoints(bounding, precedence, seed)
        tails = random_tails(bounding, precedence, chain, seed)
        without = solve_linear(AnyOrderProgram.of(bounding, precedence, chain).form.relaxed(), Watch(60)).bound
        for cuts in (False, True):
            program = AnyOrderProgram.of(bounding, precedence, chain, cuts=cuts, tails=tails)
            relaxed = solve_linear(program.form.relaxed(), Watch(60)).bound
            raised += relaxed > without * (1 + 1e-6)
            assert relaxed * program.unit <= best * (1 + 1e-6) + 1e-6, seed
            assert optimum_of(program) <= best * (1 + 1e-6) + 1e-6, seed
    assert raised > 2
