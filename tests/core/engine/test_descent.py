"""Coming down to a tight budget: it ends, whatever the search does."""

from __future__ import annotations

from itertools import count

from chains import unit_chain

from checkmate.core.engine.descent import descend
from checkmate.core.events import Watch
from checkmate.core.model.problem import Problem


def test_a_descent_that_finds_nothing_ends_before_its_time_on_graphs_of_few_bytes_too() -> None:
    problem = unit_chain(8, 3)
    tries = count(1)

    def find_nothing(problem: Problem, start: tuple[int, ...], seed: int) -> None:
        assert next(tries) < 100

    start = tuple(range(problem.count))
    assert descend(problem, start, 0, find_nothing, Watch()) == start
