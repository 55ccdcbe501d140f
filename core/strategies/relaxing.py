"""Bounds and schedules for graphs of any size, from a relaxation that is cut ever finer.

Solve the merged-stage relaxation; look where its solution would really take more memory than there is; end a stage there, solve again.
While the linear bound still rises, its fractional solution says where; then the integer solution does, replayed as a schedule. A replay
that fits is a schedule as cheap as the bound, and there is nothing left to do. One that does not quite fit is where a search should begin.
Where the integer program takes too long, or its solution far too much memory, whole numbers in few stages give the better bound: which few
is then searched for. Without integer programs the fractions, rounded and replayed, say where to cut.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence, Set
from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ..events import Event, Watch
from ..grouping import small_below
from ..milp.relaxation import Relaxation, build_relaxation, reduce_problem
from ..milp.runs import closing_run
from ..problem import Problem
from ..result import Status
from ..sequence import first_computations, just_in_time, profile, prune
from ..settings import Settings
from ..solvers import get_solver
from ..solvers.linear import solve_linear
from ..solvers.whole import SAFETY, solve_whole
from .lp_rounding import complete
from .replay import memory_within
from .selecting import Selecting

ENOUGH = 1e-6
"""Excess, as a share of the available memory, that is worth no further cut."""
RISE = 1e-5
"""A relative rise of the bound below this counts as none."""
PATIENCE = 2
"""Rounds without a rise after which integers take over from fractions."""
ALL_SHARE = 0.6
TRIAL_SHARE = 0.15
"""The part of a program's time that goes into whole numbers in all stages, and into trying where one more of a few stages should end."""
FAR_ABOVE = 1.5
"""A solution that takes so many times the budget, replayed, will not come down to it by and by."""
SLOW = 32.0
"""Seconds for one linear program, times its stages, after which cutting finer leads nowhere."""
QUICK = 10_000
"""Stages times operations of a linear program that takes no more than a moment."""
MOST_CUTS = 12
"""New ends of stages in one round."""


