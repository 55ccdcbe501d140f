"""The views of a problem that are searched in turn: in stages, fine or coarse, with operations grouped, and as a plain sequence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace

from ..events import Watch
from ..model.problem import Problem
from ..model.transforms.group import Grouped, group_operations, pass_zones, small_below
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
INSISTENT = 2
"""Where there are zones memory is scarce: no walk should let go of it."""


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


@dataclass(frozen=True, slots=True, eq=False)
class ZoneView:
    """A problem in which zones are passed on given ways, looked at in all the ways that a problem can be looked at in turn."""

    problem: Problem
    passed: Grouped
    views: tuple[View, ...]
    name: str = "zone search"

    @staticmethod
    def of(problem: Problem, ways: Mapping[range, Sequence[int]]) -> ZoneView:
        passed = pass_zones(problem, ways)
        return ZoneView(problem, passed, views_of(passed.problem))

    def recomputing_no_more(self, again: Set[int], dear: float) -> ZoneView:
        """The same as a plain sequence, in which operations outside zones that cost more than this are made again only if among some."""
        chosen = {group for group, main in enumerate(self.passed.main) if main in again}
        passed = replace(self.passed, problem=_with_dear_pinned(self.passed.problem, chosen, dear))
        return ZoneView(self.problem, passed, (View("splice search", passed.problem),), "trusting zone search")

    def walk(self, start: Sequence[int], seed: int, moves: int, watch: Watch, turn: int) -> tuple[int, ...] | None:
        """One walk, from and to sequences of the problem itself. Whose turn it is says how the problem is looked at."""
        view = self.views[turn % len(self.views)]
        found = view.walk(self.passed.contract(start), seed, moves, watch, INSISTENT)
        if found is None:
            return None
        expanded = self.passed.expand(found)
        better = splice_from(self.problem, expanded, seed, POLISH * moves, watch, insistence=INSISTENT)
        return cheapest_that_fits(self.problem, [expanded] if better is None else [expanded, better])


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


def recomputing_no_more(problem: Problem, sequence: Sequence[int], dear: float) -> Problem:
    """The problem in which operations that cost more than this are made again only if a sequence does so.

    A sequence that takes a little too much, from a relaxation, is often right about which dear operations to recompute; making it fit takes
    many cheap ones. A walk that may recompute anything recomputes one dear operation instead, and never finds back.
    """
    return _with_dear_pinned(problem, {operation for operation, times in Counter(sequence).items() if times > 1}, dear)


def _with_dear_pinned(problem: Problem, again: Set[int], dear: float) -> Problem:
    """The problem in which operations that cost more than this are made again only if among some."""
    pinned = (
        is_pinned or (cost > dear and operation not in again)
        for operation, (is_pinned, cost) in enumerate(zip(problem.pinned, problem.cost, strict=True))
    )
    return replace(problem, pinned=tuple(pinned))


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
