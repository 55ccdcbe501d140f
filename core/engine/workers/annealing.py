"""Simulated annealing over sequences: from candidates that nearly fit, from the incumbent, and anew from nothing recomputed."""

from __future__ import annotations

from ...events import Watch
from ...model.problem import Problem
from ...params import PARAMS
from ...schedule.sequence import Candidate, candidate
from ...settings import Settings
from ..groups import Groups
from ..pool import Computations, Report, Snapshot


class _Annealer:
    """What all of them have: a seed for every run, and so many moves."""

    is_search = True

    def __init__(self, name: str, problem: Problem, settings: Settings, number: int, *, free: bool) -> None:
        self.name = f"{name} {number}"
        self._found_by = name
        self._problem, self._settings, self._number, self._free = problem, settings, number, free
        self._runs = 0
        self._work = 0.0
        """Since the last report."""

    def _anneal(
        self, problem: Problem, start: Computations, annealing: tuple[float, float], watch: Watch, doublings: int = 0
    ) -> Candidate | None:
        """A run from a start; what it found fits."""
        from ...search.splice import Annealing, anneal_sequence  # imports the compiled kernels
        from ...search.warm import ensure_warm

        ensure_warm(watch)
        seed = (self._settings.seed * 1000 + self._runs) * 10 + self._number
        self._runs += 1
        moves = PARAMS.moves(PARAMS.annealing_moves, problem.count) << doublings
        self._work += moves * PARAMS.move_work
        found = anneal_sequence(problem, start, Annealing(*annealing), seed, moves, watch, free=self._free)
        return None if found is None else candidate(problem, found, self._found_by)

    def _report(self, *found: Computations) -> Report:
        work, self._work = self._work, 0.0
        return Report(tuple((self._found_by, sequence) for sequence in found), work=work)

    def close(self) -> None:
        """Holds nothing."""


class Repair(_Annealer):
    """Begins with the candidates that nearly fit, the newest first: at a low temperature, so that what is good about them stays."""

    def __init__(self, problem: Problem, settings: Settings, number: int, *, free: bool) -> None:
        super().__init__("repair", problem, settings, number, free=free)

    def wants(self, snapshot: Snapshot) -> bool:
        return bool(snapshot.near(self._problem))

    def step(self, snapshot: Snapshot, watch: Watch) -> Report:
        near = snapshot.near(self._problem)
        start = near[-1 - (self._runs + self._number) % len(near)]
        found = self._anneal(self._problem, start.sequence, PARAMS.annealings[0], watch)
        return self._report(*([] if found is None else [found.sequence]))


class Improve(_Annealer):
    """Begins with the incumbent; the more often it fails the longer it runs, every second time from another order of low peak."""

    def __init__(self, problem: Problem, settings: Settings, number: int, *, free: bool) -> None:
        super().__init__("annealing", problem, settings, number, free=free)
        self._failed = 0
        self._cost = float("inf")

    def wants(self, snapshot: Snapshot) -> bool:
        return snapshot.incumbent is not None

    def step(self, snapshot: Snapshot, watch: Watch) -> Report:
        from ..reordering import shaken  # imports the compiled kernels

        assert snapshot.incumbent is not None
        self._failed = 0 if snapshot.cost < self._cost else self._failed + 1
        self._cost = snapshot.cost
        start = snapshot.incumbent.sequence
        if self._free and self._failed % 2:
            start = shaken(self._problem, start, self._runs * 10 + self._number, watch)
        annealing = PARAMS.annealings[self._failed % len(PARAMS.annealings)]
        found = self._anneal(self._problem, start, annealing, watch, min(self._failed // 2, PARAMS.doublings))
        return self._report(*([] if found is None else [found.sequence]))


class Restart(_Annealer):
    """Begins anew a few times, with runs of small operations as one: from nothing recomputed, the incumbent, or the newest candidate that
    does not fit. It goes on from the best of that while it gets better, then once with all operations apart, and begins anew.

    Near the smallest budget there are many local optima far from one another, and a short run from nothing is as likely as any to end in a
    better one: inception_v1 at 38.2 %, 12 runs of half a second, 14 to 25 %; one run of 2 million moves, 19 to 23 %.
    """

    def __init__(self, problem: Problem, groups: Groups, settings: Settings, number: int, *, free: bool) -> None:
        super().__init__("restart", problem, settings, number, free=free)
        self._groups = groups
        self._tries = 0
        """Since it last began anew."""
        self._best: Candidate | None = None
        """Of these, in groups."""
        self._begun = number

    def wants(self, snapshot: Snapshot) -> bool:
        return snapshot.round >= PARAMS.search_from_round

    def step(self, snapshot: Snapshot, watch: Watch) -> Report:
        best, is_new = self._best, self._tries < PARAMS.restart_tries
        if best is None and not is_new:
            self._tries, is_new = 0, True
        start = self._first(snapshot, watch) if is_new or best is None else best.sequence
        self._tries += 1
        annealing = PARAMS.annealings[self._runs % len(PARAMS.annealings)]
        found = self._anneal(self._groups.problem, start, annealing, watch)
        if found is not None and (best is None or found.cost < best.cost):
            self._best = found
            return self._report(self._groups.expand(found.sequence))
        if is_new or best is None:
            return self._report()
        self._tries, self._best = 0, None
        apart = self._anneal(self._problem, self._groups.expand(best.sequence), PARAMS.annealings[0], watch)
        return self._report(*([] if apart is None else [apart.sequence]))

    def _first(self, snapshot: Snapshot, watch: Watch) -> Computations:
        """Where to begin, in turn."""
        self._begun += 1
        others = [each.sequence for each in (snapshot.incumbent, *snapshot.starts[-1:]) if each is not None]
        choice = self._begun % (1 + len(others))
        return self._groups.everything if not choice else self._groups.contract(others[choice - 1], self._begun, watch)