class Relaxing:
    """The best bound so far and the stages that gave it."""

    def __init__(self, problem: Problem, settings: Settings) -> None:
        self.problem = problem
        self.settings = settings
        self.bound = problem.ideal_cost
        self.exhausted = False
        """Nothing more can be gained this way."""
        self._reduced = reduce_problem(problem, small_below(problem))
        memory = profile(problem, range(problem.count)).memory
        self._peak = memory.index(max(memory)) + 1
        self._cuts = {0, problem.count, self._peak}
        self._without_rise = 0
        self._by_rounding = settings.iterations is not None
        """Integer programs are not wanted: they end by the clock."""
        self._selecting: Selecting | None = None
        """Integer programs of all these stages are too hard, or seem to lead nowhere; in the latter case they are tried once more."""
        self._selected = False
        self._once_more = False

    @property
    def next_is_linear(self) -> bool:
        """Linear programs take milliseconds, integer ones seconds."""
        return self._by_rounding or (self._selecting is None and self._without_rise < PATIENCE)

    @property
    def is_selecting(self) -> bool:
        """Have integer programs of all stages become too hard, so that a few are chosen?"""
        return self._selecting is not None

    @property
    def is_quick(self) -> bool:
        """Will the next program take no more than a moment?"""
        return self.next_is_linear and len(self._cuts) * int(self._reduced.again.sum()) < QUICK

    def advance(self, watch: Watch, incumbent: Sequence[int] | None) -> tuple[int, ...] | None:
        """Solve the next program, or try some of few stages; what the solution says as a schedule, whether or not that fits."""
        if self._selecting is not None:
            self._choose_ends(self._selecting, watch, incumbent)
            return None
        relaxation = build_relaxation(self._reduced, self._runs(self._cuts))
        if self.next_is_linear:
            return self._solve_fractions(relaxation, watch)
        return self._solve_integers(relaxation, watch, incumbent)

    def _runs(self, cuts: Set[int]) -> tuple[range, ...]:
        return (*(range(start, stop) for start, stop in pairwise(sorted(cuts))), *closing_run(self.problem))

    def _raise_bound(self, bound: float, relaxation: Relaxation, watch: Watch, kind: str) -> None:
        risen = bound > self.bound * (1 + RISE)
        self.bound = max(self.bound, bound)
        self._without_rise = 0 if risen and kind == "linear" else self._without_rise + 1
        watch.on_event(Event("bounding", bound=self.bound, message=f"{kind} relaxation, {len(relaxation.runs)} stages"))

    def _solve_fractions(self, relaxation: Relaxation, watch: Watch) -> tuple[int, ...] | None:
        begun = watch.elapsed
        solved = solve_linear(relaxation.form, watch)
        self._raise_bound(solved.bound * relaxation.unit, relaxation, watch, "linear")
        if solved.values is None:
            self.exhausted = True
            return None
        found = self._rounded(relaxation, solved.values)
        more = self._where_fractions_exceed(relaxation, solved.values)
        if self._by_rounding:
            more |= self._where_it_exceeds(found)
        more -= self._cuts
        self._cuts |= more
        if not more:
            self._without_rise = PATIENCE
        if self._by_rounding:
            self.exhausted = not more
        elif (watch.elapsed - begun) * len(relaxation.runs) > SLOW:
            self._select()
        return found

    def _where_fractions_exceed(self, relaxation: Relaxation, values: NDArray[np.float64]) -> set[int]:
        memory = memory_within(self._reduced, relaxation, values)
        limit = self._reduced.scale.available * (1 + ENOUGH)
        worst: list[tuple[float, int]] = []
        for run in relaxation.runs:
            if len(run) > 1:
                place = run.start + int(np.argmax(memory[run.start : run.stop]))
                if memory[place] > limit and place + 1 < run.stop:
                    worst.append((-float(memory[place]), place + 1))
        return {cut for _, cut in sorted(worst)[:MOST_CUTS]}

    def _rounded(self, relaxation: Relaxation, values: NDArray[np.float64]) -> tuple[int, ...]:
        """The schedule that keeps whatever the fractions keep more than half of."""
        padded = np.append(values, 0.0)
        free = np.flatnonzero(~self._reduced.counted).tolist()
        kept = [{*np.flatnonzero(padded[row] > 0.5).tolist(), *free} for row in relaxation.keep[:-1]]
        return just_in_time(self.problem, complete(self.problem, relaxation.runs, kept))

    def _solve_integers(self, relaxation: Relaxation, watch: Watch, incumbent: Sequence[int] | None) -> tuple[int, ...] | None:
        settings = replace(self.settings, gap=self.settings.gap / 5)
        start = None if incumbent is None else relaxation.start(incumbent)
        part = watch.part(watch.remaining * ALL_SHARE)
        result = get_solver(settings.solver).solve(relaxation.as_integers(), settings, part, start)
        self._raise_bound(result.bound * relaxation.unit * (1 - SAFETY), relaxation, watch, "integer")
        if result.status is Status.INFEASIBLE or result.values is None:
            self.exhausted = True
            return None
        found = just_in_time(self.problem, self._as_sequence(relaxation, result.values))
        if result.status is not Status.OPTIMAL:
            self._select()
            return found
        if not self._selected and profile(self.problem, found).peak > FAR_ABOVE * self.problem.budget:
            self._select(once_more=True)
        more = self._where_it_exceeds(found)
        self._cuts |= more
        self._without_rise = PATIENCE - 1
        self.exhausted = not more
        return found

    def _select(self, *, once_more: bool = False) -> None:
        """Whole numbers in few stages from here on, if that was not done before."""
        self.exhausted = self._selected
        self._selected = True
        self._once_more = once_more
        self._selecting = Selecting(self.problem.count, self._peak)

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
        relaxation = build_relaxation(self._reduced, self._runs({0, self.problem.count} | ends))
        start = None if incumbent is None else relaxation.start(incumbent)
        form = relaxation.as_integers()
        bound = solve_whole(form, self.settings.gap / 5, self.settings.seed, to_beat / relaxation.unit, watch, start) * relaxation.unit
        self._raise_bound(bound, relaxation, watch, "integer")
        return bound

    def _as_sequence(self, relaxation: Relaxation, values: NDArray[np.float64]) -> tuple[int, ...]:
        padded = np.append(values, 0.0)
        sequence: list[int] = []
        for stage, run in enumerate(relaxation.runs):
            sequence.extend(np.flatnonzero(padded[relaxation.compute[stage]] > 0.5).tolist())
            sequence.extend(run)
        return prune(self.problem, sequence)

    def _where_it_exceeds(self, sequence: Sequence[int]) -> set[int]:
        """Around the worst moment of every stage in which the schedule takes too much."""
        memory = profile(self.problem, sequence).memory
        upcoming = self.problem.count
        firsts = first_computations(self.problem.count, sequence)
        edges = sorted(self._cuts)
        worst: dict[int, tuple[int, int]] = {}
        for position in reversed(range(len(sequence))):
            if firsts[sequence[position]] == position:
                upcoming = sequence[position]
            if memory[position] > self.problem.budget:
                stage = bisect_right(edges, upcoming)
                worst[stage] = max(worst.get(stage, (0, 0)), (memory[position], upcoming))
        places = [place for _, place in sorted(worst.values(), reverse=True)[: MOST_CUTS // 2]]
        return {cut for place in places for cut in (place, place + 1) if 0 < cut < self.problem.count} - self._cuts
