"""What runs the tasks of a batch: processes on this machine (`worker_pool`), or a Dask cluster. Both return futures."""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from concurrent.futures import Executor as FutureExecutor
from contextlib import suppress
from importlib import import_module
from typing import Any, Protocol

from ...core.errors import InputError, LimitError, UnavailableError

CONNECT_SECONDS = 15


class Executor(Protocol):
    """Workers that take text and return text."""

    def slots(self) -> int:
        """How many tasks run at once."""

    def submit(self, work: Callable[[str], str], text: str, /) -> Future[str]: ...

    def renew(self) -> None:
        """Replace a broken executor."""

    def explain(self, error: BaseException) -> BaseException:
        """The error for the user when a future fails."""

    def close(self) -> None:
        """Kill all workers, even while they work."""


class DaskExecutor:
    """An existing cluster. If a worker dies, its scheduler runs the task again elsewhere."""

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
            raise InputError(f"--scheduler: not an address: {address!r} ({error}); write it as tcp://host:8786") from None
        except (OSError, TimeoutError) as error:
            raise UnavailableError(f"no Dask scheduler answers at {address!r}: {error}; check --scheduler") from None
        self._executor: FutureExecutor = self._client.get_executor(pure=False)

    def slots(self) -> int:
        """As many as the cluster has now; at least one, so that a cluster that scales on demand gets a task."""
        with suppress(Exception):
            return max(1, sum(int(threads) for threads in self._client.nthreads().values()))
        return 1

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
            return UnavailableError(f"the Dask scheduler at {self._address} cancelled the job: {error or type(error).__name__}")
        return error

    def close(self) -> None:
        with suppress(Exception):
            self._executor.shutdown(wait=False)
            self._client.close(timeout=CONNECT_SECONDS)
