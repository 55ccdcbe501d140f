"""What a worker does: text in, text out. It reads no file and writes none, so it may die at any moment and sit on any machine."""

from __future__ import annotations

import json

from ... import __version__
from ...core import errors
from ...core.certify import Certified, certify, run_strategy
from ...core.errors import CheckmateError, LimitError
from ...core.events import Event, Watch
from ...core.history import History
from ...core.problem import Problem
from ...io.schedule_json import Run
from ...io.strict_json import Fields, parse_json
from ...io.task_json import Answer, Task, parse_answer, parse_task, render_answer
from ..outcome import outcome_of
from ..schedule_files import now, versions_of

_KINDS = {name: kind for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, CheckmateError)}


class WorkerBugError(Exception):
    """Something unforeseen happened in a worker; the message is all that is known here."""


def answer_text(text: str) -> str:
    """Solve the task in a text. Errors are answers too: as objects they might not survive the way back."""
    try:
        return json.dumps({"answer": render_answer(answer_task(parse_task(text, __version__)))}, allow_nan=False)
    except CheckmateError as error:
        return json.dumps({"error": type(error).__name__, "message": str(error)})
    except MemoryError:
        return json.dumps({"error": LimitError.__name__, "message": "the worker has too little memory for this graph"})
    except Exception as error:
        return json.dumps({"error": "", "message": f"{type(error).__name__}: {error}".rstrip(": ")})


def answer_task(task: Task) -> Answer:
    """Solve a task here and now."""
    warnings: dict[str, None] = {}

    def note(event: Event) -> None:
        if event.warning:
            warnings[event.message] = None

    history = History(note)
    watch = history.watch = Watch(task.time_limit, history.on_event)
    certified = run_strategy(task.problem, task.strategy, task.settings, watch)
    solution = certified.solution
    outcome = None if certified.simulation is None else outcome_of(certified, task.problem, 0, task.settings.gap)
    progress = () if outcome is None else history.concluded(outcome.seconds, outcome.cost, outcome.bound)
    run = Run(round(certified.seconds, 6), now(), progress)
    return Answer(solution, run, versions_of(solution.provenance), tuple(warnings))


def read_reply(text: str, problem: Problem) -> Answer:
    """The answer in a worker's text; what went wrong there goes wrong here."""
    reply = Fields(parse_json(text.encode(), "the worker's answer"), "the worker's answer")
    if "error" in reply:
        message = reply.text("message")
        kind = _KINDS.get(reply.text("error", empty=True))
        raise WorkerBugError(message) if kind is None else kind(message)
    return parse_answer(reply.get("answer"), problem, reply.where)


def certified_answer(task: Task, answer: Answer) -> Certified:
    """Trust nobody: whatever a worker or the cache gave is expanded, simulated and verified again."""
    solution = answer.solution
    if solution.sequence is None:
        return Certified(task.strategy, solution, None, None, False, answer.run.seconds)
    schedule, simulation = certify(task.problem, solution.sequence)
    return Certified(task.strategy, solution, schedule, simulation, simulation.peak_bytes <= task.problem.budget, answer.run.seconds)
