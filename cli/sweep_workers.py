"""Points of a sweep solved in processes of their own.

Each worker gets the problem once and then one task after the other. Ctrl-C reaches the whole group of processes, so workers ignore it and
stop when they are told; a worker whose parent is gone ends at once.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from queue import SimpleQueue
from types import TracebackType

from ..core.curve import Finding
from ..core.errors import CheckmateError
from ..core.events import Watch
from ..core.points import solve_point
from ..core.problem import Problem
from ..core.settings import Settings

_STOP, _GO_HOME = "stop", "go home"
_PATIENCE = 3.0
"""Seconds for workers to leave in their own way, and clean up behind them."""


@dataclass(frozen=True, slots=True)
class Task:
    """One strategy at one budget."""

    strategy: str
    budget: int
    settings: Settings
    time_limit: float

    def run(self, problem: Problem, watch: Watch) -> Finding:
        return solve_point(problem.with_budget(self.budget), self.strategy, self.settings, watch)


class Workers:
    """A few processes that solve tasks of one problem. Leaving the context ends them, whatever they do."""

    def __init__(self, problem: Problem, count: int) -> None:
        self._problem = problem
        self._count = count
        self._idle: list[Connection] = []
        self._busy: dict[Connection, Task] = {}
        self._processes: list[multiprocessing.process.BaseProcess] = []

    def __enter__(self) -> Workers:
        context = multiprocessing.get_context("spawn")
        for _ in range(self._count):
            ours, theirs = context.Pipe()
            process = context.Process(target=_serve, args=(theirs, self._problem), daemon=True)
            process.start()
            theirs.close()
            self._processes.append(process)
            self._idle.append(ours)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for connection in self._idle:
            connection.send(_GO_HOME)
        deadline = time.monotonic() + (_PATIENCE if not self._busy else 0.0)
        for process in self._processes:
            process.join(max(0.0, deadline - time.monotonic()))
            process.kill()
            process.join()
        for connection in (*self._idle, *self._busy):
            connection.close()

    @property
    def running(self) -> list[Task]:
        return list(self._busy.values())

    @property
    def has_room(self) -> bool:
        return bool(self._idle)

    def start(self, task: Task) -> None:
        connection = self._idle.pop()
        self._busy[connection] = task
        connection.send(task)

    def stop_soon(self) -> None:
        """Every task ends with the best it has."""
        for connection in self._busy:
            connection.send(_STOP)

    def finished(self, seconds: float) -> Iterator[tuple[Task, Finding]]:
        """Tasks that ended within so many seconds. What went wrong in a worker is raised here."""
        for connection in wait(list(self._busy), seconds):
            assert isinstance(connection, Connection)
            try:
                outcome = connection.recv()
            except EOFError:
                raise RuntimeError(f"a worker died while solving {self._busy[connection].strategy}") from None
            task = self._busy.pop(connection)
            self._idle.append(connection)
            if isinstance(outcome, Exception):
                raise outcome
            yield task, outcome


def _serve(connection: Connection, problem: Problem) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    tasks: SimpleQueue[Task | None] = SimpleQueue()
    stopping = threading.Event()
    threading.Thread(target=_listen, args=(connection, tasks, stopping), daemon=True).start()
    while (task := tasks.get()) is not None:
        try:
            connection.send(task.run(problem, Watch(task.time_limit, interrupted=stopping.is_set)))
        except CheckmateError as error:
            connection.send(type(error)(str(error)))
        except Exception as error:
            connection.send(RuntimeError(f"{type(error).__name__}: {error}"))


def _listen(connection: Connection, tasks: SimpleQueue[Task | None], stopping: threading.Event) -> None:
    while True:
        try:
            message = connection.recv()
        except (EOFError, OSError):
            os._exit(0)
        if message == _STOP:
            stopping.set()
        elif message == _GO_HOME:
            tasks.put(None)
            return
        else:
            tasks.put(message)
