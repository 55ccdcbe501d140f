"""A solver in its own process, which is reused for the next model. It can be killed when it does not react, and may crash without harm."""

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
    """A running worker. `messages` holds its messages, and None after it has exited."""

    def __init__(self, module: str) -> None:
        self._complaints = tempfile.TemporaryFile()  # noqa: SIM115
        # In its own session, so that Ctrl-C does not reach it: we pass the request on.
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

    @property
    def is_running(self) -> bool:
        return self._child.poll() is None

    def _listen(self) -> None:
        assert self._child.stdout is not None
        with suppress(OSError, ValueError):
            while (message := receive(self._child.stdout)) is not None:
                self.messages.put(message)
        self.messages.put(None)

    def send(self, fields: Mapping[str, Any], arrays: Mapping[str, Array] | None = None) -> None:
        """Does not block, because a worker that hangs does not read. Nothing is sent to a worker that has exited; `messages` shows this."""
        self._outbox.put((fields, arrays))

    def _deliver(self) -> None:
        assert self._child.stdin is not None
        with suppress(OSError, ValueError):
            while (message := self._outbox.get()) is not None:
                send(self._child.stdin, *message)
        with suppress(OSError):
            self._child.stdin.close()

    def end(self) -> None:
        """Kill it at once, whatever it is doing."""
        self._child.kill()
        self._child.wait()
        self._outbox.put(None)
        self._complaints.close()

    def how_it_ended(self) -> str:
        """Why the worker exited, in a few words; call it after `messages` returned None."""
        code = self._child.wait()
        self._complaints.seek(0, os.SEEK_END)
        self._complaints.seek(max(0, self._complaints.tell() - 2000))
        lines = self._complaints.read().decode(errors="replace").splitlines()
        last = next((f": {line.strip()[:200]}" for line in reversed(lines) if line.strip()), "")
        if "bad_alloc" in last or "MemoryError" in last:
            return "it ran out of memory"
        if code == -signal.SIGKILL:
            return "it was killed, probably by the system because memory ran out"
        return f"it crashed ({signal.Signals(-code).name if code < 0 else f'code {code}'}){last}"


_idle: dict[tuple[int, str], list[SolverProcess]] = {}
"""Idle workers by process id and module: after a fork, the child must not use the workers of its parent."""


def take(module: str) -> SolverProcess:
    """An idle worker that nobody has killed since, or a new one."""
    idle = _idle.get((os.getpid(), module), [])
    with suppress(IndexError):
        while True:
            worker = idle.pop()
            if worker.is_running:
                return worker
            worker.end()
    return SolverProcess(module)


def give_back(worker: SolverProcess, module: str) -> None:
    """Return a worker that has answered, for the next model."""
    _idle.setdefault((os.getpid(), module), []).append(worker)


@atexit.register
def _end_idle() -> None:
    for (owner, _), workers in _idle.items():
        if owner == os.getpid():
            for worker in workers:
                worker.end()
            workers.clear()
