"""Progress events, which the core emits and others display, and the clock with its limits. The core itself prints nothing."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

STAGES = logging.getLogger("checkmate.stages")
"""Logs how long the parts of the work took."""


@contextmanager
def stage(name: str) -> Iterator[None]:
    """Log how long a part of the work takes."""
    begun = time.perf_counter()
    try:
        yield
    except BaseException as error:
        STAGES.info("%s: %s after %.3f s", name, type(error).__name__, time.perf_counter() - begun)
        raise
    STAGES.info("%s: %.3f s", name, time.perf_counter() - begun)


@dataclass(frozen=True, slots=True)
class Event:
    """A progress event: a new phase, a better schedule, a better bound."""

    phase: str
    incumbent: float | None = None
    bound: float | None = None
    message: str = ""
    warning: bool = False
    """Whether the user must see the message: a part of the work failed, and the result may be worse because of it."""


def relative_gap(cost: float, bound: float) -> float:
    """(cost - bound) / cost: the cost is at most this far above the optimum."""
    return max(0.0, cost - bound) / cost if cost > 0 else 0.0


@dataclass(slots=True)
class Watch:
    """Passes the clock, the request to stop and the listener to the solvers."""

    time_limit: float = 3600.0
    on_event: Callable[[Event], None] = lambda event: None
    interrupted: Callable[[], bool] = lambda: False
    started: float = field(default_factory=time.monotonic)
    undivided: bool = False
    """Parts of the work have no time limits of their own, only the whole has one, so that results do not depend on the machine's speed."""

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self.started

    @property
    def remaining(self) -> float:
        return max(0.0, self.time_limit - self.elapsed)

    @property
    def expired(self) -> bool:
        return self.remaining <= 0.0 or self.interrupted()

    def restart(self) -> None:
        """Start the clock now; the time before does not count."""
        self.started = time.monotonic()

    def part(self, seconds: float) -> Watch:
        """A watch for a part of the work, with this time limit."""
        if self.undivided:
            return self
        return Watch(min(seconds, self.remaining), self.on_event, self.interrupted)
