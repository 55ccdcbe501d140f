"""Programs with tails for the order of the incumbent's first computations.

Near the smallest budget a bound for any order may be far off, because orders that do not exist in any good schedule cannot be ruled out.
For the one order of the incumbent it is sharp. It says how much better a schedule in that order can be, no more.
"""

from __future__ import annotations

from ...events import Watch
from ...model.problem import Problem
from ...params import PARAMS
from ...settings import Settings
from ..breakpoints import Ground
from ..pool import Computations, Report, Snapshot
from .programs import ProgramLane


class IncumbentOrder:
    """A lane for the order of the incumbent, begun anew, with the breakpoints that were best, when that has changed."""

    is_search = False
    name = "incumbent's order"

    def __init__(self, problem: Problem, settings: Settings) -> None:
        self._problem, self._settings = problem, settings
        self._order: Computations | None = None
        self._lane: ProgramLane | None = None

    def wants(self, snapshot: Snapshot) -> bool:
        """Is there an incumbent, and has the search for others gone on for a while?"""
        if snapshot.round < PARAMS.tails_from_round or not snapshot.is_far_from_proven:
            return False
        return self._lane is None or self._order != snapshot.order or self._lane.wants(snapshot)

    def step(self, snapshot: Snapshot, watch: Watch) -> Report:
        if self._lane is None or self._order != snapshot.order:
            self.close()
            self._order = snapshot.order
            ground = Ground(self._problem, self._order)
            known = [] if self._lane is None else ground.precedence.in_order(self._lane.best[1])
            self._lane = ProgramLane(ground, self._settings, 0, tails=True, chain=known)
        return self._lane.step(snapshot, watch)

    def close(self) -> None:
        if self._lane is not None:
            self._lane.close()
