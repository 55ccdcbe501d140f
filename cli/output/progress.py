"""Show progress: one live line on a terminal, one line per event with --verbose, nothing in a pipe. Always on stderr."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING

from ...core.events import Event, relative_gap
from ..console import Console
from .amounts import format_change, format_cost, format_seconds, format_share
from .render import console, is_fancy

if TYPE_CHECKING:
    from rich.live import Live
    from rich.spinner import Spinner
    from rich.table import Table


class Progress:
    """Receives the events of the core and remembers the latest of each figure."""

    def __init__(self, console: Console, *, unit: str = "", ideal_cost: float = 0.0, time_limit: float | None = None) -> None:
        self.task = ""
        self.phase = ""
        self.incumbent: float | None = None
        self.bound: float | None = None
        self.done: float | None = None
        self._unit = unit
        self._ideal_cost = ideal_cost
        self._time_limit = time_limit
        self._console = console
        self._began = self._phase_began = time.monotonic()
        self._live: Live | None = None
        self._spinner: Spinner | None = None
        self._last_line = ""
        self._warnings: set[str] = set()

    def __enter__(self) -> Progress:
        if is_fancy(sys.stderr) and sys.stderr.isatty() and not self._console.quiet and not self._console.verbose:
            from rich.live import Live
            from rich.spinner import Spinner

            self._spinner = Spinner("dots")
            self._live = Live(get_renderable=self._picture, console=console(sys.stderr), transient=True, refresh_per_second=8)
            self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._end_task()
        if self._live is not None:
            self._live.stop()
            self._live = None

    def begin(self, task: str) -> None:
        """Start a new task and forget the figures of the last one."""
        self._end_task()
        self.task, self.phase = task, ""
        self.incumbent = self.bound = self.done = None
        self._began = self._phase_began = time.monotonic()
        self._tell(task)

    def price(self, unit: str, ideal_cost: float) -> None:
        """From now on, show costs with their unit and relative to the ideal cost."""
        self._unit, self._ideal_cost = unit, ideal_cost

    def share(self, done: int, total: int) -> None:
        """Show how much of the work is done."""
        self.done = done / total if total else None
        self._tell(f"{self.task} {100 * done // total if total else 0} %")

    def announce(self, text: str) -> None:
        """Show a message at once, on a terminal and in the log."""
        if self._live is None:
            self._console.note(text)
        else:
            self._console.log(text)
            self._live.console.print(text)

    def on_event(self, event: Event) -> None:
        if event.warning and event.message not in self._warnings:
            self._warnings.add(event.message)
            self.announce(f"warning: {event.message}")
            return
        if event.phase and event.phase != self.phase:
            self._end_phase()
            self.phase = event.phase
        self.incumbent = event.incumbent if event.incumbent is not None else self.incumbent
        self.bound = event.bound if event.bound is not None else self.bound
        if event.message and event.incumbent is None and event.bound is None and not event.phase:
            self._tell(event.message)
        else:
            self._tell("  ".join(part for part in (self.phase, *self._figures(), event.message) if part))

    def _tell(self, line: str) -> None:
        """Only with --verbose and in the log, and not twice in a row."""
        if line != self._last_line:
            self._last_line = line
            self._console.log(line)
            self._console.detail(f"[{time.monotonic() - self._began:7.2f} s] {line}")

    def _end_phase(self) -> None:
        """Log how long a phase took."""
        now = time.monotonic()
        if self.phase:
            self._console.log(f"{self.task}: {self.phase}: {now - self._phase_began:.3f} s")
        self._phase_began = now

    def _end_task(self) -> None:
        self._end_phase()
        if self.task:
            self._console.log(f"{self.task}: {time.monotonic() - self._began:.3f} s in total")
        self.task = ""

    def _figures(self) -> list[str]:
        figures: list[str] = []
        if self.incumbent is not None:
            overhead = f" ({format_change(self.incumbent / self._ideal_cost - 1)})" if self._ideal_cost > 0 else ""
            figures.append(f"best {format_cost(self.incumbent, self._unit)}{overhead}")
        if self.bound is not None:
            figures.append(f"bound {format_cost(self.bound, self._unit)}")
        if self.incumbent is not None and self.bound is not None:
            figures.append(f"gap {format_share(relative_gap(self.incumbent, self.bound))}")
        return figures

    def _picture(self) -> Table:
        """The figures come first, because a line that is too long is cut off."""
        from rich.table import Table
        from rich.text import Text

        limit = f" of {format_seconds(self._time_limit)}" if self._time_limit is not None and self.phase else ""
        bar = [] if self.done is None else [f"{'━' * round(20 * self.done):20} {100 * self.done:.0f} %"]
        parts = [self.task, *bar, f"{time.monotonic() - self._began:.1f} s{limit}", *self._figures(), *([self.phase] if self.phase else [])]
        grid = Table.grid(padding=(0, 1))
        grid.add_column(no_wrap=True, min_width=1)
        grid.add_column(no_wrap=True, overflow="ellipsis")
        grid.add_row(self._spinner, Text(" · ".join(parts)))
        return grid
