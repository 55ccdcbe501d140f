"""The search over plain sequences: what its kernels keep up to date step by step is what counting afresh gives, whatever they try."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from chains import unit_chain
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numba import njit
from oracles import unrestricted_optimum
from orders import random_order, with_repeats
from random_graphs import random_problem

from checkmate.core.events import Watch
from checkmate.core.jit import basics
from checkmate.core.jit.tables import Table
from checkmate.core.model.costs import given_costs
from checkmate.core.model.graph import OperationSpec, ValueSpec, Work, assemble
from checkmate.core.model.problem import Problem, build_problem
from checkmate.core.params import PARAMS
from checkmate.core.schedule.sequence import first_computations, profile
from checkmate.core.search.splice import Annealing, anneal_downwards, anneal_sequence
from checkmate.core.search.splice_kernels import anneal, reset
from checkmate.core.search.splice_space import Splice, new_splice


def check_present(problem: Problem, state: Splice, free: bool) -> None:
    """The kernels' figures are those of the sequence, which is a valid one."""
    present = state.present_sequence
    made = profile(problem, present)
    memory = [bytes - problem.base for bytes in made.memory]
    assert state.memory[: len(present)].tolist() == memory
    assert state.totals["cost"][0] == made.cost
    assert state.totals["over"][0] == sum(max(0, bytes - problem.available) for bytes in memory)
    assert_valid(problem, present, free)


def assert_valid(problem: Problem, sequence: Sequence[int], free: bool) -> None:
    seen: set[int] = set()
    for operation in sequence:
        assert seen.issuperset(problem.producer[value] for value in problem.inputs[operation])
        assert operation not in seen or not problem.pinned[operation]
        seen.add(operation)
    assert len(seen) == problem.count
    first = first_computations(problem.count, sequence)
    assert free or first == sorted(first)


def few_copies(problem: Problem, sequence: Sequence[int]) -> tuple[int, ...]:
    """Without the copies that are too many."""
    count = [0] * problem.count
    chosen: list[int] = []
    for operation in sequence:
        count[operation] += 1
        if count[operation] <= PARAMS.most_copies:
            chosen.append(operation)
    return tuple(chosen)


@given(
    seed=st.integers(0, 10**6),
    most=st.sampled_from([3, 8, 20]),
    share=st.floats(0.05, 1.2),
    chunks=st.lists(st.sampled_from([1, 1, 7, 500]), min_size=1, max_size=8),
    hot=st.sampled_from([1e-6, 0.1, 1.0, 100.0]),
    price=st.sampled_from([1e-3, 1.0, 1e3]),
    free=st.booleans(),
    begun=st.booleans(),
)
@settings(max_examples=400, deadline=None)
def test_small_steps_equal_counting_afresh(
    seed: int, most: int, share: float, chunks: list[int], hot: float, price: float, free: bool, begun: bool
) -> None:
    problem = random_problem(seed, most=most)
    everything = profile(problem, range(problem.count)).peak - problem.base
    problem = problem.with_budget(problem.base + max(1, int(share * everything)))
    order = random_order(problem, seed) if free else tuple(range(problem.count))
    start = few_copies(problem, with_repeats(problem, order, seed)) if begun else order
    state = new_splice(problem, start, seed)
    if not len(state.large):
        return
    reset(state)
    check_present(problem, state, free)
    for moves in chunks:
        anneal(state, moves, hot, hot / 100, price, price * 100, free)
        check_present(problem, state, free)
        best = state.best_sequence
        if best:
            assert_valid(problem, best, free)
            assert profile(problem, best).peak <= problem.budget
            assert profile(problem, best).cost == state.totals["best_cost"][0]


def splice(problem: Problem, start: Sequence[int], seed: int = 1, moves: int = 2000, free: bool = False) -> tuple[int, ...] | None:
    return anneal_sequence(problem, start, Annealing(1.0, 3e-4), seed, moves, Watch(), free=free)


def one_by_one(problem: Problem) -> tuple[int, ...]:
    return tuple(range(problem.count))


