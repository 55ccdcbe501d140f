"""Bounds and schedules for graphs of any size, from a relaxation that is cut ever finer.

Solve the merged-stage relaxation; look where its solution would really take more memory than there is; end a stage there, solve again.
While the linear bound still rises, its fractional solution says where; then the integer solution does, replayed as a schedule. A replay
that fits is a schedule as cheap as the bound, and there is nothing left to do. One that does not quite fit is where a search should begin.
Where the integer program takes too long, or its solution far too much memory, whole numbers in few stages give the better bound: which few
is then searched for. Operations in a row that take much of the memory for themselves are tried as zones; if that gives a better bound than
all ends of stages, the work goes on with them (`branching.py`). Without integer programs the fractions, rounded and replayed, say where to
cut.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import replace

import numpy as np

from ..events import Event, Watch
from ..milp.relaxation import Relaxation, build_relaxation, reduce_problem
from ..model.problem import Problem
from ..model.transforms.group import small_below
from ..result import Status
from ..rounding.replay import memory_within
from ..rounding.stage_rounding import as_sequence, rounded, where_it_exceeds
from ..schedule.sequence import profile
from ..settings import Settings
from ..solvers import get_solver
from ..solvers.integer_program import SAFETY, solve_whole
from ..solvers.linear_program import solve_linear
from .branching import Branching
from .cutting import ENOUGH, Cutting, growth_in_time, own_memory
from .selecting import Selecting
from .zoning import Passage, Zoning, zonings

ALL_SHARE = 0.6
TRIAL_SHARE = 0.15
"""The part of a program's time that goes into whole numbers in all stages, and into trying where one more of a few stages should end."""
FAR_ABOVE = 1.5
"""A solution that takes so many times the budget, replayed, will not come down to it by and by."""
QUICK = 10_000
QUICKER = 5_000
FIRST_STAGES = 3
WHOLE = 20_000
"""Stages times operations of a linear program that takes no more than a moment, of one that takes less, the stages of the first one, and
stages times operations of an integer one that may be worth its time."""
NO_ZONES = Zoning()
FEW = 300
FREE_TOGETHER = 0.15
FREE_BESIDE_ZONES = 0.02
"""Of graphs with more operations than the first, what is taken to need no memory, all of it together, as a share of what the budget leaves
above the least that could do: less of it beside zones, which leave little. Of smaller ones, everything counts."""
WORTHWHILE = 0.6
"""Zones that cost no more than this part of what the best so far do are not worth linear programs."""
ZONE_PROGRAMS = 7
ZONE_SHARE = 0.6
"""Linear programs that say what zones are worth, and the part of the time that they may take."""
FRUITLESS = 3
"""Zones tried in a row that are worth no more than others: after so many the work goes on with those, and the rest have to wait."""
SCARCE = 0.9
"""Where an operation takes this share of the memory for itself, zones come before linear programs that take longer than a moment."""


