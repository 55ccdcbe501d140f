"""Who works next, on how many cores, and when it is enough. The only part of the engine that looks at the clock.

Work is done in rounds. All workers of a round see the same snapshot of the pool, and their reports are merged in a fixed order when all are
done: so it does not matter how many run side by side, or which is first. What a round does does not depend on the time limit either; the
limit only ends the sequence of rounds. A run with a longer limit begins with the same rounds, and is never worse.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Event as Flag

from ..events import Event, Watch
from ..params import PARAMS
from ..settings import Settings
from .pool import Pool, Report
from .worker import Worker

OTHER_ORDERS = "the gap is met for the order of this schedule; others were tried for as long again"


class Scheduler:
    """Runs rounds until the gap is met, time is up, or nobody has anything left to do."""

    def __init__(self, pool: Pool, workers: Sequence[Worker], settings: Settings, watch: Watch) -> None:
        self.pool, self.workers, self.settings, self.watch = pool, workers, settings, watch
        self.round = 0
        self.work = 0.0
        """What all slices so far amount to, as counted by those who did them."""
        self._met_after: float | None = None
        """The work after which the gap was as asked for."""
        self._turn = 0
        self._idle = 0
        """Rounds in a row in which nobody worked on bounds and nothing was found."""

    def run(self) -> None:
        with ThreadPoolExecutor(self.settings.threads or os.cpu_count() or 1) as cores:
            try:
                while not self.is_over:
                    chosen = self._choose()
                    if not chosen:
                        break
                    self._run_round(cores, chosen)
                if self._was_long_enough and self._gap > self.settings.gap:
                    self.watch.on_event(Event("", message=OTHER_ORDERS))
            finally:
                for worker in self.workers:
                    worker.close()

    def _run_round(self, cores: ThreadPoolExecutor, chosen: Sequence[Worker]) -> None:
        """Once the gap is met, who is still at work is told to stop, and what comes of it is not looked at."""
        snapshot, met = self.pool.snapshot(self.round), Flag()
        watch = replace(self.watch, interrupted=lambda: met.is_set() or self.watch.interrupted())
        improved = False
        running = [cores.submit(worker.step, snapshot, watch) for worker in chosen]
        for worker, work in zip(chosen, running, strict=True):
            report = work.result()
            if not met.is_set():
                improved |= self._merge(worker, report)
                if self._gap <= PARAMS.fine_gap:
                    met.set()
        self.watch.started = watch.started  # compiling took nothing from the time of the work
        self._idle = 0 if improved or any(not worker.is_search for worker in chosen) else self._idle + 1
        self.round += 1
        if self._met_after is None and self.pool.gap <= self.settings.gap:
            self._met_after = self.work

    @property
    def is_over(self) -> bool:
        """Is the gap met finely; or as asked for, and was there as much work again; or is it time?"""
        pool = self.pool
        if self.watch.expired or pool.infeasible or self.round == self.settings.iterations or self._idle >= PARAMS.idle_rounds:
            return True
        return self._gap <= PARAMS.fine_gap or self._was_long_enough

    @property
    def _gap(self) -> float:
        return self.pool.any_gap if self.pool.order_is_free else self.pool.gap

    @property
    def _was_long_enough(self) -> bool:
        """The gap was met, perhaps for one order only. What others may give gets as much work again, and no more."""
        if self._met_after is None or self.pool.gap > self.settings.gap:
            return False
        return self.work >= max(PARAMS.least_work, 2 * self._met_after)

    def _choose(self) -> list[Worker]:
        """Everyone who works on bounds, and so many of those who search, in turn."""
        snapshot = self.pool.snapshot(self.round)
        willing = [worker for worker in self.workers if worker.wants(snapshot)]
        searches = [worker for worker in willing if worker.is_search]
        chosen = [worker for worker in willing if not worker.is_search]
        for _ in range(min(PARAMS.searches, len(searches))):
            chosen.append(searches[self._turn % len(searches)])
            self._turn += 1
        return chosen

    def _merge(self, worker: Worker, report: Report) -> bool:
        improved = self.pool.merge(self.round, worker.name, report)
        self.work += report.work
        return improved
