"""The search for the largest size: against trying every size, with few trials, and what it says of the next one."""

from __future__ import annotations

from dataclasses import replace

import pytest
from chains import unit_chain
from hypothesis import given
from hypothesis import strategies as st

from checkmate.core.events import Watch
from checkmate.core.model.problem import Problem
from checkmate.core.settings import Settings
from checkmate.core.studies.largest import LARGEST_SIZE, Largest, SizeSearch, Trial, _close_in
from checkmate.core.studies.points import solve_point

ALLOWED = 1.3


def chain_of(size: int, budget: int, fixed: int = 7) -> Problem:
    """Every value `size` bytes, beside some that are always there."""
    problem = unit_chain(5, budget)
    return replace(problem, base=fixed, size=tuple(size for _ in problem.size), graph=_sized(problem, size, fixed))


def _sized(problem: Problem, size: int, fixed: int):  # type: ignore[no-untyped-def]
    graph = problem.graph
    return replace(graph, values=tuple(replace(value, bytes=size) for value in graph.values), fixed={"parameters": fixed})


def search_of(budget: int) -> SizeSearch:
    def trial(size: int) -> Trial:
        problem = chain_of(size, budget)
        return Trial(size, problem, ALLOWED * problem.ideal_cost)

    return SizeSearch(trial, lambda strategy: Settings(), lambda strategy, size: Watch(20))


def by_trying_all(strategy: str, budget: int, most: int) -> int:
    def works(size: int) -> bool:
        problem = chain_of(size, budget)
        found = solve_point(problem, strategy, Settings(), Watch(20))
        return found.fits and found.cost <= ALLOWED * problem.ideal_cost + 1e-9

    return max((size for size in range(1, most) if works(size)), default=0)


@pytest.mark.parametrize("strategy", ["keep-all", "ap-sqrt", "linearized-greedy", "optimal"])
@pytest.mark.parametrize("budget", [9, 107])
def test_it_is_the_largest_of_all(strategy: str, budget: int) -> None:
    search = search_of(budget)
    found = search.find(strategy)
    expected = by_trying_all(strategy, budget, 36)
    assert found.size == expected
    assert found.failed == expected + 1
    assert (found.result is None) == (expected == 0)
    if found.result is not None:
        assert found.result.peak_bytes <= budget
        assert found.result.cost <= ALLOWED * found.ideal_cost + 1e-9


def test_auto_begins_where_the_others_end_and_finds_the_optimum() -> None:
    search = search_of(107)
    others = [search.find(strategy) for strategy in ("keep-all", "linearized-greedy")]
    auto: Largest = search.find("auto")
    assert auto.size == by_trying_all("optimal", 107, 40) >= max(answer.size for answer in others)
    assert auto.failed == auto.size + 1
    impossible = search.impossible_from()
    assert impossible is not None
    assert impossible > auto.size
    assert search.sizes_tried < 30


@given(st.integers(0, 5000), st.integers(1, 50), st.booleans())
def test_closing_in_takes_few_steps(boundary: int, offset: int, linear: bool) -> None:
    tried: list[int] = []

    def excess(size: int) -> float:
        tried.append(size)
        return size * 3 - (boundary * 3 + 1) + (offset / 100 if size > boundary else 0)

    assert _close_in(excess, 0, None, linear=linear) == (boundary, boundary + 1)
    assert len(tried) == len(set(tried)) <= 30


def test_what_does_not_grow_fits_at_every_size() -> None:
    assert _close_in(lambda size: -1.0, 0, None) == (LARGEST_SIZE, None)