class Relaxing:
    """The best bound so far and the stages that gave it."""

    def __init__(self, problem: Problem, settings: Settings, quick: int = QUICK, *, zones: bool = True) -> None:
        """What takes no more than a moment is told by stages times operations."""
        self.problem = problem
        self.settings = settings
        self.bound = problem.ideal_cost
        self.exhausted = False
        """Nothing more can be gained this way."""
        self._reduced = reduce_problem(problem, self._small(FREE_TOGETHER))
        memory = profile(problem, range(problem.count)).memory
        self._peak = memory.index(max(memory)) + 1
        self._operations = max(1, int(self._reduced.again.sum()))
        least = 2 if FIRST_STAGES * self._operations < QUICK else 0
        self._cutting = Cutting(problem, self._peak, max(least, quick // self._operations))
        self._by_rounding = settings.iterations is not None
        """Integer programs are not wanted: they end by the clock."""
        self._before_zones = QUICKER if own_memory(problem).max(initial=0.0) >= SCARCE else QUICK
        self._zonings = zonings(problem, QUICK // self._operations)
        self._zones_left = zones and not self._by_rounding
        self._begun_zones = False
        self._fruitless = 0
        self._again: Zoning | None = None
        """Zones to try, whether there may be any, whether some were tried, how many in a row were worth nothing, and whether some are to be
        tried again."""
        self._branching: Branching | None = None
        """Zones that gave the best bound so far, better than all ends of stages without them."""
        self._selecting: Selecting | None = None
        """Integer programs of all these stages are too hard, or seem to lead nowhere; in the latter case they are tried once more."""
        self._selected = False
        self._once_more = False
        self._solved = frozenset({self._peak})
        """The last ends of stages whose integer program was solved."""

    @property
    def next_is_linear(self) -> bool:
        """Linear programs take milliseconds, integer ones seconds."""
        if self._by_rounding or self._zones_are_next:
            return True
        if self._branching is not None:
            return self._branching.next_is_linear
        return self._selecting is None and not self._cutting.done

    @property
    def _zones_are_next(self) -> bool:
        """Zones come when cutting takes more than a moment, and wait while those that were worth something are worked on."""
        if not self._zones_left or (self._branching is not None and self._fruitless >= FRUITLESS and not self._branching.exhausted):
            return False
        return self._cutting.done or self._begun_zones or len(self._cutting.next_ends) * self._operations > self._before_zones

    @property
    def is_selecting(self) -> bool:
        """Have integer programs of all stages become too hard, so that a few are chosen?"""
        return self._selecting is not None and self._branching is None and not self._zones_are_next

    @property
    def has_zones(self) -> bool:
        """Do zones say more than ends of stages?"""
        return self._branching is not None

    @property
    def passages(self) -> Sequence[Passage]:
        """Real ways through zones, like those that solutions went."""
        return () if self._branching is None else self._branching.passages

    @property
    def is_quick(self) -> bool:
        """Will the next program take no more than a moment? Looking for zones should not wait for anything."""
        if not self.next_is_linear:
            return False
        if self._zones_are_next:
            return True
        return self.problem.count <= FEW if self._branching is not None else self._cutting.is_quick

    def advance(self, watch: Watch, incumbent: Sequence[int] | None) -> tuple[int, ...] | None:
        """Solve the next program, or try some of few stages; what the solution says as a schedule, whether or not that fits."""
        if self._zones_are_next:
            self._try_zones(watch)
            return None
        if self._branching is not None:
            return self._advance_zones(self._branching, watch, incumbent)
        if self._selecting is not None:
            self._choose_ends(self._selecting, watch, incumbent)
            return None
        if self.next_is_linear:
            return self._solve_fractions(self._relaxation(self._cutting.next_ends), watch)
        return self._solve_integers(self._relaxation(self._cutting.best_ends), watch, incumbent)

    def take_up_again(self) -> None:
        """There is more time now: what took too long with zones may be worth it."""
        if self._branching is not None and self._branching.bound < np.inf:
            self._branching.take_up_again()
            self.exhausted = False

    def _relaxation(self, ends: Set[int]) -> Relaxation:
        return build_relaxation(self._reduced, *NO_ZONES.with_ends(ends).runs(self.problem))

    def _raise_bound(self, bound: float, relaxation: Relaxation, watch: Watch, kind: str) -> None:
        self.bound = max(self.bound, bound)
        watch.on_event(Event("bounding", bound=self.bound, message=f"{kind} relaxation, {relaxation.described}"))

    def _solve_fractions(self, relaxation: Relaxation, watch: Watch) -> tuple[int, ...] | None:
        growth = growth_in_time(watch)
        solved = solve_linear(relaxation.form, watch)
        bound = solved.bound * relaxation.unit
        self._raise_bound(bound, relaxation, watch, "linear")
        if solved.values is None:
            self._cutting.done = True
            self.exhausted = self._by_rounding or bound == np.inf
            return None
        found = rounded(self._reduced, relaxation, solved.values)
        taken = memory_within(self._reduced, relaxation, solved.values)
        limit = self._reduced.scale.available * (1 + ENOUGH)
        self._cutting.tell(bound, relaxation.open_runs, taken, limit, np.inf if self._by_rounding else growth())
        if self._cutting.done and self._by_rounding:
            self.exhausted = not self._cut_where_it_exceeds(found, self._cutting.next_ends)
        elif self._cutting.done and len(self._cutting.best_ends) * self._operations > WHOLE:
            self._select()
        return found

    def _try_zones(self, watch: Watch) -> None:
        """What the next zones are worth, if there are any. If there was no time to say, it is tried again."""
        self._begun_zones = True
        zoning = self._again or next(self._zonings, None)
        if zoning is None:
            self._zones_left = False
            return
        if self._branching is not None and zoning.worth < WORTHWHILE * self._branching.zoning.worth:
            return
        cutting = Cutting(self.problem, self._peak, 0)
        cutting.go_on(zoning.ends | self._cutting.best_ends)
        reduced = reduce_problem(self.problem, self._small(FREE_BESIDE_ZONES))
        tried = Branching(self.problem, reduced, self.settings, zoning, cutting)
        tried.settle(watch.part(watch.remaining * ZONE_SHARE), ZONE_PROGRAMS)
        self._take_bound(tried.bound)
        self._again = zoning if self._again is None and not tried.decided and tried.bound <= 0.0 else None
        self._fruitless += 1
        if tried.bound > (self._cutting.best_bound if self._branching is None else self._branching.bound):
            self._branching = tried
            self._fruitless = 0

    def _advance_zones(self, branching: Branching, watch: Watch, incumbent: Sequence[int] | None) -> tuple[int, ...] | None:
        found = None if branching.exhausted else branching.advance(watch, incumbent)
        self._take_bound(branching.bound)
        self.exhausted = self.exhausted or (branching.exhausted and not self._zones_left)
        return found

    def _take_bound(self, bound: float) -> None:
        self.bound = max(self.bound, bound)
        self.exhausted = self.exhausted or bound == np.inf

    def _small(self, together: float) -> float:
        return small_below(self.problem, 0.0 if self.problem.count <= FEW else together)

    def _solve_integers(self, relaxation: Relaxation, watch: Watch, incumbent: Sequence[int] | None) -> tuple[int, ...] | None:
        settings = replace(self.settings, gap=self.settings.gap / 5)
        start = None if incumbent is None else relaxation.start(incumbent)
        result = get_solver(settings.solver).solve(relaxation.as_integers(), settings, watch.part(watch.remaining * ALL_SHARE), start)
        self._raise_bound(result.bound * relaxation.unit * (1 - SAFETY), relaxation, watch, "integer")
        if result.status is Status.INFEASIBLE or result.values is None:
            self.exhausted = True
            return None
        found = as_sequence(self.problem, relaxation, result.values)
        if result.status is not Status.OPTIMAL:
            self._select()
            return found
        self._solved = self._cutting.best_ends
        if not self._selected and profile(self.problem, found).peak > FAR_ABOVE * self.problem.budget:
            self._select(once_more=True)
        self.exhausted = not self._cut_where_it_exceeds(found, self._cutting.best_ends)
        return found

    def _select(self, *, once_more: bool = False) -> None:
        """Whole numbers in few stages from here on, if that was not done before."""
        self.exhausted = self._selected
        self._selected = True
        self._once_more = once_more
        own = own_memory(self.problem)
        likely = sorted(self._cutting.best_ends - self._solved, key=lambda end: (-own[end - 1], end))
        self._selecting = Selecting(self.problem.count, self._solved, likely)

    def _choose_ends(self, selecting: Selecting, watch: Watch, incumbent: Sequence[int] | None) -> None:
        """Whole numbers in few stages: choose where one more should end, and one more; in the end, solve the most promising.

        Replayed, these recompute far too much at once: nothing to begin a search with.
        """
        limit = watch.remaining * TRIAL_SHARE
        if selecting.exhausted:
            self._solve_few(selecting.next_ends, 0.0, watch, incumbent)
            self.exhausted = not self._once_more
            self._selecting = None
        while not (self.exhausted or selecting.exhausted or watch.expired):
            bound = self._solve_few(selecting.next_ends, selecting.to_beat, watch.part(limit), incumbent)
            self.exhausted = bound == np.inf
            selecting.tell(bound)

    def _solve_few(self, ends: Set[int], to_beat: float, watch: Watch, incumbent: Sequence[int] | None) -> float:
        relaxation = self._relaxation(ends)
        start = None if incumbent is None else relaxation.start(incumbent)
        form = relaxation.as_integers()
        bound = solve_whole(form, self.settings.gap / 5, self.settings.seed, to_beat / relaxation.unit, watch, start) * relaxation.unit
        self._raise_bound(bound, relaxation, watch, "integer")
        return bound

    def _cut_where_it_exceeds(self, sequence: Sequence[int], ends: Set[int]) -> bool:
        """Go on with stages that end around the worst moments at which the schedule takes too much too, if there are any."""
        more = where_it_exceeds(self.problem, sequence, ends, NO_ZONES.covers)
        if more:
            self._cutting.go_on(ends | more)
        return bool(more)
