"""The text that is exchanged with a worker: a task is a problem and how to solve it, an answer is the result of a strategy.

Nothing else is exchanged: a worker needs no shared files, and neither side executes what the other sent. Neither side trusts the other: the
digest shows that the graph arrived unchanged, and the receiver of an answer certifies its schedule again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import Enum
from math import isfinite
from typing import TypeVar

from ...core.errors import InputError
from ...core.model.costs import Costs
from ...core.model.digest import graph_digest
from ...core.model.memory_model import MemoryModel
from ...core.model.problem import Problem, build_problem
from ...core.result import Result, Scope, Status, Stop
from ...core.settings import FormulationName, Order, Settings
from .graph_json import parse_graph, render_graph
from .schedule_json import Run, parse_run, render_run
from .strict_json import Fields, check_header, describe, parse_json, quote

TASK, ANSWER = "checkmate-task", "checkmate-answer"
VERSION = 1
_ANSWER_KEYS = (
    *("format", "version", "status", "stop", "sequence", "bound", "bound_scope", "any_bound", "bound_runtime", "reason", "smallest_budget"),
    *("binding_operation", "provenance", "run", "versions", "warnings"),
)

Choice = TypeVar("Choice", bound=Enum)


@dataclass(frozen=True, slots=True)
class Task:
    """One strategy on one problem."""

    problem: Problem
    strategy: str
    settings: Settings
    time_limit: float

    @property
    def options(self) -> dict[str, object]:
        """All options of the solving, by name."""
        chosen = {option.name: getattr(self.settings, option.name) for option in fields(Settings) if option.name != "known"}
        return {"strategy": self.strategy, "time_limit": self.time_limit, **chosen}


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of a strategy, the progress of the search, and the versions of the packages that were used."""

    result: Result
    run: Run
    versions: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    """Parts of the work that failed, such as a solver that crashed: without them the result might be better."""


def render_task(task: Task, version: str) -> str:
    """The text of a task; `version` is the version of the sender, and the worker must have the same."""
    problem = task.problem
    document = {
        "format": TASK,
        "version": VERSION,
        "checkmate": version,
        "digest": graph_digest(problem.graph),
        "graph": render_graph(problem.graph),
        "amounts": list(problem.costs.amounts),
        "budget_bytes": problem.budget,
        "reserve_bytes": problem.base - problem.graph.fixed_bytes,
        "runtime": problem.memory_model.value,
        "options": task.options,
    }
    return json.dumps(document, separators=(",", ":"), allow_nan=False)


def parse_task(text: str, version: str) -> Task:
    """Parse a task and build its problem."""
    top = Fields(parse_json(text.encode(), "task"), "task")
    check_header(top, TASK, VERSION)
    asking = top.text("checkmate")
    if asking != version:
        raise InputError(f"this worker runs checkmate {version}, the task came from {asking}: install the same version on all machines")
    graph = parse_graph(top.get("graph"), "task")
    if graph_digest(graph) != top.text("digest"):
        raise InputError("task: the graph was changed in transfer (the digests differ)")
    amounts = tuple(top.number_in("amounts", index) for index in range(len(top.items("amounts"))))
    if len(amounts) != len(graph.operations):
        top.fail("amounts", f"expected one cost for each of {len(graph.operations)} operations, found {len(amounts)}")
    problem = build_problem(
        graph,
        Costs("", "", amounts, ("",) * len(amounts)),
        budget=top.size("budget_bytes"),
        reserve=top.size("reserve_bytes"),
        memory_model=_choice(top, "runtime", tuple(MemoryModel)),
    )
    options = dict(top.child("options").content)
    strategy, time_limit = str(options.pop("strategy")), float(str(options.pop("time_limit")))
    options["order"] = Order(str(options["order"]))
    options["formulation"] = FormulationName(str(options["formulation"]))
    return Task(problem, strategy, Settings(**options), time_limit)  # type: ignore[arg-type]


def render_answer(answer: Answer) -> dict[str, object]:
    """The document that `parse_answer` parses."""
    result = answer.result
    return {
        "format": ANSWER,
        "version": VERSION,
        "status": result.status.value,
        "stop": result.stop.value,
        "bound": result.bound,
        "bound_scope": result.bound_scope,
        "any_bound": result.any_bound,
        "bound_runtime": None if result.bound_model is None else result.bound_model.value,
        "reason": result.reason,
        "smallest_budget": result.smallest_budget,
        "binding_operation": result.binding_operation,
        "provenance": {
            key: str(note) if isinstance(note, float) and not isfinite(note) else note for key, note in result.provenance.items()
        },
        "run": render_run(answer.run),
        "versions": dict(answer.versions),
        "warnings": list(answer.warnings),
        "sequence": None if result.sequence is None else list(result.sequence),
    }


def parse_answer(document: object, problem: Problem, where: str) -> Answer:
    """Parse an answer for this problem. The verifier checks its schedule later."""
    top = Fields(document, where)
    check_header(top, ANSWER, VERSION)
    top.only(_ANSWER_KEYS)
    result = Result(
        status=_choice(top, "status", tuple(Status)),
        stop=_choice(top, "stop", tuple(Stop)),
        sequence=_sequence(top, problem.count),
        bound=top.number_or_none("bound"),
        reason=top.text("reason", empty=True),
        smallest_budget=None if top.get("smallest_budget") is None else top.size("smallest_budget"),
        binding_operation=top.text("binding_operation", empty=True),
        provenance=_notes(top.child("provenance")),
        bound_scope=_choice(top, "bound_scope", tuple(Scope)),
        any_bound=top.number_or_none("any_bound"),
        bound_model=None if top.get("bound_runtime") is None else _choice(top, "bound_runtime", tuple(MemoryModel)),
    )
    versions = top.child("versions")
    stated = {key: versions.text(key) for key in versions.content}
    return Answer(result, parse_run(top.child("run")), stated, top.texts("warnings"))


def _sequence(top: Fields, count: int) -> tuple[int, ...] | None:
    if top.get("sequence") is None:
        return None
    operations: list[int] = []
    for index, operation in enumerate(top.items("sequence")):
        if isinstance(operation, bool) or not isinstance(operation, int) or not 0 <= operation < count:
            top.fail(f"sequence[{index}]", f"expected the number of an operation below {count}, found {describe(operation)}")
        operations.append(operation)
    return tuple(operations)


def _choice(top: Fields, key: str, choices: tuple[Choice, ...]) -> Choice:
    found = top.text(key)
    chosen = next((choice for choice in choices if choice.value == found), None)
    if chosen is None:
        top.fail(key, f"expected one of {', '.join(str(choice.value) for choice in choices)}, found {quote(found)}")
    return chosen


def _notes(notes: Fields) -> dict[str, str | int | float]:
    return {key: found if isinstance(found, (int, float)) else notes.text(key, empty=True) for key, found in notes.content.items()}
