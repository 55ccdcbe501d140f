"""Where linear relaxations are cut, and whose turn it is to search."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
from chains import unit_chain
from numpy.typing import NDArray
from oracles import unrestricted_optimum

from checkmate.core.bounds.cutting import Cutting, few_narrowest, narrowest_of_each, own_memory, worst_of_each
from checkmate.core.bounds.relaxing import Relaxing
from checkmate.core.engine.turns import Turns, Way
from checkmate.core.events import Watch
from checkmate.core.model.costs import given_costs
from checkmate.core.model.graph import OperationSpec, ValueSpec, Work, assemble
from checkmate.core.model.problem import Problem, build_problem
from checkmate.core.settings import Settings

OWN = np.array([0.1, 0.9, 0.2, 0.8, 0.3, 0.7, 0.4, 0.6])
TAKEN = np.array([2.0, 1.2, 1.9, 1.3, 1.8, 1.4, 1.7, 1.5])


def places(*stages: tuple[int, ...]) -> list[NDArray[np.int64]]:
    return [np.array(stage, dtype=np.int64) for stage in stages]


def test_rules_look_only_where_memory_is_exceeded() -> None:
    exceeded = places((0, 2), (3, 4), (6, 7))
    assert few_narrowest(exceeded, OWN, TAKEN) == {3 + 1, 7 + 1, 6 + 1, 4 + 1}
    assert narrowest_of_each(exceeded, OWN, TAKEN) == {2 + 1, 3 + 1, 7 + 1}
    assert worst_of_each(exceeded, OWN, TAKEN) == {0 + 1, 4 + 1, 6 + 1}
    assert few_narrowest([], OWN, TAKEN) == narrowest_of_each(places(()), OWN, TAKEN) == set()


def run_to_the_end(cutting: Cutting, count: int, bound: Callable[[frozenset[int]], float], growth: float = np.inf) -> list[frozenset[int]]:
    """Every operation but the last of a stage is taken to exceed: there is always more to cut."""
    asked = []
    while not cutting.done:
        asked.append(cutting.next_ends)
        assert len(asked) < 100
        edges = sorted({0, count, *cutting.next_ends})
        stages = [range(start, stop) for start, stop in pairwise(edges)]
        cutting.tell(bound(cutting.next_ends), stages, np.full(count, 2.0), 1.0, growth)
    return asked


def test_what_an_operation_takes_for_itself_is_a_share_of_the_memory_there_is() -> None:
    assert own_memory(unit_chain(3, 8)).tolist() == [1 / 8, 2 / 8, 2 / 8, 2 / 8, 3 / 8, 3 / 8, 3 / 8]


def test_the_best_of_all_rules_is_cut_finer_not_the_last() -> None:
    problem = unit_chain(30, 10)
    cutting = Cutting(problem, 30, quick=12)
    asked = run_to_the_end(cutting, problem.count, lambda ends: 2.0 if len(ends) == 5 else 1.0)
    assert asked[0] == {30}
    assert len(cutting.best_ends) == 5
    finer = [ends for ends in asked if ends > cutting.best_ends]
    assert finer
    assert asked[-1] in finer


def test_stages_are_no_more_than_there_is_time_for() -> None:
    problem = unit_chain(30, 10)

    def rising(ends: frozenset[int]) -> float:
        return 1.0 + 1e-4 * len(ends)

    leisurely = run_to_the_end(Cutting(problem, 30, quick=4), problem.count, rising)
    hasty = run_to_the_end(Cutting(problem, 30, quick=4), problem.count, rising, growth=1.1)
    assert max(map(len, leisurely)) > 20
    assert max(map(len, hasty)) <= 20


def test_large_problems_are_not_solved_three_times_for_three_rules() -> None:
    problem = unit_chain(30, 10)
    asked = run_to_the_end(Cutting(problem, 30, quick=1), problem.count, lambda ends: 1.0)
    assert asked.count(asked[0]) == 1


def test_going_on_from_other_ends_takes_one_round_unless_that_helps() -> None:
    problem = unit_chain(30, 10)
    cutting = Cutting(problem, 30, quick=12)
    run_to_the_end(cutting, problem.count, lambda ends: 1.0)
    cutting.go_on({5, 30})
    assert cutting.best_ends == {5, 30}
    assert run_to_the_end(cutting, problem.count, lambda ends: 1.0) == [{5, 30}]
    cutting.go_on({5, 30})
    assert len(run_to_the_end(cutting, problem.count, lambda ends: 2.0)) > 1


def taps(count: int) -> Problem:
    """The taps of one weight gradient where three large values fit: the gradient, and two of its transpose, the input and a slice of it."""
    specs = [made("gradient", (), 4, 100.0), made("input", (), 4, 2.0), made("slice 0", ("input",), 4), made("transpose", ("gradient",), 4)]
    specs.append(made("product 0", ("slice 0", "transpose"), 0))
    for tap in range(1, count):
        specs += [made(f"slice {tap}", ("input",), 4), made(f"product {tap}", (f"slice {tap}", "transpose"), 0)]
    specs.append(made("end", ("gradient", *(f"product {tap}" for tap in range(count))), 0))
    graph = assemble("taps", specs, (), {})
    return build_problem(graph, given_costs(graph), budget=12)


def made(name: str, inputs: tuple[str, ...], size: int, cost: float = 1.0) -> OperationSpec:
    return OperationSpec(name, "Op", inputs, (ValueSpec(name, size),), work=Work(cost=cost))


def test_fractions_prove_what_narrow_places_cost() -> None:
    """Input and transpose are made again for every tap but the first, and linear programs alone can tell."""
    problem = taps(3)
    optimum = problem.ideal_cost + 2 * 3.0
    assert unrestricted_optimum(problem) == optimum
    relaxing = Relaxing(problem, Settings())
    while relaxing.next_is_linear:
        relaxing.advance(Watch(60), None)
    assert relaxing.bound == pytest.approx(optimum)


def test_what_fails_sits_out_and_comes_back() -> None:
    turns = Turns(3)
    ways = set()
    for _ in range(12):
        way = turns.next()
        ways.add(way)
        turns.tell(way, failed=False)
    assert ways == {Way(view, from_best) for view in range(3) for from_best in (False, True)}
    seen = []
    for _ in range(40):
        way = turns.next()
        turns.tell(way, failed=way == Way(0, from_best=False))
        seen.append(way)
    assert 1 <= seen.count(Way(0, from_best=False)) < seen.count(Way(1, from_best=False))
    assert turns.round >= 40 // 3


def test_turns_go_on_when_everything_fails() -> None:
    turns = Turns(2)
    for _ in range(50):
        turns.tell(turns.next(), failed=True)
