"""Who does the work: processes on this machine, or a Dask cluster. Both give the standard library's futures: one loop for both."""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager, suppress
from importlib import import_module
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any, Protocol

from ...core.errors import InputError, LimitError, UnavailableError

CONNECT_SECONDS = 15


class Crew(Protocol):
    """Workers that take text and give text."""

    def slots(self) -> int:
        """How many tasks are worked on at once."""

    def submit(self, work: Callable[[str], str], text: str) -> Future[str]: ...

    def renew(self) -> None:
        """Replace a crew that broke down."""

    def explain(self, error: BaseException) -> BaseException:
        """What a future's failure means to the user."""

    def close(self) -> None:
        """Send everyone home at once, also in the middle of the work."""


class LocalCrew:
    """Processes of our own. They hold one end of a pipe: when the other end goes, because we end them or because we died, so do they."""

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._open()

    def _open(self) -> None:
        context = get_context("spawn")
        leash, self._hand = context.Pipe(duplex=False)
        with _untold_leaks():
            self._pool: Executor = ProcessPoolExecutor(self._workers, mp_context=context, initializer=_follow, initargs=(leash,))

    def slots(self) -> int:
        return self._workers

    def submit(self, work: Callable[[str], str], text: str) -> Future[str]:
        with _without_ctrl_c():
            return self._pool.submit(work, text)

    def renew(self) -> None:
        self.close()
        self._open()

    def explain(self, error: BaseException) -> BaseException:
        return error

    def close(self) -> None:
        self._hand.close()
        self._pool.shutdown(wait=True, cancel_futures=True)


class DaskCrew:
    """A cluster somebody else runs. A worker that dies is its scheduler's business: the task runs again elsewhere."""

    def __init__(self, address: str) -> None:
        self._address = address
        try:
            distributed: Any = import_module("distributed")  # untyped
        except ImportError:
            raise UnavailableError("--executor dask needs dask: pip install 'checkmate-remat[dask]'") from None
        logging.getLogger("distributed").setLevel(logging.CRITICAL)
        try:
            self._client: Any = distributed.Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
        except ValueError as error:
            raise InputError(f"--scheduler: not an address: {address!r} ({error}); write tcp://host:8786") from None
        except (OSError, TimeoutError) as error:
            raise UnavailableError(f"no Dask scheduler answers at {address!r}: {error}") from None
        self._executor: Executor = self._client.get_executor(pure=False)

    def slots(self) -> int:
        """As many as the cluster has now; one more than none, so that a cluster that grows on demand sees demand."""
        with suppress(Exception):
            return max(1, sum(int(threads) for threads in self._client.nthreads().values()))
        return 1

    def submit(self, work: Callable[[str], str], text: str) -> Future[str]:
        try:
            return self._executor.submit(work, text)
        except Exception as error:
            raise self.explain(error) from None

    def renew(self) -> None:
        """Clusters do that themselves."""

    def explain(self, error: BaseException) -> BaseException:
        if type(error).__name__ == "KilledWorker":
            return LimitError("the worker died each time it was tried, perhaps for want of memory")
        if isinstance(error, ModuleNotFoundError):
            return UnavailableError(f"the workers of {self._address} cannot run it: {error}; install the same checkmate-remat there")
        if isinstance(error, (CancelledError, OSError)) or type(error).__module__.startswith(("distributed", "tornado")):
            return UnavailableError(f"the Dask scheduler at {self._address} gave it up: {error or type(error).__name__}")
        return error

    def close(self) -> None:
        with suppress(Exception):
            self._executor.shutdown(wait=False)
            self._client.close(timeout=CONNECT_SECONDS)


BROKEN = BrokenExecutor
"""What futures raise whose worker is gone."""


@contextmanager
def _without_ctrl_c() -> Iterator[None]:
    """Processes started meanwhile never hear of Ctrl-C, which a terminal sends to all: what to do about it is for us to say."""
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


def _follow(leash: Connection) -> None:
    """Watch the pipe from a thread of its own: solvers sit in native code for long."""

    def wait() -> None:
        with suppress(EOFError, OSError):
            leash.poll(None)
        os._exit(1)

    threading.Thread(target=wait, name="leash", daemon=True).start()
