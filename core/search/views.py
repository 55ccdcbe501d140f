"""The views of a problem that are searched in turn: in stages, fine or coarse, with operations grouped, and as a plain sequence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..events import Watch
from ..model.problem import Problem
from ..model.transforms.group import Grouped, group_operations, small_below
from ..schedule.sequence import just_in_time
from .fitting import cheapest_that_fits
from .layout import Layout, coarse_layout, fine_layout
from .local import walk_from
from .splice import splice_from
from .walkers import walkers

COARSE_OPERATIONS = 150
FINE_OPERATIONS = 1500
"""Graphs above the first size are searched in coarse stages and grouped, smaller ones in fine stages. Up to the second size fine stages
are worth their time too where memory is so scarce that nothing else fits."""
SPLICES = 5
QUICK_OPERATIONS = 1000
QUICK_SPLICES = 15
"""Moves over a plain sequence for each over stages: about what takes the same time, which is more on graphs that are
neither large nor small."""
POLISH = 2
"""The same, to improve what another view has found."""


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """One way to look at a problem: in stages, or, without a layout, as a plain sequence."""

    name: str
    problem: Problem
    layout: Layout | None = None
    grouped: Grouped | None = None

    def walk(self, start: Sequence[int], seed: int, moves: int, watch: Watch, insistence: int = 0) -> tuple[int, ...] | None:
        """One walk, from and to sequences of the problem itself. How much a plain sequence insists on fitting is to be said."""
        if self.layout is None:
            times = QUICK_SPLICES if COARSE_OPERATIONS < self.problem.count <= QUICK_OPERATIONS else SPLICES
            return splice_from(self.problem, start, seed, times * moves, watch, insistence=insistence)
        found = self._in_stages(start, seed, moves, watch)
        if found is None:
            return None
        better = splice_from(self.problem, found, seed, POLISH * moves, watch, insistence=insistence)
        return cheapest_that_fits(self.problem, [found] if better is None else [found, better])

    def _in_stages(self, start: Sequence[int], seed: int, moves: int, watch: Watch) -> tuple[int, ...] | None:
        if self.grouped is None:
            return walk_from(self.problem, start, seed, moves, watch, self.layout)
        found = walk_from(self.grouped.problem, self.grouped.contract(start), seed, moves, watch, self.layout)
        if found is None:
            return None
        expanded = self.grouped.expand(found)
        return cheapest_that_fits(self.problem, [expanded, just_in_time(self.problem, expanded)])


def views_of(problem: Problem, *, scarce: bool = False) -> tuple[View, ...]:
    """Those worth searching, where memory is plenty enough for some schedule or so scarce that the question is whether there is any."""
    plain = View("splice search", problem)
    if problem.count <= COARSE_OPERATIONS:
        return (View("search", problem, fine_layout(problem)), plain)
    small = small_below(problem)
    grouped = group_operations(problem, small)
    views = (
        View("coarse search", problem, coarse_layout(problem, small)),
        View("grouped search", problem, coarse_layout(grouped.problem, small), grouped),
        plain,
    )
    return (*views, View("search", problem, fine_layout(problem))) if scarce and problem.count <= FINE_OPERATIONS else views


def search_views(
    problem: Problem, starts: Sequence[tuple[int, ...]], seed: int, moves: int, watch: Watch, threads: int | None = None
) -> tuple[int, ...] | None:
    """One walk from each start in turn in each view, side by side; the cheapest schedule found. Deterministic unless time runs out."""
    views = views_of(problem, scarce=True)
    walks = max(len(views), len(starts))
    with walkers(threads) as pool:
        made = [
            pool.submit(views[number % len(views)].walk, starts[number % len(starts)], seed * 1000 + number, moves, watch)
            for number in range(walks)
        ]
        found = [sequence for walk in made if (sequence := walk.result()) is not None]
    return cheapest_that_fits(problem, found)