@given(seed=st.integers(0, 10**6), most=st.sampled_from([1, 4, 12]), free=st.booleans(), moves=st.sampled_from([1, 100, 2000]))
@example(seed=4, most=12, free=False, moves=1)
@settings(max_examples=200, deadline=None)
def test_what_comes_out_fits_and_is_no_dearer_than_a_start_that_does(seed: int, most: int, free: bool, moves: int) -> None:
    problem = random_problem(seed, most=most)
    start = few_copies(problem, with_repeats(problem, one_by_one(problem), seed))
    for given_start in (start, one_by_one(problem)):
        found = splice(problem, given_start, seed, moves, free)
        begun = profile(problem, given_start)
        worth_it = problem.available > 0 and len(new_splice(problem, given_start, 0).large)
        assert found is not None or not worth_it or begun.peak > problem.budget
        if found is not None:
            assert_valid(problem, found, free)
            assert profile(problem, found).peak <= problem.budget
            assert begun.peak > problem.budget or profile(problem, found).cost <= begun.cost


def test_small_graphs_are_solved_to_the_optimum_and_none_below() -> None:
    found = possible = 0
    for seed in range(150):
        problem = random_problem(20_000 + seed)
        if not problem.count or (optimum := unrestricted_optimum(problem)) == math.inf:
            continue
        sequence = splice(problem, one_by_one(problem))
        fitting = one_by_one(problem) if profile(problem, one_by_one(problem)).peak <= problem.budget else None
        if (chosen := sequence or fitting) is not None:
            cost = profile(problem, chosen).cost
            assert cost >= optimum, seed
            found += cost == optimum
        possible += 1
    assert found > 0.95 * possible


def test_the_chain_is_solved() -> None:
    """43 is the optimum of the 16-layer chain at budget 8."""
    problem = unit_chain(16, 8)
    sequence = splice(problem, one_by_one(problem), moves=100_000)
    assert sequence is not None
    assert len(sequence) == 43


def test_a_free_order_needs_no_recomputation_where_another_order_fits() -> None:
    problem = problem_of(("a", (), 1), ("b", (), 10), ("c", (), 10), ("d", ("b",), 1), ("e", ("c", "d"), 1), budget=13)
    given_order, free = (splice(problem, one_by_one(problem), free=free) for free in (False, True))
    assert given_order is not None
    assert len(given_order) == 7
    assert free is not None
    assert sorted(free) == list(range(problem.count))


def problem_of(*rows: tuple[str, tuple[str, ...], int], budget: int, cost: float = 1.0, kept: tuple[str, ...] = ()) -> Problem:
    """One operation for each row: the value it makes, what it reads, and the bytes of the value; none made where it has no name."""
    specs = [
        OperationSpec(f"op{number}", "Op", reads, (ValueSpec(name, size),) if name else (), work=Work(cost=cost))
        for number, (name, reads, size) in enumerate(rows)
    ]
    graph = assemble("rows", specs, kept, {})
    return build_problem(graph, given_costs(graph), budget=budget)


def test_the_same_seed_takes_the_same_walk() -> None:
    problem = unit_chain(12, 6)
    first, second = (splice(problem, one_by_one(problem), 5, 10_000, free=True) for _ in range(2))
    assert first == second is not None


def test_without_time_a_start_that_fits_comes_back() -> None:
    problem = unit_chain(6, 100)
    found = anneal_sequence(problem, one_by_one(problem), Annealing(1.0, 1.0), 0, 10**9, Watch(time_limit=0.0), free=True)
    assert found == one_by_one(problem)


def test_a_start_may_compute_an_operation_more_often_than_the_search_itself_would() -> None:
    """Each of the readers finds its input made for it alone, right before it."""
    readers = tuple((f"r{number}", ("a",), 1) for number in range(2 * PARAMS.most_copies))
    problem = problem_of(("a", (), 9), *readers, budget=30)
    start = tuple(operation for reader in range(1, problem.count) for operation in (0, reader))
    assert splice(problem, start) == one_by_one(problem)


