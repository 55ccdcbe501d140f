"""Processes of our own that work beside us; what they do and give back are the standard library's futures.

Ctrl-C, which a terminal sends to all, is for us to hear: workers ignore it. They hold one end of two pipes. When the other end of the first
goes, because we end them or because we died, so do they; when that of the second goes, they stop soon, with the best they have.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from typing import TypeVar

Given = TypeVar("Given")
Made = TypeVar("Made")

BROKEN = BrokenExecutor
"""What futures raise whose worker is gone."""

_stopping = threading.Event()


def told_to_stop() -> bool:
    """In a worker: should it stop soon?"""
    return _stopping.is_set()


class LocalCrew:
    """So many processes, started when there is work for them."""

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._open()

    def _open(self) -> None:
        context = get_context("spawn")
        leash, self._hand = context.Pipe(duplex=False)
        brake, self._pedal = context.Pipe(duplex=False)
        with _untold_leaks():
            self._pool: Executor = ProcessPoolExecutor(self._workers, mp_context=context, initializer=_follow, initargs=(leash, brake))

    def slots(self) -> int:
        """How many tasks are worked on at once."""
        return self._workers

    def submit(self, work: Callable[[Given], Made], task: Given) -> Future[Made]:
        with _without_ctrl_c():
            return self._pool.submit(work, task)

    def stop_soon(self) -> None:
        """Every task ends with the best it has; no other can be begun."""
        self._pedal.close()

    def renew(self) -> None:
        """Replace a crew that broke down."""
        self.close()
        self._open()

    def explain(self, error: BaseException) -> BaseException:
        return error

    def close(self) -> None:
        """Send everyone home at once, also in the middle of the work."""
        self._hand.close()
        self._pool.shutdown(wait=True, cancel_futures=True)
        self._pedal.close()


@contextmanager
def _without_ctrl_c() -> Iterator[None]:
    """Processes started meanwhile never hear of Ctrl-C."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _untold_leaks() -> Iterator[None]:
    """The tracker of shared resources starts meanwhile: it cleans up after workers that end at once, and need not tell the user."""
    before = os.environ.get("PYTHONWARNINGS")
    os.environ["PYTHONWARNINGS"] = ",".join(filter(None, (before, "ignore:resource_tracker")))
    try:
        yield
    finally:
        if before is None:
            del os.environ["PYTHONWARNINGS"]
        else:
            os.environ["PYTHONWARNINGS"] = before


def _follow(leash: Connection, brake: Connection) -> None:
    """Watch the pipes from a thread of its own: solvers sit in native code for long. Nothing is ever sent, they only end."""

    def watch() -> None:
        if leash not in wait([leash, brake]):
            _stopping.set()
            wait([leash])
        os._exit(1)

    threading.Thread(target=watch, name="leash", daemon=True).start()
