"""Neighbourhood MILPs: what is not free stays as it is, and what comes back fits and is never dearer."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

import pytest
from chains import unit_chain
from oracles import staged_optimum
from random_graphs import random_problem

from checkmate.core.engine.neighbourhood import improve
from checkmate.core.engine.strategies import get_strategy
from checkmate.core.events import Watch
from checkmate.core.milp.formulation import Around, Formulated
from checkmate.core.milp.liveness import build_neighbourhood, free_decisions
from checkmate.core.model.problem import Problem
from checkmate.core.model.transforms.permute import in_original, permuted
from checkmate.core.result import Status
from checkmate.core.schedule.sequence import in_stage_order, profile
from checkmate.core.search.order import find_order
from checkmate.core.settings import Settings
from checkmate.core.solvers import get_solver

EXACT = Settings(gap=1e-6)


def wasteful(problem: Problem, seed: int) -> tuple[int, ...] | None:
    """A schedule that fits and recomputes at random."""
    rng = random.Random(seed)
    for _ in range(200):
        sequence: list[int] = []
        for operation in range(problem.count):
            sequence += [earlier for earlier in range(operation) if not problem.pinned[earlier] and rng.random() < 0.4]
            sequence.append(operation)
        ordered = in_stage_order(problem, sequence)
        if profile(problem, ordered).peak <= problem.budget:
            return ordered
    return None


def wasteful_problems(seeds: range) -> Iterator[tuple[int, Problem, tuple[int, ...]]]:
    for seed in seeds:
        problem = random_problem(seed, most=9)
        if problem.count >= 4 and (incumbent := wasteful(problem, seed)) is not None:
            yield seed, problem, incumbent


def solved(formulated: Formulated, incumbent: tuple[int, ...]) -> tuple[int, ...]:
    result = get_solver("highs").solve(formulated.form, EXACT, Watch(60), formulated.start(incumbent))
    assert result.status is Status.OPTIMAL
    assert result.values is not None
    return formulated.sequence(result.values)


def pinned_to(formulated: Formulated, sequence: tuple[int, ...]) -> Formulated:
    """The same model with every decision as in a sequence."""
    start = formulated.start(sequence)
    assert start is not None
    lower, upper = formulated.form.column_lower.copy(), formulated.form.column_upper.copy()
    lower[list(start)] = upper[list(start)] = list(start.values())
    return replace(formulated, form=replace(formulated.form, column_lower=lower, column_upper=upper))


@pytest.mark.slow
def test_with_everything_free_the_optimum_is_that_of_brute_force() -> None:
    cases = 0
    for seed, problem, incumbent in wasteful_problems(range(40)):
        everything = range(problem.count)
        around = Around.of(problem, incumbent, frozenset(everything), everything)
        assert around is not None
        made = profile(problem, solved(build_neighbourhood(problem, around), incumbent))
        assert made.peak <= problem.budget, seed
        assert made.cost == pytest.approx(staged_optimum(problem)), seed
        cases += made.cost < profile(problem, incumbent).cost
    assert cases > 5


def test_the_incumbent_is_a_solution_at_its_own_cost_and_the_rest_is_as_in_it() -> None:
    changed = 0
    for seed, problem, incumbent in wasteful_problems(range(100, 160)):
        free = frozenset(random.Random(seed).sample(range(problem.count), problem.count // 2))
        around = Around.of(problem, incumbent, free, ())
        assert around is not None
        formulated = build_neighbourhood(problem, around)
        assert free_decisions(problem, around) == len(formulated.compute) + len(formulated.keep)
        assert {operation for _, operation in formulated.compute} <= free
        same = pinned_to(formulated, incumbent)
        result = get_solver("highs").solve(same.form, EXACT, Watch(60))
        assert result.values is not None, seed
        assert result.bound * formulated.unit == pytest.approx(profile(problem, incumbent).cost), seed
        assert same.sequence(result.values) == incumbent, seed
        found = solved(formulated, incumbent)
        made = profile(problem, found)
        assert made.peak <= problem.budget, seed
        assert made.cost <= profile(problem, incumbent).cost + 1e-9, seed
        changed += found != incumbent
    assert changed > 5


def test_a_model_is_as_large_as_what_is_free() -> None:
    """Ten operations of a long chain: the model does not grow with the chain."""
    sizes = []
    for layers in (60, 240):
        problem = unit_chain(layers, 2 * layers)
        incumbent = tuple(range(problem.count))
        around = Around.of(problem, incumbent, frozenset(range(20, 30)), range(20, 40))
        assert around is not None
        sizes.append(free_decisions(problem, around))
    assert sizes[0] == sizes[1] > 0


def test_a_schedule_that_takes_more_once_in_stage_order_has_no_neighbourhood() -> None:
    problem = random_problem(38)
    outside = get_strategy("optimal")(problem, Settings(), Watch(60)).sequence
    assert outside is not None
    assert profile(problem, outside).peak <= problem.budget < profile(problem, in_stage_order(problem, outside)).peak
    assert Around.of(problem, outside, frozenset((0,)), ()) is None
    assert improve(problem, Settings(), Watch(60), outside) is None


@pytest.mark.parametrize("solver", ["highs", "cbc"])
def test_a_schedule_made_for_less_memory_is_improved_to_the_optimum(solver: str) -> None:
    problem = unit_chain(6, 4)
    tight, optimum = (get_strategy("optimal")(problem.with_budget(budget), EXACT, Watch(60)).sequence for budget in (3, 4))
    assert tight is not None
    assert optimum is not None
    assert len(tight) > len(optimum)
    found = improve(problem, Settings(solver=solver), Watch(60), tight, patience=4)
    assert found is not None
    made = profile(problem, found)
    assert made.peak <= problem.budget
    assert made.cost == len(optimum)


def test_what_comes_back_fits_is_cheaper_and_the_same_for_a_seed() -> None:
    better = 0
    for seed, problem, incumbent in wasteful_problems(range(200, 230)):
        first, second = (improve(problem, Settings(seed=seed), Watch(60), incumbent, patience=2) for _ in range(2))
        assert first == second, seed
        if first is None:
            continue
        made = profile(problem, first)
        assert made.peak <= problem.budget, seed
        assert made.cost < profile(problem, incumbent).cost, seed
        better += 1
    assert better > 5


def test_another_order_of_first_computations_is_kept() -> None:
    better = 0
    for seed, problem, _ in wasteful_problems(range(300, 330)):
        order = find_order(problem, seed, 200, Watch(60), 0)
        incumbent = wasteful(permuted(problem, order), seed)
        if incumbent is None:
            continue
        given = in_original(order, incumbent)
        found = improve(problem, Settings(seed=seed), Watch(60), given, patience=2)
        if found is not None and order != tuple(range(problem.count)):
            assert tuple(dict.fromkeys(found)) == order, seed
            assert profile(problem, found).cost < profile(problem, given).cost, seed
            assert profile(problem, found).peak <= problem.budget, seed
            better += 1
    assert better > 0


def test_nothing_is_tried_where_nothing_is_recomputed_or_no_time_is_left() -> None:
    problem = unit_chain(8, 40)
    assert improve(problem, Settings(), Watch(60), tuple(range(problem.count))) is None
    tight = get_strategy("optimal")(unit_chain(6, 3), Settings(), Watch(60)).sequence
    assert tight is not None
    assert improve(unit_chain(6, 4), Settings(), Watch(0.0), tight) is None
