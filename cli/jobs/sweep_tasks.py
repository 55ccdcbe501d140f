"""One strategy at one budget: a task of a sweep, solved in this process or in a worker."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ...core.errors import CheckmateError
from ...core.events import Event, Watch
from ...core.model.problem import Problem
from ...core.result import Result
from ...core.settings import Settings
from ...core.studies.points import solve_point
from .worker_pool import told_to_stop


@dataclass(frozen=True, slots=True)
class Task:
    """What to solve; only the budget of the problem differs between tasks."""

    strategy: str
    budget: int
    settings: Settings
    time_limit: float


@dataclass(frozen=True, slots=True)
class Solved:
    """The result of a task."""

    result: Result
    warnings: tuple[str, ...] = ()
    """Parts of the work that failed: without them the result might be better."""


def solve_task(problem: Problem, task: Task, watch: Watch) -> Solved:
    """Solve a task in this process."""
    warnings: dict[str, None] = {}

    def listen(event: Event) -> None:
        if event.warning:
            warnings[event.message] = None
        watch.on_event(event)

    result = solve_point(problem.with_budget(task.budget), task.strategy, task.settings, replace(watch, on_event=listen))
    return Solved(result, tuple(warnings))


def solve_beside(work: tuple[Problem, Task]) -> Solved:
    """Solve a task in a worker. Errors are returned in a form that survives pickling."""
    problem, task = work
    try:
        return solve_task(problem, task, Watch(task.time_limit, interrupted=told_to_stop))
    except CheckmateError as error:
        raise type(error)(str(error)) from None
    except Exception as error:
        raise RuntimeError(f"{type(error).__name__}: {error}") from None
