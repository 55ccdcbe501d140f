"""Where nothing fits: sequences of ever lower peaks, whatever they cost."""

from __future__ import annotations

from ...events import Watch
from ...model.problem import Problem
from ...params import PARAMS
from ...settings import Settings
from ..groups import Groups
from ..pool import Report, Snapshot

KINDS = 4
"""Kinds of runs. With as many descents, a round has one of each kind, and all rounds take as long."""


class Descent:
    """Twice from nothing recomputed, with runs of small operations as one; then from the candidate of the lowest peak, and from that with
    all operations apart."""

    is_search = True

    def __init__(self, problem: Problem, groups: Groups, settings: Settings, number: int, *, free: bool, from_round: int) -> None:
        self.name = f"descent {number}"
        self._problem, self._groups, self._settings, self._number, self._free = problem, groups, settings, number, free
        self._from_round = from_round
        self._runs = self._failed = 0
        self._reached = 0

    def wants(self, snapshot: Snapshot) -> bool:
        has_given_up = self._failed >= KINDS * (1 + PARAMS.doublings)
        return not has_given_up and snapshot.incumbent is None and snapshot.lowest is not None and snapshot.round >= self._from_round

    def step(self, snapshot: Snapshot, watch: Watch) -> Report:
        """Twice as long after a run of each kind that reached nothing lower."""
        from ...search.splice import Annealing, anneal_downwards  # imports the compiled kernels
        from ...search.warm import ensure_warm

        ensure_warm(watch)
        assert snapshot.lowest is not None
        self._failed = self._failed + 1 if snapshot.lowest.peak == self._reached else 0
        self._reached = snapshot.lowest.peak
        turn = self._runs + self._number
        self._runs += 1
        seed = (self._settings.seed * 1000 + self._runs) * 10 + self._number
        kind = turn % KINDS
        in_groups = kind < 3
        problem, start = (self._groups.problem, self._groups.everything) if in_groups else (self._problem, snapshot.lowest.sequence)
        if kind == 2:
            start = self._groups.contract(snapshot.lowest.sequence, seed, watch)
        annealing = Annealing(*PARAMS.descents[turn % len(PARAMS.descents)])
        moves = PARAMS.moves(PARAMS.annealing_moves, problem.count) << self._failed // KINDS
        found = anneal_downwards(problem, start, annealing, seed, moves, watch, free=self._free)
        work = moves * PARAMS.move_work
        if found is None:
            return Report(work=work)
        return Report((("descent", self._groups.expand(found) if in_groups else found),), work=work, phase="descent")

    def close(self) -> None:
        """Holds nothing."""
