"""What runs the tasks of a batch: processes on this machine (`worker_pool`), or a Dask cluster. Both return futures."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from concurrent.futures import Executor as FutureExecutor
from contextlib import suppress
from importlib import import_module
from typing import Any, Protocol

from ...core.errors import InputError, LimitError, UnavailableError

CONNECT_SECONDS = 15
PATIENCE = 20.0
"""Seconds without an answer after which a scheduler counts as lost. It may be busy with large graphs, but not for that long."""
_PROBES_EVERY = 2.0
"""Seconds between questions to the scheduler."""


class Executor(Protocol):
    """Workers that take text and return text."""

    @property
    def lost(self) -> Future[BaseException]:
        """Done, with the error for the user, when no further result can come."""

    def slots(self) -> int:
        """How many tasks run at once."""

    def submit(self, work: Callable[[str], str], text: str, /) -> Future[str]: ...

    def renew(self) -> None:
        """Replace a broken executor."""

    def explain(self, error: BaseException) -> BaseException:
        """The error for the user when a future fails."""

    def close(self) -> None:
        """Kill all workers, even while they work."""


def _silence() -> None:
    """Dask and what it is made of print tracebacks when a connection breaks; each of its loggers has a level of its own."""
    for name in ("distributed", "tornado", "asyncio", *logging.root.manager.loggerDict):
        if name.partition(".")[0] in ("distributed", "tornado", "asyncio"):
            logging.getLogger(name).setLevel(logging.CRITICAL)


class DaskExecutor:
    """An existing cluster. If a worker dies, its scheduler runs the task again elsewhere."""

    def __init__(self, address: str) -> None:
        self._address = address
        try:
            distributed: Any = import_module("distributed")  # untyped
        except ImportError:
            raise UnavailableError("--executor dask needs dask: pip install 'checkmate-remat[dask]'") from None
        _silence()
        try:
            self._client: Any = distributed.Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
        except ValueError as error:
            raise InputError(f"--scheduler: not an address: {address!r} ({error}); write it as tcp://host:8786") from None
        except (OSError, TimeoutError) as error:
            raise UnavailableError(f"no Dask scheduler answers at {address!r}: {error}; check --scheduler") from None
        self._executor: FutureExecutor = self._client.get_executor(pure=False)
        self.lost: Future[BaseException] = Future()
        self._slots = 1
        self._ask()
        threading.Thread(target=self._watch, name="dask-watch", daemon=True).start()

    def _ask(self) -> None:
        """Ask the scheduler for its workers. A scheduler that has stopped, or whose machine is gone, does not answer."""
        threads = self._client.sync(self._client.scheduler.ncores, callback_timeout=PATIENCE)
        self._slots = max(1, sum(int(number) for number in threads.values()))

    def _watch(self) -> None:
        """Without this, a batch would wait forever for the results of a scheduler that is gone."""
        while self._client.status != "closed":
            try:
                self._ask()
            except Exception as error:
                if self._client.status != "closed" or not self.lost.done():
                    self.lost.set_result(self._gone(error))
                return
            time.sleep(_PROBES_EVERY)
        if not self.lost.done():
            self.lost.set_result(self._gone(None))

    def _gone(self, error: BaseException | None) -> UnavailableError:
        why = f" ({str(error) or type(error).__name__})" if error is not None else ""
        return UnavailableError(
            f"the Dask scheduler at {self._address} does not answer any more{why}; finished jobs are kept: run the same command again to "
            "continue"
        )

    def slots(self) -> int:
        """As many as the cluster has now; at least one, so that a cluster that scales on demand gets a task."""
        return self._slots

    def submit(self, work: Callable[[str], str], text: str) -> Future[str]:
        try:
            return self._executor.submit(work, text)
        except Exception as error:
            raise self.explain(error) from None

    def renew(self) -> None:
        """Nothing to do: clusters replace workers themselves."""

    def explain(self, error: BaseException) -> BaseException:
        if type(error).__name__ == "KilledWorker":
            return LimitError("the worker process died in each attempt, perhaps because memory ran out")
        if isinstance(error, ModuleNotFoundError):
            return UnavailableError(f"the workers of {self._address} cannot run it: {error}; install the same checkmate-remat there")
        if isinstance(error, (CancelledError, OSError)) or type(error).__module__.startswith(("distributed", "tornado")):
            return self._gone(error)
        return error

    def close(self) -> None:
        with suppress(Exception):
            self._executor.shutdown(wait=False)
            if not self.lost.done():
                self._client.close(timeout=CONNECT_SECONDS)
