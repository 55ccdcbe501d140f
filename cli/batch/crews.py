"""Who does the work of a batch: processes on this machine (`local_crew`), or a Dask cluster. Both give futures: one loop for both."""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import CancelledError, Executor, Future
from contextlib import suppress
from importlib import import_module
from typing import Any, Protocol

from ...core.errors import InputError, LimitError, UnavailableError

CONNECT_SECONDS = 15


class Crew(Protocol):
    """Workers that take text and give text."""

    def slots(self) -> int:
        """How many tasks are worked on at once."""

    def submit(self, work: Callable[[str], str], text: str, /) -> Future[str]: ...

    def renew(self) -> None:
        """Replace a crew that broke down."""

    def explain(self, error: BaseException) -> BaseException:
        """What a future's failure means to the user."""

    def close(self) -> None:
        """Send everyone home at once, also in the middle of the work."""


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
