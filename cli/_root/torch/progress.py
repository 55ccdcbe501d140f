"""Progress while a model is compiled: one live line on a terminal, nothing elsewhere."""

from __future__ import annotations

import sys
import warnings
from types import TracebackType
from typing import TYPE_CHECKING, Any

from ..core.events import Event
from .options import CompileOptions

if TYPE_CHECKING:
    from ..cli.output.progress import Progress


class Display:
    """Shows what the command line shows while it solves."""

    def __init__(self, options: CompileOptions) -> None:
        self._wanted = options.progress if options.progress is not None else sys.stderr.isatty()
        self._time_limit = options.time_limit
        self._progress: Progress | None = None

    def __enter__(self) -> Display:
        if self._wanted:
            from ..cli.console import Console
            from ..cli.output.progress import Progress

            self._progress = Progress(Console(), time_limit=self._time_limit)
            self._progress.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._progress is not None:
            self._progress.__exit__(kind, error, trace)

    def begin(self, task: str) -> None:
        if self._progress is not None:
            self._progress.begin(task)

    def on_event(self, event: Event) -> Any:
        if event.warning:
            warnings.warn(f"checkmate: {event.message}", stacklevel=2)
        elif self._progress is not None:
            self._progress.on_event(event)
