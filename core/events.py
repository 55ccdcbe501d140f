"""Progress from the core, drawn elsewhere. The core neither prints nor looks at the clock of the user."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Event:
    """Something worth showing: a new phase, a better schedule, a better bound."""

    phase: str
    incumbent: float | None = None
    bound: float | None = None
    message: str = ""
    warning: bool = False
    """The message is something the user must see: a part of the work failed, and the result may be worse for it."""


def relative_gap(cost: float, bound: float) -> float:
    """How far above the optimum `cost` can be at most, as a share of `cost`."""
    return max(0.0, cost - bound) / cost if cost > 0 else 0.0


@dataclass(slots=True)
class Watch:
    """Carries the clock, the wish to stop and the listener through the solvers."""

    time_limit: float = 3600.0
    on_event: Callable[[Event], None] = lambda event: None
    interrupted: Callable[[], bool] = lambda: False
    started: float = field(default_factory=time.monotonic)
    undivided: bool = False
    """Parts of the work are not limited in time, only the whole: what they do then does not depend on how fast the machine is."""

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
        """Begin to count now: what went before was not part of the work."""
        self.started = time.monotonic()

    def part(self, seconds: float) -> Watch:
        """A watch for a part of the work that may take at most this long."""
        if self.undivided:
            return self
        return Watch(min(seconds, self.remaining), self.on_event, self.interrupted)
