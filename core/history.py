"""The progress of a search: the best cost and the bound over time, short enough to store with its result."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

from .events import Event, Watch

LONGEST = 200
"""The most moments to keep. If there are more, those that only started a new phase are dropped first, then every second one."""


@dataclass(frozen=True, slots=True)
class Moment:
    """What was known after some seconds; None means not known yet."""

    seconds: float
    incumbent: float | None
    bound: float | None
    phase: str


class History:
    """Records events, and passes them on to another listener."""

    def __init__(self, listener: Callable[[Event], None] = lambda event: None) -> None:
        self.watch = Watch()
        """The watch whose clock is used: set it to the watch of the search."""
        self._listener = listener
        self._moments: list[Moment] = []

    def on_event(self, event: Event) -> None:
        """Recorded costs never rise: a worse schedule that is found later, in another order, is ignored. Bounds are recorded unchanged."""
        self._listener(event)
        now = round(self.watch.elapsed, 3)
        if self._moments and now < self._moments[-1].seconds:
            self._moments = []  # the clock was restarted: the time before does not count
        last = self._moments[-1] if self._moments else Moment(0.0, None, None, "")
        known = [cost for cost in (last.incumbent, _finite(event.incumbent)) if cost is not None]
        bound = _finite(event.bound)
        moment = Moment(now, min(known, default=None), last.bound if bound is None else bound, event.phase or last.phase)
        if (moment.incumbent, moment.bound, moment.phase) != (last.incumbent, last.bound, last.phase):
            self._moments.append(moment)
        if len(self._moments) > LONGEST:
            self._moments = _thinned(self._moments)

    def concluded(self, seconds: float, cost: float, bound: float) -> tuple[Moment, ...]:
        """All moments, and the final result as the last one."""
        return (*self._moments, Moment(round(seconds, 3), cost, bound, "end"))


def _thinned(moments: list[Moment]) -> list[Moment]:
    news = [after for before, after in pairwise(moments) if (before.incumbent, before.bound) != (after.incumbent, after.bound)]
    kept = [moments[0], *news]
    return kept if len(kept) <= LONGEST // 2 else [*kept[:-1:2], kept[-1]]


def _finite(figure: float | None) -> float | None:
    return figure if figure is not None and math.isfinite(figure) else None
