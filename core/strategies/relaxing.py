"""Bounds and schedules for graphs of any size, from a relaxation that is cut ever finer.

Solve the merged-stage relaxation; look where its solution would really take more memory than there is; end a stage there, solve again.
While the linear bound still rises, its fractional solution says where; then the integer solution does, replayed as a schedule. A replay
that fits is a schedule as cheap as the bound, and there is nothing left to do. One that does not quite fit is where a search should begin.
Where the integer program takes too long, the fractions, rounded and replayed, say where to cut.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
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
from .lp_rounding import complete
from .replay import memory_within

ENOUGH = 1e-6
"""Excess, as a share of the available memory, that is worth no further cut."""
RISE = 1e-5
"""A relative rise of the bound below this counts as none."""
PATIENCE = 2
"""Rounds without a rise after which integers take over from fractions."""
TOO_HARD = 2
"""Integer programs that were not solved in time, after which no more are tried."""
SLOW = 4.0
"""Seconds for one linear program after which cutting finer leads nowhere."""
QUICK = 10_000
"""Stages times operations of a linear program that takes no more than a moment."""
MOST_CUTS = 12
"""New ends of stages in one round."""
SAFETY = 1e-7
"""Taken off the bound of an integer program, relative: it rests on the solver's tolerances."""


class Relaxing:
    """The best bound so far and the stages that gave it. Each call of `advance` solves one program."""

    def __init__(self, problem: Problem, settings: Settings) -> None:
        self.problem = problem
        self.settings = settings
        self.bound = problem.ideal_cost
        self.exhausted = False
        """Nothing more can be gained this way."""
        self._reduced = reduce_problem(problem, small_below(problem))
        memory = profile(problem, range(problem.count)).memory
        self._cuts = {0, problem.count, memory.index(max(memory)) + 1}
        self._without_rise = 0
        self._unsolved = 0
        self._by_rounding = settings.iterations is not None
        """Integer programs have become too hard."""

    @property
    def next_is_linear(self) -> bool:
        """Linear programs take milliseconds, integer ones seconds."""
        return self._by_rounding or self._without_rise < PATIENCE

    @property
    def is_quick(self) -> bool:
        """Will the next program take no more than a moment?"""
        return self.next_is_linear and len(self._cuts) * int(self._reduced.again.sum()) < QUICK

    def advance(self, watch: Watch, incumbent: Sequence[int] | None) -> tuple[int, ...] | None:
        """Solve the next program, linear or integer; what an integer solution says as a schedule, whether or not that fits."""
        relaxation = build_relaxation(self._reduced, self._runs())
        if self.next_is_linear:
            return self._solve_fractions(relaxation, watch)
        return self._solve_integers(relaxation, watch, incumbent)

    def _runs(self) -> tuple[range, ...]:
        return (*(range(start, stop) for start, stop in pairwise(sorted(self._cuts))), *closing_run(self.problem))

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
        is_slow = watch.elapsed - begun > SLOW and not watch.undivided
        if self._by_rounding and (not more or is_slow):
            self.exhausted = True
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
        result = get_solver(settings.solver).solve(relaxation.as_integers(), settings, watch, start)
        self._raise_bound(result.bound * relaxation.unit * (1 - SAFETY), relaxation, watch, "integer")
        if result.status is Status.INFEASIBLE or result.values is None:
            self.exhausted = True
            return None
        found = just_in_time(self.problem, self._as_sequence(relaxation, result.values))
        self._unsolved += result.status is not Status.OPTIMAL
        if self._unsolved == TOO_HARD:
            self._by_rounding = True
            return found
        more = self._where_it_exceeds(found)
        self._cuts |= more
        self._without_rise = PATIENCE - 1
        self.exhausted = not more
        return found

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
