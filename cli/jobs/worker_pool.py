"""A pool of local worker processes, with the futures of the standard library.

A terminal sends Ctrl-C to all processes: workers ignore it and leave it to the main process. Each worker holds one end of two pipes. When
the other end of the first pipe closes, because the main process ends the worker or has died, the worker exits. When the other end of the
second closes, the worker stops soon, with its best result.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager, suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from typing import TypeVar

Given = TypeVar("Given")
Made = TypeVar("Made")

BROKEN = BrokenExecutor
"""What a future raises if its worker died."""

_stopping = threading.Event()


def told_to_stop() -> bool:
    """In a worker: true if it should stop soon."""
    return _stopping.is_set()


class WorkerPool:
    """A fixed number of processes, started when there is work for them."""

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self.lost: Future[BaseException] = Future()
        """Never done: a pool that breaks is renewed."""
        self._failure: BaseException | None = None
        self._open()

    def _open(self) -> None:
        context = get_context("spawn")
        leash, self._hand = context.Pipe(duplex=False)
        brake, self._pedal = context.Pipe(duplex=False)
        with _apart():
            self._pool: Executor = ProcessPoolExecutor(self._workers, mp_context=context, initializer=_follow, initargs=(leash, brake))

    def slots(self) -> int:
        """How many tasks run at once."""
        return self._workers

    def submit(self, work: Callable[[Given], Made], task: Given) -> Future[Made]:
        if self._failure is not None:
            raise self._failure
        try:
            with _without_ctrl_c(), _apart():
                return self._pool.submit(work, task)
        except BROKEN:
            raise
        except (OSError, RuntimeError, MemoryError) as error:
            # A process or thread could not be started. The pool would not notice, and wait for it at the next task.
            self._failure = error
            raise

    def stop_soon(self) -> None:
        """Every running task ends with its best result; no new task starts."""
        self._pedal.close()

    def renew(self) -> None:
        """Replace a broken pool."""
        self.close()
        self._open()

    def explain(self, error: BaseException) -> BaseException:
        return error

    def close(self) -> None:
        """Kill all workers, even while they work."""
        self._hand.close()
        with suppress(RuntimeError):  # of a thread that could not be started
            self._pool.shutdown(wait=True, cancel_futures=True)
        self._pedal.close()


@contextmanager
def _without_ctrl_c() -> Iterator[None]:
    """Processes started within this context ignore Ctrl-C."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


_CHILDREN = {"PYTHONSAFEPATH": "1", "PYTHONWARNINGS": "ignore:resource_tracker"}
"""Variables for processes that start here: modules are not imported from the working folder, which may be somebody else's, and the tracker
of shared resources prints no warnings about what it cleans up after killed workers."""


@contextmanager
def _apart() -> Iterator[None]:
    """Processes started within this context run with these variables."""
    before = {name: os.environ.get(name) for name in _CHILDREN}
    os.environ.update({name: ",".join(filter(None, (before[name], value))) for name, value in _CHILDREN.items()})
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _follow(leash: Connection, brake: Connection) -> None:
    """Watch the pipes in a thread, because solvers spend long times in native code. Nothing is ever sent; the pipes are only closed."""

    def watch() -> None:
        if leash not in wait([leash, brake]):
            _stopping.set()
            wait([leash])
        os._exit(1)

    threading.Thread(target=watch, name="leash", daemon=True).start()
