"""Bounds with zones: a relaxation for each level at which zones may be passed, each cut ever finer on its own.

Between a way through a zone that takes much memory and one that costs much, fractions are undecided, and prove little. So they are not
asked to decide: schedules that take one kind of way and those that take the other are bounded apart, and the lower of the two bounds holds
for all. Work always goes on where the bound is lowest: linear programs first, cut as elsewhere, then an integer one, until its bound is no
longer the lowest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..events import Event, Watch
from ..milp.relaxation import Reduced, Relaxation, build_relaxation
from ..model.problem import Problem
from ..result import Status
from ..rounding.replay import memory_within
from ..rounding.stage_rounding import as_sequence, rounded, where_it_exceeds
from ..schedule.sequence import profile
from ..settings import Settings
from ..solvers import get_solver
from ..solvers.integer_program import SAFETY
from ..solvers.linear_program import LinearSolution, solve_linear
from .cutting import ENOUGH, Cutting, growth_in_time
from .zoning import Passage, Zoning, real_passage

UNDECIDED = 1e-4
"""A level that is gone less than all but this is not decided."""
MOST_PARTS = 16
"""Parts that are bounded apart."""
MOST_FAILURES = 2
"""Linear programs that may take too long before a part is given up."""
SMALL = 20_000
SMALL_SHARE = 0.5
"""Ends of stages times operations of an integer program that may be solved before fractions have given what they can, and the part of the
time that it may take."""


@dataclass(slots=True, eq=False)
class _Part:
    """The schedules that pass zones at none of some levels."""

    closed: Mapping[range, frozenset[int]]
    """The levels, by the run of the zone."""
    cutting: Cutting
    bound: float
    decided: bool = False
    """Does its linear program know at which levels zones are passed?"""
    too_hard: bool = False
    whole_bound: float = 0.0
    """Did an integer program take too long, and what was proven then?"""
    failures: int = 0
    """Linear programs that took too long."""
    ended: bool = False
    """Nothing more can be gained here."""


class Branching:
    """The parts, and the best bound of each so far."""

    def __init__(self, problem: Problem, reduced: Reduced, settings: Settings, zoning: Zoning, cutting: Cutting) -> None:
        self.problem = problem
        self.settings = settings
        self.zoning = zoning
        self.passages: list[Passage] = []
        """What solutions said of zones, in the order in which they did."""
        self._reduced = reduced
        self._operations = max(1, int(reduced.again.sum()))
        self._parts = [_Part({}, cutting, 0.0)]

    @property
    def bound(self) -> float:
        """No schedule is cheaper."""
        return min((part.bound for part in self._parts), default=np.inf)

    @property
    def decided(self) -> bool:
        """Is it known at which levels zones are passed where the bound is lowest?"""
        return not self._parts or self._lowest.decided

    @property
    def exhausted(self) -> bool:
        return not self._parts or self._lowest.ended

    @property
    def next_is_linear(self) -> bool:
        return bool(self._parts) and not self._is_next_whole(self._lowest)

    def _is_next_whole(self, part: _Part) -> bool:
        """Whole numbers come as soon as it is decided where zones are passed, as long as that does not take too long."""
        if not part.decided:
            return False
        return part.cutting.done or (not part.too_hard and len(part.cutting.next_ends) * self._operations <= SMALL)

    @property
    def _lowest(self) -> _Part:
        return min(self._parts, key=lambda part: part.bound)

    def advance(self, watch: Watch, incumbent: Sequence[int] | None) -> tuple[int, ...] | None:
        """Solve the next program; what the solution says as a schedule, whether or not that fits."""
        part = self._lowest
        if self._is_next_whole(part):
            return self._solve_integers(part, watch, incumbent)
        return self._solve_fractions(part, watch, cut=part.decided)

    def take_up_again(self) -> None:
        """There is more time now: what took too long is not given up."""
        for part in self._parts:
            part.failures = 0
            part.too_hard = part.ended = False

    def settle(self, watch: Watch, programs: int) -> None:
        """Bound apart what must be, as long as that is undecided where the bound is lowest, by no more than so many linear programs."""
        for _ in range(programs):
            part = self._lowest
            if part.decided or part.failures or watch.expired:
                break
            self._solve_fractions(part, watch, cut=False)
            if not self._parts:
                break

    def _solve_fractions(self, part: _Part, watch: Watch, *, cut: bool) -> tuple[int, ...] | None:
        growth = growth_in_time(watch)
        relaxation = self._relaxation(part.cutting.next_ends)
        solved = solve_linear(relaxation.closed(self._by_stage(relaxation, part)), watch)
        bound = self._raise(part, solved, relaxation, watch)
        if solved.values is None:
            if bound == np.inf:
                self._parts.remove(part)
            part.failures += 1
            part.ended = part.failures == MOST_FAILURES
            return None
        if self._divide(part, relaxation, solved.values):
            return None
        part.decided = True
        self._note_passage(relaxation, solved.values)
        if cut:
            taken = memory_within(self._reduced, relaxation, solved.values)
            limit = self._reduced.scale.available * (1 + ENOUGH)
            part.cutting.tell(bound, relaxation.open_runs, taken, limit, growth())
            part.ended = part.cutting.done and part.too_hard and part.bound <= part.whole_bound
        return rounded(self._reduced, relaxation, solved.values)

    def _solve_integers(self, part: _Part, watch: Watch, incumbent: Sequence[int] | None) -> tuple[int, ...] | None:
        """Until it is solved, or this part is no longer the lowest, or low enough to matter.

        Without presolve: that of HiGHS 1.13 to 1.15 proved optima of such programs that were none, by way of parallel rows and columns.
        """
        ends = part.cutting.best_ends if part.cutting.done else part.cutting.next_ends
        relaxation = self._relaxation(ends)
        settings = replace(self.settings, gap=self.settings.gap / 5, presolve=False)
        form = relaxation.as_integers(relaxation.closed(self._by_stage(relaxation, part)))
        start = None if incumbent is None else relaxation.start(incumbent)
        enough = self._enough(part, incumbent) / relaxation.unit * (1 + SAFETY)
        reached = False

        def hear(_: float | None, bound: float | None) -> None:
            nonlocal reached
            reached = reached or (bound is not None and bound > enough)

        allowed = watch.remaining if part.cutting.done else watch.remaining * SMALL_SHARE
        part_watch = Watch(allowed, watch.on_event, lambda: reached or watch.interrupted())
        result = get_solver(settings.solver).solve(form, settings, part_watch, start, hear)
        part.bound = max(part.bound, result.bound * relaxation.unit * (1 - SAFETY))
        self._tell(relaxation, watch, "integer")
        if result.status is Status.INFEASIBLE:
            self._parts.remove(part)
            return None
        if result.values is None or result.status is not Status.OPTIMAL:
            part.ended = not reached and part.cutting.done
            part.too_hard = part.too_hard or not reached
            part.whole_bound = part.bound
            return None
        self._note_passage(relaxation, result.values)
        found = as_sequence(self.problem, relaxation, result.values)
        more = where_it_exceeds(self.problem, found, ends, self.zoning.covers)
        part.ended = not more
        part.cutting.go_on(ends | more, part.bound)
        part.cutting.done = part.too_hard
        return found

    def _enough(self, part: _Part, incumbent: Sequence[int] | None) -> float:
        """A bound above this need not rise further now."""
        others = min((other.bound for other in self._parts if other is not part), default=np.inf)
        known = np.inf if incumbent is None else profile(self.problem, incumbent).cost * (1 - self.settings.gap)
        return max(min(others, known), part.bound)

    def _relaxation(self, ends: frozenset[int]) -> Relaxation:
        return build_relaxation(self._reduced, *self.zoning.with_ends(ends).runs(self.problem))

    @staticmethod
    def _by_stage(relaxation: Relaxation, part: _Part) -> dict[int, frozenset[int]]:
        return {stage: part.closed.get(columns.zone.run, frozenset()) for stage, columns in relaxation.zones.items()}

    def _raise(self, part: _Part, solved: LinearSolution, relaxation: Relaxation, watch: Watch) -> float:
        bound = solved.bound * relaxation.unit
        part.bound = max(part.bound, bound)
        self._tell(relaxation, watch, "linear")
        return bound

    def _tell(self, relaxation: Relaxation, watch: Watch, kind: str) -> None:
        parts = f", {len(self._parts)} parts" if len(self._parts) > 1 else ""
        watch.on_event(Event("bounding", bound=min(self.bound, 1e300), message=f"{kind} relaxation, {relaxation.described}{parts}"))

    def _divide(self, part: _Part, relaxation: Relaxation, values: NDArray[np.float64]) -> bool:
        """Bound two kinds of schedules apart, those that pass a zone at lower levels and those at higher ones, if that is undecided."""
        gone = {columns.zone.run: columns.level(values) for columns in relaxation.zones.values()}
        undecided = {run: levels for run, levels in gone.items() if levels.max() < 1 - UNDECIDED}
        if not undecided or len(self._parts) >= MOST_PARTS:
            return False
        run, levels = min(undecided.items(), key=lambda item: item[1].max())
        first = 1 + int(np.argmin(np.abs(np.cumsum(levels)[:-1] - 0.5)))
        self._parts.remove(part)
        for closed in (range(first), range(first, len(levels))):
            apart = {**part.closed, run: part.closed.get(run, frozenset()) | frozenset(closed)}
            self._parts.append(_Part(apart, part.cutting.fork(), part.bound))
        return True

    def _note_passage(self, relaxation: Relaxation, values: NDArray[np.float64]) -> None:
        passage = real_passage(self.problem, relaxation, values)
        if passage is not None and passage not in self.passages:
            self.passages.append(passage)
