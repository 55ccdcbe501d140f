"""What a worker does: text in, text out. It reads and writes no files, so it may die at any moment and run on any machine."""

from __future__ import annotations

import json
from dataclasses import replace

from ... import __version__
from ...api.result import now, versions_of
from ...core import errors
from ...core.engine.run import run_strategy
from ...core.errors import CheckmateError, LimitError
from ...core.events import Event, Watch
from ...core.history import History
from ...core.model.problem import Problem
from ...core.result import Result, certified
from ...io.formats.schedule_json import Run
from ...io.formats.strict_json import Fields, parse_json
from ...io.formats.task_json import Answer, Task, parse_answer, parse_task, render_answer

_KINDS = {name: kind for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, CheckmateError)}


class WorkerBugError(Exception):
    """An unexpected error in a worker; only its message is known here."""


def answer_text(text: str) -> str:
    """Solve a task given as text. Errors are returned as text too, because exception objects may not survive pickling."""
    try:
        return json.dumps({"answer": render_answer(answer_task(parse_task(text, __version__)))}, allow_nan=False)
    except CheckmateError as error:
        return json.dumps({"error": type(error).__name__, "message": str(error)})
    except MemoryError:
        return json.dumps(
            {"error": LimitError.__name__, "message": "the worker ran out of memory; use a machine with more memory, or fewer --workers"}
        )
    except Exception as error:
        return json.dumps({"error": "", "message": f"{type(error).__name__}: {error}".rstrip(": ")})


def answer_task(task: Task) -> Answer:
    """Solve a task in this process."""
    warnings: dict[str, None] = {}

    def note(event: Event) -> None:
        if event.warning:
            warnings[event.message] = None

    history = History(note)
    watch = history.watch = Watch(task.time_limit, history.on_event)
    result = run_strategy(task.problem, task.strategy, task.settings, watch)
    progress = () if result.certificate is None else history.concluded(result.seconds, result.cost, result.bound or 0.0)
    run = Run(round(result.seconds, 6), now(), progress)
    return Answer(result, run, versions_of(result.provenance), tuple(warnings))


def read_reply(text: str, problem: Problem) -> Answer:
    """Parse the text of a worker; an error in the worker is raised here."""
    reply = Fields(parse_json(text.encode(), "the worker's answer"), "the worker's answer")
    if "error" in reply:
        message = reply.text("message")
        kind = _KINDS.get(reply.text("error", empty=True))
        raise WorkerBugError(message) if kind is None else kind(message)
    return parse_answer(reply.get("answer"), problem, reply.where)


def certified_answer(task: Task, answer: Answer) -> Result:
    """Expand, simulate and verify again what a worker or the cache returned; neither is trusted."""
    result = replace(answer.result, strategy=task.strategy, seconds=answer.run.seconds)
    return certified(result, task.problem, task.settings.gap)
