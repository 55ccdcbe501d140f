"""One conformance suite for every strategy in the registry."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from chains import unit_chain
from oracles import staged_optimum, unrestricted_optimum
from random_graphs import random_graph, random_problem

from checkmate.core.baselines import BASELINES
from checkmate.core.engine.run import run_strategy
from checkmate.core.engine.strategies import STRATEGIES, get_strategy
from checkmate.core.errors import InputError
from checkmate.core.events import Event, Watch
from checkmate.core.model.costs import given_costs
from checkmate.core.model.floors import feasibility_floor
from checkmate.core.model.problem import build_problem
from checkmate.core.result import Status, Stop
from checkmate.core.schedule.sequence import profile
from checkmate.core.settings import Settings

SOLVING = tuple(name for name in STRATEGIES if name not in BASELINES)
GRAPHS = {name: 2000 if name in BASELINES else 150 for name in STRATEGIES}
"""Random graphs per strategy; benchmarks/random_graphs.py runs 2,000 for all of them."""


def check(name: str, seed: int) -> bool:
    """Certify what a strategy makes of a random graph; whether it found anything."""
    problem = random_problem(seed, most=12 if name in BASELINES else 7)
    if not problem.count:
        return False
    result = run_strategy(problem, name, Settings(), Watch(60))
    status = result.status
    if result.schedule is None:
        assert status in (Status.INFEASIBLE, Status.UNKNOWN), seed
        assert result.reason, seed
        if status is Status.INFEASIBLE:
            assert staged_optimum(problem) == math.inf, seed
        return False
    assert result.simulation is not None
    assert result.fits == (result.simulation.peak_bytes <= problem.budget), seed
    assert (status in (Status.FEASIBLE, Status.OPTIMAL)) == result.fits, seed
    assert result.simulation.cost >= problem.ideal_cost - 1e-9, seed
    if name in SOLVING and result.fits:
        optimum, least = staged_optimum(problem), unrestricted_optimum(problem)
        assert result.simulation.cost >= least - 1e-6, seed
        if status is Status.OPTIMAL and optimum < math.inf:
            assert result.simulation.cost == pytest.approx(optimum), seed
        if result.bound is not None:
            assert result.bound <= optimum + 1e-6, seed
    return True


@pytest.mark.slow
@pytest.mark.parametrize("name", STRATEGIES)
def test_every_schedule_is_certified_on_random_graphs(name: str) -> None:
    found = sum(check(name, 10_000 + seed) for seed in range(GRAPHS[name]))
    assert found > GRAPHS[name] // 20


@pytest.mark.parametrize("name", STRATEGIES)
def test_with_plenty_of_memory_nothing_is_recomputed_by_those_who_look_at_the_budget(name: str) -> None:
    problem = unit_chain(9, 1000)
    result = run_strategy(problem, name, Settings(), Watch(60))
    assert result.fits
    assert result.simulation is not None
    if name in ("keep-all", "chen-greedy", "ap-greedy", "linearized-greedy", "griewank", *SOLVING):
        assert result.simulation.cost == problem.ideal_cost


@pytest.mark.parametrize("name", [name for name in STRATEGIES if name != "keep-all"])
def test_every_strategy_saves_memory_on_the_chain(name: str) -> None:
    problem = unit_chain(16, 12)
    result = run_strategy(problem, name, Settings(), Watch(60))
    assert result.fits, result.reason
    assert result.simulation is not None
    assert problem.ideal_cost < result.simulation.cost
    assert result.simulation.peak_bytes < profile(problem, range(problem.count)).peak


@pytest.mark.parametrize("name", SOLVING)
def test_the_same_seed_gives_the_same_schedule(name: str) -> None:
    problem = unit_chain(6, 4)
    first, second = (run_strategy(problem, name, Settings(seed=3), Watch(60)).schedule for _ in range(2))
    assert first == second is not None


@pytest.mark.parametrize("name", SOLVING)
def test_below_the_floor_is_proven_infeasible_at_once(name: str) -> None:
    problem = unit_chain(40, 3).with_budget(2)
    result = run_strategy(problem, name, Settings(), Watch(60))
    assert result.status is Status.INFEASIBLE
    assert result.smallest_budget == 3
    assert result.binding_operation


@pytest.mark.parametrize("name", ["optimal", "auto"])
def test_no_time_is_not_infeasible(name: str) -> None:
    problem = unit_chain(30, 4)
    solution = get_strategy(name)(problem, Settings(), Watch(0.0))
    assert solution.status in (Status.UNKNOWN, Status.FEASIBLE)
    assert solution.stop is Stop.TIME_LIMIT


@pytest.mark.slow
@pytest.mark.parametrize("name", ["optimal", "auto"])
def test_an_interruption_gives_the_best_so_far(name: str) -> None:
    events: list[Event] = []
    problem = unit_chain(24, 7)
    watch = Watch(60, events.append, lambda: any(event.incumbent for event in events))
    solution = get_strategy(name)(problem, Settings(gap=0.0), watch)
    assert solution.stop is Stop.INTERRUPTED
    assert solution.status is Status.FEASIBLE
    assert solution.sequence is not None
    assert profile(problem, solution.sequence).peak <= 7


@pytest.mark.slow
def test_progress_improves_only() -> None:
    events: list[Event] = []
    run_strategy(unit_chain(10, 5), "optimal", Settings(), Watch(60, events.append))
    costs = [event.incumbent for event in events if event.incumbent is not None]
    assert len(costs) > 1
    assert all(after <= before + 1e-6 for before, after in pairwise(costs))


def test_an_unknown_strategy_lists_the_others() -> None:
    with pytest.raises(InputError, match="keep-all, last-node"):
        get_strategy("magic")


def test_auto_takes_graphs_too_large_for_the_exact_model() -> None:
    """Merged stages, a relaxation's bound and rounding take over; the result is certified like any other."""
    problem = unit_chain(150, 60)
    result = run_strategy(problem, "auto", Settings(gap=0.05), Watch(30))
    assert result.fits
    assert result.bound is not None
    assert result.bound > problem.ideal_cost
    assert result.simulation is not None
    assert result.simulation.cost <= 1.2 * result.bound


def test_every_strategy_takes_a_graph_of_views_only() -> None:
    """Degenerate but legal: nothing to compute, nothing to free."""
    graph = next(graph for graph in map(random_graph, range(5000)) if all(operation.view for operation in graph.operations))
    problem = build_problem(graph, given_costs(graph))
    assert feasibility_floor(problem).bytes == graph.fixed_bytes
    for name in STRATEGIES:
        result = run_strategy(problem, name, Settings(), Watch(60))
        assert result.schedule is not None, name
        assert result.status in (Status.OPTIMAL, Status.FEASIBLE), name