def test_a_value_is_recomputed_right_behind_the_place_where_memory_lacks() -> None:
    """The only recomputation that helps stands between two operations that follow each other."""
    problem = problem_of(("a", (), 9), ("b", ("a",), 1), ("c", (), 9), ("d", ("a", "b"), 1), budget=12)
    assert splice(problem, one_by_one(problem)) == (0, 1, 2, 0, 3)


def test_a_graph_output_is_made_again_at_the_end() -> None:
    problem = problem_of(("a", (), 4), ("b", (), 9), budget=9, kept=("a",))
    assert splice(problem, one_by_one(problem)) == (0, 1, 0)


@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("cost", [0.0, 1e-300, 1.0, 1e30])
@pytest.mark.parametrize("budget", [1, 5, 100])
def test_odd_graphs_are_searched_without_harm(budget: int, cost: float, free: bool) -> None:
    """Values of no bytes, values nobody reads, operations that make nothing and are computed twice for nothing, costs at the limits."""
    rows = (("a", (), 5), ("b", ("a",), 0), ("c", (), 3), ("", ("a",), 0), ("d", ("b", "c"), 2))
    problem = problem_of(*rows, budget=budget, cost=cost, kept=("d",))
    found = splice(problem, (0, 1, 2, 3, 3, 2, 3, 4), free=free)
    assert (found is not None) == (budget > 1)
    if found is not None:
        assert_valid(problem, found, free)
        assert profile(problem, found).peak <= budget
        assert found.count(3) == 1


def test_nothing_is_found_where_there_is_nothing_to_find() -> None:
    views = assemble("views", [OperationSpec("view", "View", (), (ValueSpec("v", 0),), view=True)], (), {})
    assert splice(build_problem(views, given_costs(views), budget=10), ()) == ()
    assert splice(problem_of(("", (), 0), budget=10), (0,)) == (0,)
    assert splice(problem_of(("a", (), 0), budget=10), (0,)) == (0,)
    assert splice(problem_of(("a", (), 4), budget=10), (0,)) == (0,)
    assert splice(problem_of(("a", (), 4), budget=3), (0,)) is None
    for budget in (-5, 0):
        assert splice(unit_chain(4, 3).with_budget(budget), range(9)) is None


def descended(problem: Problem, seed: int, *, free: bool) -> tuple[int, ...] | None:
    return anneal_downwards(problem, one_by_one(problem), Annealing(10.0, 1.0), seed, 20_000, Watch(), free=free)


@given(seed=st.integers(0, 10**6), most=st.sampled_from([4, 12, 30]), free=st.booleans())
@settings(max_examples=100, deadline=None)
def test_a_descent_ends_with_a_valid_sequence_of_a_lower_peak(seed: int, most: int, free: bool) -> None:
    problem = random_problem(seed, most=most)
    problem = problem.with_budget(problem.base + 1)
    found = descended(problem, seed, free=free)
    if found is not None:
        assert_valid(problem, found, free)
        assert profile(problem, found).peak < profile(problem, one_by_one(problem)).peak


def test_a_descent_comes_down_to_the_smallest_peak_of_a_chain() -> None:
    """A chain of 12 layers takes 14 with everything kept, and 5 with as much recomputed as can be."""
    problem = unit_chain(12, 1)
    found = descended(problem, 0, free=False)
    assert found is not None
    smallest = min(budget for budget in range(1, 20) if unrestricted_optimum(unit_chain(3, budget)) < math.inf)
    assert profile(problem, found).peak == smallest


def test_a_descent_stops_at_the_budget() -> None:
    problem = unit_chain(12, 9)
    found = descended(problem, 0, free=False)
    assert found is not None
    assert 8 <= profile(problem, found).peak <= 9


def test_numbers_drawn_are_spread_evenly() -> None:
    totals = new_splice(unit_chain(3, 9), (), 1).totals
    assert np.bincount([drawn(totals) for _ in range(8000)], minlength=8).min() > 850


@njit
def drawn(totals: Table) -> int:
    """Kernels that only kernels call cannot be called from Python; this one can."""
    return int(basics.pick(totals[0]) % 8)
