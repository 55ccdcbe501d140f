"""The compiled search: what it keeps up to date by small steps must equal what counting everything gives."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from chains import unit_chain
from numba import njit
from oracles import staged_optimum
from random_graphs import random_problem
from walks import takes_what_it_says

from checkmate.core.events import Watch
from checkmate.core.jit import basics
from checkmate.core.jit.tables import Ints
from checkmate.core.model.problem import Problem
from checkmate.core.schedule.sequence import in_stage_order, profile
from checkmate.core.search import stage_kernels, stage_steps
from checkmate.core.search.local import LocalSearch
from checkmate.core.search.space import State
from checkmate.core.search.stage_steps import reset
from checkmate.core.search.views import search_views


@njit
def change(state: State, gap: int) -> None:
    """Kernels that only kernels call cannot be called from Python; these can."""
    stage_kernels.change(state, gap)


@njit
def refresh(state: State, low: int) -> None:
    stage_steps.refresh(state, low)


@njit
def commit(state: State) -> None:
    stage_steps.commit(state.totals[0])


@njit
def roll_back(state: State, cost: float, excess: float) -> None:
    stage_steps.roll_back(state, cost, excess)


@njit
def pick(state: State) -> int:
    return basics.pick(state.totals[0])


@njit
def uniform(state: State) -> float:
    return basics.uniform(state.totals[0])


@njit
def sort(numbers: Ints, count: int, bits: Ints) -> None:
    basics.sort(numbers, count, bits)


def random_sequence(problem: Problem, seed: int) -> tuple[int, ...]:
    rng = random.Random(seed)
    sequence: list[int] = []
    for operation in range(problem.count):
        sequence += [e for e in range(operation) if not problem.pinned[e] and rng.random() < 0.15]
        sequence.append(operation)
    return in_stage_order(problem, sequence)


def totals(walk: LocalSearch) -> tuple[float, float, list[int], list[int], list[int]]:
    stages = walk.state.stages
    return walk.cost, walk.over, stages["held"].tolist(), stages["extra"].tolist(), walk.state.gaps["back"].tolist()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(60))
def test_small_steps_equal_counting_afresh(seed: int) -> None:
    problem = random_problem(seed, most=14)
    walk = LocalSearch(problem, seed)
    if not len(walk.state.movable):
        return
    walk.begin(random_sequence(problem, seed))
    rng = random.Random(seed)
    for _ in range(60):
        before = totals(walk)
        for gap in rng.choices(walk.state.movable.tolist(), k=rng.randint(1, 3)):
            change(walk.state, gap)
        refresh(walk.state, 0)
        stepped = totals(walk)
        if stepped[0] < 1e29 and rng.random() < 0.6:
            commit(walk.state)
            reset(walk.state)
            counted = totals(walk)
            assert stepped[2:] == counted[2:]
            assert stepped[:2] == pytest.approx(counted[:2], abs=1e-9)
        else:
            roll_back(walk.state, before[0], before[1])
            assert totals(walk) == before


def test_what_a_state_costs_and_takes_is_what_its_sequence_does() -> None:
    """The sequence may be a little better (nothing is held for nothing there), never worse."""
    exact = 0
    for seed in range(300):
        problem = random_problem(seed, most=12)
        walk = LocalSearch(problem, seed)
        walk.begin(random_sequence(problem, seed))
        for gap in walk.state.movable.tolist():
            if (seed + gap) % 3 == 0:
                change(walk.state, gap)
        refresh(walk.state, 0)
        if walk.cost > 1e29:
            continue
        commit(walk.state)
        exact += takes_what_it_says(walk)
    assert exact > 100


def test_keeping_everything_is_encoded_exactly() -> None:
    problem = unit_chain(10, 8)
    walk = LocalSearch(problem, 0)
    walk.begin(tuple(range(problem.count)))
    assert walk.cost == 0
    assert int((walk.state.stages["held"] + walk.state.stages["extra"]).max()) == profile(problem, range(problem.count)).peak


@pytest.mark.slow
def test_the_search_finds_most_optima_of_small_graphs_and_beats_none() -> None:
    found = possible = 0
    for seed in range(150):
        problem = random_problem(20_000 + seed)
        if not problem.count or (optimum := staged_optimum(problem)) == math.inf:
            continue
        possible += 1
        sequence = search_views(problem, [tuple(range(problem.count))], 1, 2000, Watch(60))
        if sequence is not None:
            made = profile(problem, sequence)
            assert made.peak <= problem.budget
            assert made.cost >= optimum - 1e-9, seed
            found += made.cost <= optimum + 1e-9
    assert found > 0.75 * possible


def test_the_search_solves_the_chain() -> None:
    """43 is the optimum of the 16-layer chain at budget 8; 46 is well below every baseline but Griewank's."""
    problem = unit_chain(16, 8)
    sequence = search_views(problem, [tuple(range(problem.count))] * 2, 0, 60_000, Watch(60))
    assert sequence is not None
    assert len(sequence) <= 46


def test_the_same_seed_takes_the_same_walk() -> None:
    problem = unit_chain(12, 6)
    first, second = (search_views(problem, [tuple(range(problem.count))] * 3, 5, 10_000, Watch(60)) for _ in range(2))
    assert first == second is not None


def test_numbers_drawn_are_spread_evenly() -> None:
    walk = LocalSearch(unit_chain(3, 9), 1)
    drawn = np.bincount([pick(walk.state) % 8 for _ in range(8000)], minlength=8)
    assert drawn.min() > 850
    assert 0.45 < np.mean([uniform(walk.state) for _ in range(4000)]) < 0.55


@pytest.mark.parametrize("count", [0, 1, 2, 12, 13, 40, 1000])
def test_sorting_leaves_alone_what_is_behind(count: int) -> None:
    numbers = np.random.default_rng(count).permutation(count + 3)
    expected = [*sorted(numbers[:count].tolist()), *numbers[count:].tolist()]
    sort(numbers, count, np.full(20, -1))
    assert numbers.tolist() == expected
