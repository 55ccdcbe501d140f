"""Any-order programs for less than the budget, whose solutions then fit it.

A program counts memory at breakpoints only, so that its solution, replayed, takes a little too much elsewhere. On large graphs that is a
small part of the budget: with so much less for the program, the replay fits, and costs hardly more than the bound. Bounds of such programs
hold for the smaller budget, and say nothing.
"""

from __future__ import annotations

from dataclasses import replace

from ...events import Watch
from ...milp.any_order import AnyOrderProgram
from ...params import PARAMS
from ...schedule.sequence import Candidate
from ...settings import Settings
from ...solvers.sliced import SlicedProgram, looks_per_slice, sliced
from ..breakpoints import Ground, likeliest
from ..pool import Report, Snapshot


class Margin:
    """Lowers what the program may use until its replay fits."""

    is_search = False

    def __init__(self, ground: Ground, settings: Settings) -> None:
        self.name = "margin"
        self._ground, self._settings = ground, settings
        self._target = ground.problem.budget
        self._program: AnyOrderProgram | None = None
        self._run: SlicedProgram | None = None
        self._programs = 0
        self._done = False

    def wants(self, snapshot: Snapshot) -> bool:
        """Is there a replay that takes only a little too much?"""
        return not self._done and (self._run is not None or self._nearest(snapshot) is not None)

    def _nearest(self, snapshot: Snapshot) -> Candidate | None:
        return min(snapshot.near(self._ground.problem), key=lambda start: start.peak, default=None)

    def step(self, snapshot: Snapshot, watch: Watch) -> Report:
        if self._run is None:
            self._begin(snapshot)
        assert self._run is not None
        assert self._program is not None
        slice_ = self._run.advance(watch)
        work = looks_per_slice(self._program.form) * self._program.columns * PARAMS.look_work
        phase = f"any-order program with a margin: {self._program.columns} variables"
        made = self._ground.replayed([likeliest(self._ground)], self._program.stages(slice_.found[-1])) if slice_.found else []
        lowest = min(made, key=lambda each: each.peak, default=None)
        if lowest is not None and not lowest.fits(self._ground.problem):
            self._lower(lowest.peak)
        if slice_.is_over or lowest is not None:
            self.close()
            self._done = lowest is None or lowest.fits(self._ground.problem) or self._programs >= PARAMS.margin_programs
        return Report(tuple(("any-order program", each.sequence) for each in made), phase=phase, work=work)

    def _lower(self, peak: int) -> None:
        self._target -= round((peak - self._ground.problem.budget) * PARAMS.margin_factor)

    def _begin(self, snapshot: Snapshot) -> None:
        nearest = self._nearest(snapshot)
        if not self._programs and nearest is not None:
            self._lower(nearest.peak)
        self._programs += 1
        ground = Ground(self._ground.problem.with_budget(self._target), self._ground.order)
        self._program = ground.program([likeliest(self._ground)])
        settings = replace(self._settings, gap=PARAMS.fine_gap, threads=1)
        self._run = sliced(self._program.form, settings, None)

    def close(self) -> None:
        if self._run is not None:
            self._run.close()
            self._run = None
