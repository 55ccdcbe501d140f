"""Curves of budgets: monotone whatever the runs found, bounds where they hold, no run where none is needed."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from random_graphs import random_problem

from checkmate.core.events import Watch
from checkmate.core.model.problem import Problem
from checkmate.core.result import Certificate, Result, Scope, Status, Stop
from checkmate.core.schedule.schedule import Schedule
from checkmate.core.schedule.sequence import profile
from checkmate.core.schedule.simulate import Simulation
from checkmate.core.settings import Settings
from checkmate.core.studies.curve import BUDGET_FREE, Curve, bisecting
from checkmate.core.studies.points import BEST_HEURISTIC, solve_point

IDEAL = 10.0


def made(
    status: Status,
    stop: Stop,
    sequence: tuple[int, ...] | None = None,
    cost: float = 0.0,
    peak: int = 0,
    *,
    bound: float,
    scope: Scope = Scope.ANY,
) -> Result:
    """A result with these figures, as if a simulator had found them."""
    proof = None
    if sequence is not None:
        proof = Certificate(random_problem(1).with_budget(peak), Schedule(()), Simulation(cost, peak, 0, (), 0, ()))
    return Result(status, stop, sequence, bound, bound_scope=scope, certificate=proof)


@st.composite
def findings(draw: st.DrawFn) -> list[tuple[int, Result]]:
    """Runs as imperfect as time limits make them: dear schedules, low bounds, other orders, nothing at all."""
    found = []
    for budget in draw(st.sets(st.integers(1, 30), min_size=1, max_size=10)):
        optimum = IDEAL + max(0, 20 - budget)
        cost = optimum + draw(st.integers(0, 5))
        order = draw(st.sampled_from([(0, 1, 2), (0, 2, 1)]))
        has_schedule = draw(st.booleans())
        found.append(
            (
                budget,
                made(
                    Status.FEASIBLE if has_schedule else Status.UNKNOWN,
                    Stop.TIME_LIMIT,
                    order if has_schedule else None,
                    cost if has_schedule else float("inf"),
                    draw(st.integers(max(1, budget - 3), budget)) if has_schedule else 0,
                    bound=draw(st.floats(IDEAL, optimum)),
                    scope=draw(st.sampled_from(Scope)),
                ),
            )
        )
    return found


@given(findings())
def test_whatever_was_found_cost_and_bound_never_rise_with_the_budget(found: list[tuple[int, Result]]) -> None:
    curve = Curve(range(1, 31), ideal_cost=IDEAL, gap=1e-4)
    for budget, result in found:
        curve.add(budget, result)
    points = [curve.at(budget) for budget in curve.budgets]
    costs = [point.schedule.cost if point.schedule else float("inf") for point in points]
    assert costs == sorted(costs, reverse=True)
    for point in points:
        if point.schedule is not None:
            assert point.schedule.peak_bytes <= point.budget
            assert IDEAL <= point.bound <= point.schedule.cost
            known = curve.known(point.budget)
            assert known.sequence == point.schedule.sequence


def test_a_bound_for_one_order_says_nothing_of_another() -> None:
    curve = Curve([5, 9], ideal_cost=IDEAL, gap=0.0)
    curve.add(9, made(Status.OPTIMAL, Stop.FINISHED, (0, 1, 2), 12.0, 9, bound=12.0, scope=Scope.ORDER))
    curve.add(5, made(Status.FEASIBLE, Stop.TIME_LIMIT, (0, 2, 1), 13.0, 5, bound=11.0, scope=Scope.ORDER))
    assert (curve.at(5).bound, curve.at(9).bound) == (11.0, 12.0)
    curve.add(5, made(Status.FEASIBLE, Stop.TIME_LIMIT, (0, 1, 2, 0), 13.0, 5, bound=11.0, scope=Scope.ORDER))
    assert curve.at(5).bound == 12.0


def test_between_two_budgets_of_equal_cost_and_below_an_impossible_one_nothing_is_solved() -> None:
    curve = Curve(range(1, 10), ideal_cost=IDEAL, gap=1e-4)
    curve.add(9, made(Status.OPTIMAL, Stop.FINISHED, (0, 1), 12.0, 6, bound=12.0, scope=Scope.ANY))
    curve.add(3, made(Status.INFEASIBLE, Stop.FINISHED, bound=IDEAL))
    left = []
    while (budget := curve.next_budget()) is not None:
        left.append(budget)
        curve.add(budget, made(Status.UNKNOWN, Stop.TIME_LIMIT, bound=IDEAL))
    assert sorted(left) == [4, 5]
    assert [curve.at(budget).status for budget in (1, 3, 4, 6, 9)] == [
        *(Status.INFEASIBLE, Status.INFEASIBLE, Status.UNKNOWN, Status.OPTIMAL, Status.OPTIMAL)
    ]


@given(st.lists(st.integers(), unique=True))
def test_every_budget_has_its_turn_once(budgets: list[int]) -> None:
    assert sorted(bisecting(sorted(budgets))) == sorted(budgets)


def swept(problem: Problem, strategy: str) -> Curve:
    low, high = max(max(problem.size, default=1), 1) + problem.base, profile(problem, range(problem.count)).peak
    budgets = {low + (high - low) * step // 5 for step in range(6)}
    curve = Curve(budgets, ideal_cost=problem.ideal_cost, gap=1e-6, budget_free=strategy in BUDGET_FREE)
    while (budget := curve.next_budget()) is not None:
        curve.add(budget, solve_point(problem.with_budget(budget), strategy, Settings(known=curve.known(budget)), Watch(20)))
    return curve


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from(["optimal", "lp-rounding", BEST_HEURISTIC, "ap-greedy", "linearized-sqrt"]))
def test_real_curves_fall_and_agree_with_solving_each_budget_alone(seed: int, strategy: str) -> None:
    problem = random_problem(seed, most=7)
    if not problem.count:
        return
    curve = swept(problem, strategy)
    costs = [point.schedule.cost if point.schedule else float("inf") for point in map(curve.at, curve.budgets)]
    assert costs == sorted(costs, reverse=True)
    for budget, cost in zip(curve.budgets, costs, strict=True):
        alone = solve_point(problem.with_budget(budget), strategy, Settings(gap=1e-6), Watch(20))
        alone_cost = alone.cost if alone.fits else float("inf")
        assert cost <= alone_cost + 1e-5 * problem.ideal_cost
        if strategy == "optimal":
            assert cost >= alone_cost - 1e-5 * problem.ideal_cost


def test_strategies_said_to_ignore_the_budget_do() -> None:
    problem = random_problem(3, most=9)
    for strategy in BUDGET_FREE:
        alike = {solve_point(problem.with_budget(budget), strategy, Settings(), Watch(20)).sequence for budget in (1, 50, 10**6)}
        assert len(alike) == 1
