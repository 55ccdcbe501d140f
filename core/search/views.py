"""The views of a problem that are searched in turn: as it is, in coarse stages, and with operations grouped."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from ..events import Watch
from ..grouping import Grouped, group_operations, small_below
from ..problem import Problem
from ..sequence import just_in_time
from .layout import Layout, coarse_layout, fine_layout
from .local import cheapest_that_fits, walk_from

WALKERS = 2
"""Kernels run without the interpreter's lock; this many at a time, so that results do not depend on the machine."""
COARSE_OPERATIONS = 150
FINE_OPERATIONS = 1500
"""Graphs above the first size are searched coarsely and grouped too, and above the second one only so."""


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """One way to look at a problem."""

    name: str
    problem: Problem
    layout: Layout
    grouped: Grouped | None = None

    def walk(self, start: Sequence[int], seed: int, moves: int, watch: Watch) -> tuple[int, ...] | None:
        """One walk, from and to sequences of the problem itself."""
        if self.grouped is None:
            return walk_from(self.problem, start, seed, moves, watch, self.layout)
        smaller = self.grouped.problem
        found = walk_from(smaller, self.grouped.contract(start), seed, moves, watch, self.layout)
        if found is None:
            return None
        expanded = self.grouped.expand(found)
        return cheapest_that_fits(self.problem, [expanded, just_in_time(self.problem, expanded)])


def views_of(problem: Problem) -> tuple[View, ...]:
    """Those worth searching."""
    fine = View("search", problem, fine_layout(problem))
    if problem.count <= COARSE_OPERATIONS:
        return (fine,)
    small = small_below(problem)
    grouped = group_operations(problem, small)
    coarse = (
        View("coarse search", problem, coarse_layout(problem, small)),
        View("grouped search", problem, coarse_layout(grouped.problem, small), grouped),
    )
    return (*coarse, fine) if problem.count <= FINE_OPERATIONS else coarse


def search_views(problem: Problem, starts: Sequence[tuple[int, ...]], seed: int, moves: int, watch: Watch) -> tuple[int, ...] | None:
    """One walk from each start in turn in each view, side by side; the cheapest schedule found. Deterministic unless time runs out."""
    views = views_of(problem)
    walks = max(len(views), len(starts))
    with ThreadPoolExecutor(WALKERS) as pool:
        made = [
            pool.submit(views[number % len(views)].walk, starts[number % len(starts)], seed * 1000 + number, moves, watch)
            for number in range(walks)
        ]
        found = [sequence for walk in made if (sequence := walk.result()) is not None]
    return cheapest_that_fits(problem, found)
