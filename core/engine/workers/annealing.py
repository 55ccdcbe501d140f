"""Simulated annealing over sequences: from candidates that nearly fit, to make them fit, and from the incumbent, to make it cheaper."""

from __future__ import annotations

from ...events import Watch
from ...model.problem import Problem
from ...schedule.sequence import Candidate
from ...settings import Settings
from ..params import PARAMS
from ..pool import Report, Snapshot


class Repair:
    """Begins with the candidates that nearly fit, the newest first: at a low temperature, so that what is good about them stays."""

    is_search = True

    def __init__(self, problem: Problem, settings: Settings, number: int, *, free: bool) -> None:
        self.name = f"repair {number}"
        self._problem, self._settings, self._number, self._free = problem, settings, number, free
        self._runs = 0

    def wants(self, snapshot: Snapshot) -> bool:
        return bool(self._near(snapshot))

    def _near(self, snapshot: Snapshot) -> list[Candidate]:
        most = self._problem.budget * (1 + PARAMS.repair_most)
        return [start for start in snapshot.starts if start.peak <= most]

    def step(self, snapshot: Snapshot, watch: Watch) -> Report:
        from ...search.splice import Annealing, anneal_sequence  # imports the compiled kernels
        from ...search.warm import ensure_warm

        ensure_warm(watch)
        near = self._near(snapshot)
        start = near[-1 - (self._runs + self._number) % len(near)]
        moves = min(PARAMS.annealing_moves, PARAMS.annealing_moves_per_operation * self._problem.count)
        annealing = Annealing(PARAMS.repair_hot, PARAMS.repair_penalty)
        seed = (self._settings.seed * 1000 + self._runs) * 10 + self._number
        self._runs += 1
        found = anneal_sequence(self._problem, start.sequence, annealing, seed, moves, watch, free=self._free)
        return Report(() if found is None else (("repair", found),), work=moves * PARAMS.move_work)

    def close(self) -> None:
        """Holds nothing."""


class Improve:
    """Begins with the incumbent; the more often it fails the longer it runs."""

    is_search = True

    def __init__(self, problem: Problem, settings: Settings, number: int, *, free: bool) -> None:
        self.name = f"annealing {number}"
        self._problem, self._settings, self._number, self._free = problem, settings, number, free
        self._runs = 0
        self._failed = 0
        self._cost = float("inf")

    def wants(self, snapshot: Snapshot) -> bool:
        return snapshot.incumbent is not None

    def step(self, snapshot: Snapshot, watch: Watch) -> Report:
        from ...search.splice import splice_from  # imports the compiled kernels
        from ...search.warm import ensure_warm
        from ..reordering import shaken

        ensure_warm(watch)
        assert snapshot.incumbent is not None
        self._failed = 0 if snapshot.cost < self._cost else self._failed + 1
        self._cost = snapshot.cost
        seed = (self._settings.seed * 1000 + self._runs) * 10 + self._number
        self._runs += 1
        moves = min(PARAMS.annealing_moves, PARAMS.annealing_moves_per_operation * self._problem.count)
        moves <<= min(self._failed // 2, PARAMS.improve_doublings)
        start = snapshot.incumbent.sequence
        if self._free and self._failed % 2:
            start = shaken(self._problem, start, seed, watch)
        found = splice_from(self._problem, start, seed, moves, watch, free=self._free, insistence=self._failed % 4)
        return Report(() if found is None else (("annealing", found),), work=moves * PARAMS.move_work)

    def close(self) -> None:
        """Holds nothing."""
