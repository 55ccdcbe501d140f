"""A solver in a process of its own, kept for the next model: it can be killed where it does not listen, and may crash without harm."""

from __future__ import annotations

import atexit
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from ..errors import UnavailableError
from .wire import Array, receive, send

Message = tuple[dict[str, Any], dict[str, Array]]


class SolverProcess:
    """A running worker. `messages` holds what it says, and None once it has ended."""

    def __init__(self, module: str) -> None:
        self._complaints = tempfile.TemporaryFile()  # noqa: SIM115
        # In a session of its own: Ctrl-C is for us, and we pass the wish on.
        try:
            self._child = subprocess.Popen(
                [sys.executable, "-P", "-m", module],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._complaints,
                start_new_session=os.name == "posix",
            )
        except OSError as error:
            raise UnavailableError(f"the solver's process cannot be started: {error.strerror or error}") from None
        self.messages: queue.SimpleQueue[Message | None] = queue.SimpleQueue()
        self._outbox: queue.SimpleQueue[tuple[Mapping[str, Any], Mapping[str, Array] | None] | None] = queue.SimpleQueue()
        for work in (self._listen, self._deliver):
            threading.Thread(target=work, name="solver", daemon=True).start()

    @property
    def pid(self) -> int:
        return self._child.pid

    def _listen(self) -> None:
        assert self._child.stdout is not None
        with suppress(OSError, ValueError):
            while (message := receive(self._child.stdout)) is not None:
                self.messages.put(message)
        self.messages.put(None)

    def send(self, fields: Mapping[str, Any], arrays: Mapping[str, Array] | None = None) -> None:
        """Does not wait: a worker that hangs does not read either. To one that has ended nothing is sent; `messages` says that it has."""
        self._outbox.put((fields, arrays))

    def _deliver(self) -> None:
        assert self._child.stdin is not None
        with suppress(OSError, ValueError):
            while (message := self._outbox.get()) is not None:
                send(self._child.stdin, *message)
        with suppress(OSError):
            self._child.stdin.close()

    def end(self) -> None:
        """At once; whatever it was doing."""
        self._child.kill()
        self._child.wait()
        self._outbox.put(None)
        self._complaints.close()

    def how_it_ended(self) -> str:
        """In a few words, after `messages` said that it has."""
        code = self._child.wait()
        self._complaints.seek(0, os.SEEK_END)
        self._complaints.seek(max(0, self._complaints.tell() - 2000))
        lines = self._complaints.read().decode(errors="replace").splitlines()
        last = next((f": {line.strip()[:200]}" for line in reversed(lines) if line.strip()), "")
        if "bad_alloc" in last or "MemoryError" in last:
            return "it ran out of memory"
        if code == -signal.SIGKILL:
            return "it was killed, as the system does when memory runs out"
        return f"it crashed ({signal.Signals(-code).name if code < 0 else f'code {code}'}){last}"


_idle: dict[tuple[int, str], list[SolverProcess]] = {}
"""By owner and module: after a fork the parent's workers are not the child's to use."""


def take(module: str) -> SolverProcess:
    """An idle worker, or a new one."""
    idle = _idle.get((os.getpid(), module), [])
    with suppress(IndexError):
        return idle.pop()
    return SolverProcess(module)


def give_back(worker: SolverProcess, module: str) -> None:
    """It has answered, and can be asked again."""
    _idle.setdefault((os.getpid(), module), []).append(worker)


@atexit.register
def _end_idle() -> None:
    for (owner, _), workers in _idle.items():
        if owner == os.getpid():
            for worker in workers:
                worker.end()
            workers.clear()
