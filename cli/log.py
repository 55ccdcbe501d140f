"""`--log-file`: what a run did and how long each part took, written line by line, so that even a killed run leaves a readable log.

With `--verbose` the stages go to stderr too. The log never goes to stdout.
"""

from __future__ import annotations

import logging
import os
import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from .. import __version__
from ..core.errors import InputError
from ..core.events import STAGES

LOG = logging.getLogger("checkmate")
LOG.addHandler(logging.NullHandler())
LOG.setLevel(logging.INFO)
LOG.propagate = False

_FIRST_LINE = re.compile(rb"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[.,]\d{3} ")


class _Lines(logging.Formatter):
    """Time in milliseconds with the time zone, and the level. Further lines of an entry are indented: no name can forge an entry."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(message)s")

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: N802
        local = time.localtime(record.created)
        return f"{time.strftime('%Y-%m-%d %H:%M:%S', local)}.{int(record.msecs):03d} {time.strftime('%z', local)}"

    def format(self, record: logging.LogRecord) -> str:
        return "\n    ".join(map(_printable, super().format(record).splitlines()))


def _printable(line: str) -> str:
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in line)


def open_log(path: str) -> None:
    """Append to a log file, new or old. A file that is not a log is refused, so that a typing error cannot damage a model."""
    if path == "-":
        raise InputError("--log-file: '-' is not a file; name a file, or use --verbose to see progress on stderr")
    place = Path(path)
    try:
        if place.is_file() and place.stat().st_size and not _FIRST_LINE.match(_head(place)):
            raise InputError(f"--log-file: {path!r} exists and is not a checkmate log; choose another name")
        stream = place.open("a" if place.is_file() or not place.exists() else "w", buffering=1, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise InputError(f"cannot write the log file {path!r}: {(error.strerror or str(error)).lower()}") from None
    import platform

    handler = _LogHandler(stream)
    handler.setFormatter(_Lines())
    LOG.addHandler(handler)
    LOG.info("checkmate %s, Python %s, %s, process %d", __version__, platform.python_version(), platform.platform(), os.getpid())


class _LogHandler(logging.StreamHandler):  # type: ignore[type-arg]
    """If the log can no longer be written (the disk is full), the work goes on, with one warning."""

    complained = False

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802
        if not self.complained:
            self.complained = True
            print(f"warning: cannot write to the log file: {sys.exc_info()[1]}", file=sys.stderr)

    def close(self) -> None:
        try:
            self.stream.close()
        except OSError:
            self.handleError(logging.makeLogRecord({}))
        super().close()


def show_stages() -> None:
    """Print the stages on stderr, for --verbose."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(message)s"))
    STAGES.addHandler(handler)


def log_command(arguments: Sequence[str]) -> None:
    import shlex

    LOG.info("checkmate %s (in %s)", shlex.join(arguments), os.getcwd())


def close_logs(code: int, seconds: float) -> None:
    """Write the last line and remove the handlers: several commands may run in one process."""
    LOG.info("exit %d after %.3f s", code, seconds)
    for logger in (LOG, STAGES):
        for handler in list(logger.handlers):
            if not isinstance(handler, logging.NullHandler):
                logger.removeHandler(handler)
                if isinstance(handler, _LogHandler):
                    handler.close()


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(64)
