"""Orders: permuted problems are the same problems, certified schedules come out of any order, and the search finds better ones."""

from __future__ import annotations

import numpy as np
import pytest
from orders import all_orders, is_topological, random_order, wide, with_repeats
from random_graphs import random_problem

from checkmate.core.events import Watch
from checkmate.core.model.problem import Problem
from checkmate.core.model.transforms.permute import in_original, permuted
from checkmate.core.schedule.certify import certify
from checkmate.core.schedule.sequence import profile, prune
from checkmate.core.search.order import Manner, find_order, new_walk, run_walk
from checkmate.core.search.order_builds import least_peak
from checkmate.core.search.order_space import build_links
from checkmate.core.search.splice import Annealing, anneal_sequence


def peak(problem: Problem, order: tuple[int, ...]) -> int:
    return profile(problem, order).peak


@pytest.mark.parametrize("seed", range(150))
def test_any_order_with_any_recomputation_is_certified_with_the_numbers_of_its_profile(seed: int) -> None:
    problem = random_problem(seed, most=14)
    order = random_order(problem, seed)
    other = permuted(problem, order)
    sequence = with_repeats(problem, order, seed)
    position = {operation: place for place, operation in enumerate(order)}
    renamed = tuple(position[operation] for operation in sequence)
    assert in_original(order, renamed) == sequence
    assert profile(other, renamed) == profile(problem, sequence)
    assert in_original(order, prune(other, renamed)) == prune(problem, sequence)
    for chosen, steps in ((problem, sequence), (other, renamed)):
        if chosen.count:
            simulation = certify(chosen, steps)[1]
            assert simulation.peak_bytes <= profile(chosen, steps).peak
            assert simulation.cost == pytest.approx(profile(chosen, steps).cost)


@pytest.mark.parametrize("seed", range(0, 150, 5))
def test_a_permuted_problem_keeps_every_fact_under_its_name(seed: int) -> None:
    problem = random_problem(seed, most=14)
    other = permuted(problem, random_order(problem, seed))
    assert _facts(other) == _facts(problem)
    assert all(row == tuple(sorted(row)) for rows in (other.inputs, other.outputs, other.consumers) for row in rows)
    assert [value for row in other.outputs for value in row] == list(range(len(other.size)))
    assert list(other.producer) == sorted(other.producer)


def _facts(problem: Problem) -> tuple[object, ...]:
    name = [problem.value_name(value) for value in range(len(problem.size))]
    operations = {
        problem.operation_name(number): (
            problem.cost[number],
            problem.workspace[number],
            problem.pinned[number],
            problem.backward[number],
            {name[value] for value in problem.inputs[number]},
            {name[value] for value in problem.outputs[number]},
        )
        for number in range(problem.count)
    }
    values = {
        name[value]: (
            problem.size[value],
            problem.kept[value],
            problem.operation_name(problem.producer[value]),
            {problem.operation_name(user) for user in problem.consumers[value]},
        )
        for value in range(len(problem.size))
    }
    return operations, values, problem.base, problem.budget


def test_an_order_that_is_none_is_refused() -> None:
    problem = wide(3)
    with pytest.raises(ValueError, match="topological"):
        permuted(problem, tuple(reversed(range(problem.count))))
    with pytest.raises(ValueError, match="every operation once"):
        permuted(problem, (0,) * problem.count)


@pytest.mark.parametrize("seed", range(40))
def test_the_search_finds_the_best_of_all_orders_of_small_graphs(seed: int) -> None:
    problem = random_problem(seed, most=7)
    lowest = min((peak(problem, order) for order in all_orders(problem)), default=problem.base)
    found = find_order(problem, seed=1, moves=2000, watch=Watch())
    assert is_topological(problem, found)
    assert peak(problem, found) == lowest
    if problem.count:
        assert problem.base + least_peak(build_links(problem)) <= lowest


def test_branches_are_done_one_at_a_time() -> None:
    problem = wide(20)
    assert peak(problem, tuple(range(problem.count))) == 7 + 1 + 20 * 100
    assert peak(problem, find_order(problem, 0, 5000, Watch())) == 7 + 19 + 100 + 1


def test_the_same_seed_finds_the_same_order_and_a_goal_stops_it_early() -> None:
    problem = random_problem(4, most=60)
    orders = [find_order(problem, 3, 6000, Watch()) for _ in range(2)]
    assert orders[0] == orders[1]
    given = tuple(range(problem.count))
    assert find_order(problem, 3, 6000, Watch(), goal=peak(problem, given)) == given


def test_without_time_the_order_is_still_no_worse_than_the_given_one() -> None:
    problem = random_problem(4, most=60)
    found = find_order(problem, 3, 10**9, Watch(time_limit=0.0))
    assert is_topological(problem, found)
    assert peak(problem, found) <= peak(problem, tuple(range(problem.count)))


def test_rematerialization_under_a_found_order_is_a_schedule_of_the_problem() -> None:
    problem = wide(6)
    problem = problem.with_budget(peak(problem, tuple(range(problem.count))) // 2)
    order = find_order(problem, 0, 2000, Watch())
    other = permuted(problem, order)
    found = anneal_sequence(other, tuple(range(other.count)), Annealing(1.0, 1.0), 0, 2000, Watch(), free=False)
    assert found is not None
    simulation = certify(problem, in_original(order, found))[1]
    assert simulation.peak_bytes <= problem.budget


def test_reckoning_by_moves_agrees_with_reckoning_from_scratch() -> None:
    """The best peak a walk reports is that of its best order: incremental evaluation made no mistake on the way."""
    problem = random_problem(11, most=80)
    links = build_links(problem)
    walk = new_walk(links, np.arange(problem.count), 5, 0.0)
    walk.totals["level"] = walk.best_peak * 0.98
    run_walk(links, walk, Manner(1e-1, 1e-3, 0.02), 4000, Watch(), 0)
    now = profile(problem, walk.order.tolist())
    assert list(now.memory) == [problem.base + memory for memory in walk.places["memory"].tolist()]
    assert problem.base + walk.best_peak == peak(problem, tuple(walk.best.tolist()))
