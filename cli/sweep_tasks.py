"""One strategy at one budget: what a sweep solves, here or in a process of its own."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..core.curve import Finding
from ..core.errors import CheckmateError
from ..core.events import Event, Watch
from ..core.points import solve_point
from ..core.problem import Problem
from ..core.settings import Settings
from .local_crew import told_to_stop


@dataclass(frozen=True, slots=True)
class Task:
    """What to solve; the problem is the same for all tasks but for its budget."""

    strategy: str
    budget: int
    settings: Settings
    time_limit: float


@dataclass(frozen=True, slots=True)
class Solved:
    """What came of a task."""

    finding: Finding
    warnings: tuple[str, ...] = ()
    """Parts of the work that failed: with better luck the finding might be better."""


def solve_task(problem: Problem, task: Task, watch: Watch) -> Solved:
    """Solve a task here and now."""
    warnings: dict[str, None] = {}

    def listen(event: Event) -> None:
        if event.warning:
            warnings[event.message] = None
        watch.on_event(event)

    finding = solve_point(problem.with_budget(task.budget), task.strategy, task.settings, replace(watch, on_event=listen))
    return Solved(finding, tuple(warnings))


def solve_beside(work: tuple[Problem, Task]) -> Solved:
    """The same in a worker. What goes wrong is told in a form that survives the way back."""
    problem, task = work
    try:
        return solve_task(problem, task, Watch(task.time_limit, interrupted=told_to_stop))
    except CheckmateError as error:
        raise type(error)(str(error)) from None
    except Exception as error:
        raise RuntimeError(f"{type(error).__name__}: {error}") from None
