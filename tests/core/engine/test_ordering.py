"""Strategies under an order found by search: certified like any other, never worse than what the given order allows to prove."""

from __future__ import annotations

import math

import pytest
from chains import unit_chain
from oracles import staged_optimum
from random_graphs import random_problem

from checkmate.core.engine.ordering import under_searched_order
from checkmate.core.engine.run import run_strategy
from checkmate.core.events import Watch
from checkmate.core.model.costs import given_costs
from checkmate.core.model.floors import feasibility_floor, least_memory
from checkmate.core.model.graph import OperationSpec, ValueSpec, Work, assemble
from checkmate.core.model.problem import Problem, build_problem
from checkmate.core.result import Result, Status, Stop
from checkmate.core.schedule.sequence import profile
from checkmate.core.settings import Known, Order, Settings

SEARCH = Settings(order=Order.SEARCH)


def two_branches() -> Problem:
    """Two branches of large values: one after the other they fit, side by side, as given, they do not."""

    def op(name: str, *inputs: str, size: int) -> OperationSpec:
        return OperationSpec(name, "Op", inputs, (ValueSpec(name, size),), work=Work(cost=1.0))

    specs = [op("a", size=10), op("b", size=10), op("a2", "a", size=1), op("b2", "b", size=1), op("sum", "a2", "b2", size=1)]
    graph = assemble("branches", specs, (), {})
    return build_problem(graph, given_costs(graph), budget=12)


def test_an_order_that_needs_no_recomputation_is_optimal_for_any_order() -> None:
    problem = two_branches()
    assert profile(problem, range(problem.count)).peak > problem.budget
    result = run_strategy(problem, "auto", SEARCH, Watch(30))
    assert result.fits
    assert result.status is Status.OPTIMAL
    assert result.bound_scope == "any"
    assert result.simulation is not None
    assert result.simulation.cost == problem.ideal_cost


def test_the_given_order_is_kept_when_asked_for() -> None:
    result = run_strategy(two_branches(), "auto", Settings(), Watch(30))
    assert result.simulation is not None
    assert result.simulation.cost > two_branches().ideal_cost
    assert result.bound_scope == "order"


def test_where_there_is_only_one_order_the_bound_holds_for_any() -> None:
    result = run_strategy(unit_chain(8, 4), "optimal", SEARCH, Watch(60))
    assert result.simulation is not None
    assert result.simulation.cost == 26
    assert result.bound_scope == "any"


def test_every_order_found_gives_certified_schedules_and_true_claims() -> None:
    found = 0
    for seed in range(7000, 7060):
        problem = random_problem(seed)
        if not problem.count:
            continue
        result = run_strategy(problem, "auto", SEARCH, Watch(60))
        if result.status is Status.INFEASIBLE:
            assert least_memory(problem).bytes > problem.budget, seed
        given = staged_optimum(problem)
        if result.fits and result.simulation is not None:
            found += 1
            assert result.simulation.cost <= given + 1e-6 or given == math.inf, seed
        else:
            assert given == math.inf, seed
    assert found > 20


class Stubborn:
    """A strategy with a schedule of its own, found in the first run only, that remembers what it was told."""

    def __init__(self, sequence: tuple[int, ...]) -> None:
        self.sequence: tuple[int, ...] | None = sequence
        self.told: list[Known] = []

    def __call__(self, problem: Problem, settings: Settings, watch: Watch) -> Result:
        self.told.append(settings.known)
        found, self.sequence = self.sequence, None
        return Result(Status.UNKNOWN if found is None else Status.FEASIBLE, Stop.TIME_LIMIT, found)


def test_a_second_run_under_the_given_order_begins_with_the_cheapest_schedule_and_cannot_spoil_the_first() -> None:
    """The chain has one order only: what the search over orders finds is a schedule in the given order."""
    problem = unit_chain(16, 8)
    dear = tuple(range(17)) + tuple(operation for layer in reversed(range(16)) for operation in (*range(layer + 1), 32 - layer))
    assert profile(problem, dear).peak <= problem.budget
    strategy = Stubborn(dear)
    solution = under_searched_order(problem, strategy, SEARCH, Watch(60))
    assert solution.sequence == dear
    first, second = (known.sequence for known in strategy.told)
    assert first is not None
    assert second is not None
    assert profile(problem, second).cost <= profile(problem, first).cost < profile(problem, dear).cost


def test_where_nothing_is_found_the_strategy_is_not_run_under_an_order_proven_to_fit_nothing() -> None:
    problem = random_problem(60, most=8)
    problem = problem.with_budget(least_memory(problem).bytes)
    assert feasibility_floor(problem).bytes > problem.budget
    orders: list[tuple[int, ...]] = []

    def find_nothing(problem: Problem, settings: Settings, watch: Watch) -> Result:
        orders.append(problem.graph_operation)
        return Result(Status.UNKNOWN, Stop.FINISHED)

    assert under_searched_order(problem, find_nothing, SEARCH, Watch(60)).sequence is None
    assert orders
    assert problem.graph_operation not in orders


@pytest.mark.slow
def test_where_nothing_fits_at_once_the_given_order_is_told_what_was_brought_down_and_may_go_on() -> None:
    """The first run leaves something behind: the second gets it."""
    problem = unit_chain(60, 3)
    told: list[Known] = []

    def leave_something_behind(problem: Problem, settings: Settings, watch: Watch) -> Result:
        told.append(settings.known)
        return Result(Status.UNKNOWN, Stop.FINISHED, bound=problem.ideal_cost, unfinished=len(told))

    under_searched_order(problem, leave_something_behind, SEARCH, Watch(20))
    assert len(told) == 2
    assert told[0].sequence is None
    assert told[0].unfinished is None
    assert (told[1].unfinished == 1) == (told[0].elsewhere == math.inf)
