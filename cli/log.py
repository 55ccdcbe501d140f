"""`--log-file`: what a run did and how long each part took, line by line as it happens, so that even a killed run leaves a readable log.

With `--verbose` the stages go to stderr too. Nothing ever goes to stdout.
"""

from __future__ import annotations

import logging
import os
import re
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from .. import __version__
from ..core.errors import InputError

LOG = logging.getLogger("checkmate")
LOG.addHandler(logging.NullHandler())
LOG.setLevel(logging.INFO)
LOG.propagate = False
STAGES = LOG.getChild("stages")

_FIRST_LINE = re.compile(rb"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[.,]\d{3} ")


class _Lines(logging.Formatter):
    """Time to the millisecond, with the zone, and the level. Further lines of one entry are set in: no name can forge a line."""

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
    """Append to a log, which may be new. Anything but a log is left alone: a slip must not spoil a model."""
    if path == "-":
        raise InputError("--log-file: name a file; --verbose tells what happens on stderr")
    place = Path(path)
    try:
        if place.is_file() and place.stat().st_size and not _FIRST_LINE.match(_head(place)):
            raise InputError(f"--log-file: {path!r} is there and is no log of checkmate; choose another name")
        stream = place.open("a" if place.is_file() or not place.exists() else "w", buffering=1, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise InputError(f"cannot write the log file {path!r}: {(error.strerror or str(error)).lower()}") from None
    import platform

    handler = _LogHandler(stream)
    handler.setFormatter(_Lines())
    LOG.addHandler(handler)
    LOG.info("checkmate %s, Python %s, %s, process %d", __version__, platform.python_version(), platform.platform(), os.getpid())


class _LogHandler(logging.StreamHandler):  # type: ignore[type-arg]
    """A log that can no longer be written (the disk is full) does not stop the work: the user hears of it once."""

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
    """For --verbose."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(message)s"))
    STAGES.addHandler(handler)


def log_command(arguments: Sequence[str]) -> None:
    import shlex

    LOG.info("checkmate %s (in %s)", shlex.join(arguments), os.getcwd())


def close_logs(code: int, seconds: float) -> None:
    """The last line, and everything back as it was: several commands may run in one process."""
    LOG.info("exit %d after %.3f s", code, seconds)
    for logger in (LOG, STAGES):
        for handler in list(logger.handlers):
            if not isinstance(handler, logging.NullHandler):
                logger.removeHandler(handler)
                if isinstance(handler, _LogHandler):
                    handler.close()


@contextmanager
def stage(name: str) -> Iterator[None]:
    """Tell how long a part of the work took."""
    begun = time.perf_counter()
    try:
        yield
    except BaseException as error:
        STAGES.info("%s: %s after %.3f s", name, type(error).__name__, time.perf_counter() - begun)
        raise
    STAGES.info("%s: %.3f s", name, time.perf_counter() - begun)


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(64)
