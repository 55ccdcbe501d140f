"""The schedule file; docs/formats.md describes it, io/schemas/schedule.schema.json defines it.

Figures that follow from the steps and the costs (ideal cost, overhead, gap, plan, recomputations) are derived when the file is written, so
they cannot contradict them; `contradictions` checks this for a file that was read. Only the `run` block differs between equal runs.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeVar

from ...core.errors import InputError
from ...core.events import relative_gap
from ...core.history import Moment
from ...core.model.digest import graph_digest
from ...core.model.graph import Graph
from ...core.model.memory_model import MemoryModel
from ...core.result import Scope, Status, Stop
from ...core.schedule.plan import plan_of
from ...core.schedule.schedule import Action, Schedule, Step
from .graph_json import parse_graph, render_graph
from .strict_json import Fields, check_header, describe, quote, suggestion

FORMAT = "checkmate-schedule"
VERSION = 1
"""The default scope of a bound: that of the paper's formulation, or an equivalent one."""

Choice = TypeVar("Choice", bound=Enum)
_STATUSES = (Status.OPTIMAL, Status.FEASIBLE)
_DERIVED = ("ideal_cost", "overhead", "gap", "recomputed", "recomputations", "plan")
_KEYS = (
    *("format", "version", "graph", "strategy", "status", "stop", "budget_bytes", "reserve_bytes", "peak_bytes", "keep_all_peak_bytes"),
    *("runtime", "cost", "ideal_cost", "overhead", "bound", "gap", "bound_scope", "bound_runtime", "any_bound"),
    *("recomputed", "recomputations", "seed", "session", "provenance", "versions", "run", "costs", "plan", "steps", "definition"),
)


@dataclass(frozen=True, slots=True)
class Run:
    """What differs between equal runs."""

    seconds: float
    created: str
    """Date and time, ISO 8601."""
    progress: tuple[Moment, ...] = ()
    """The progress of the search, if it was recorded."""


@dataclass(frozen=True, slots=True)
class SessionNote:
    """For an ONNX model: the onnxruntime session that its memory was counted for."""

    threads: int
    count: str
    """What the budget limits."""


@dataclass(frozen=True, slots=True)
class ScheduleDocument:
    """The content of a schedule file, without the figures that follow from the rest."""

    strategy: str
    status: Status
    stop: Stop
    budget_bytes: int
    reserve_bytes: int
    peak_bytes: int
    keep_all_peak_bytes: int
    cost: float
    bound: float | None
    """A proven lower limit on the cost; None if nothing is proven."""
    cost_model: str
    cost_unit: str
    amounts: tuple[float, ...]
    """The cost of each operation of the graph."""
    schedule: Schedule
    run: Run
    seed: int = 0
    bound_scope: Scope = Scope.ORDER
    any_bound: float | None = None
    """The same limit for schedules in any order, where it is known."""
    bound_model: MemoryModel | None = None
    """The memory model that the bound holds for; None in older files, which do not say."""
    provenance: Mapping[str, str | int | float] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    memory_model: MemoryModel = MemoryModel.GENERIC
    """The memory model of the peaks."""
    session: SessionNote | None = None

    @property
    def ideal_cost(self) -> float:
        """The cost of every operation once."""
        return sum(self.amounts)

    @property
    def overhead(self) -> float:
        """(cost - ideal_cost) / ideal_cost."""
        return self.cost / self.ideal_cost - 1 if self.ideal_cost > 0 else 0.0

    @property
    def gap(self) -> float | None:
        """(cost - bound) / cost: the cost is at most this far above the optimum."""
        return None if self.bound is None else relative_gap(self.cost, self.bound)


def render_schedule(document: ScheduleDocument, graph: Graph) -> dict[str, object]:
    """The document that `parse_schedule` parses to an equal schedule."""
    recomputations = _recomputations(graph, document.schedule)
    return {
        "format": FORMAT,
        "version": VERSION,
        "graph": {"name": graph.name, "digest": graph_digest(graph), "operations": len(graph.operations)},
        "strategy": document.strategy,
        "status": document.status.value,
        "stop": document.stop.value,
        "budget_bytes": document.budget_bytes,
        "reserve_bytes": document.reserve_bytes,
        "peak_bytes": document.peak_bytes,
        "keep_all_peak_bytes": document.keep_all_peak_bytes,
        "runtime": document.memory_model.value,
        "cost": document.cost,
        "ideal_cost": document.ideal_cost,
        "overhead": document.overhead,
        "bound": document.bound,
        "gap": document.gap,
        "bound_scope": document.bound_scope,
        **({} if document.bound_model is None else {"bound_runtime": document.bound_model.value}),
        **({} if document.any_bound is None else {"any_bound": document.any_bound}),
        "recomputed": sum(recomputations.values()),
        "recomputations": recomputations,
        "seed": document.seed,
        **({} if document.session is None else {"session": {"threads": document.session.threads, "count": document.session.count}}),
        "provenance": {key: _finite(stated) for key, stated in sorted(document.provenance.items())},
        "versions": dict(sorted(document.versions.items())),
        "run": render_run(document.run),
        "costs": {"model": document.cost_model, "unit": document.cost_unit, "amounts": list(document.amounts)},
        "plan": _rendered_plan(graph, document.schedule),
        "steps": [[step.action.value, _step_name(graph, step)] for step in document.schedule.steps],
        "definition": render_graph(graph),
    }


def render_run(run: Run) -> dict[str, object]:
    """The `run` block."""
    rendered: dict[str, object] = {"seconds": run.seconds, "created": run.created}
    if run.progress:
        rendered["progress"] = [[moment.seconds, moment.incumbent, moment.bound, moment.phase] for moment in run.progress]
    return rendered


def _recomputations(graph: Graph, schedule: Schedule) -> dict[str, int]:
    """How often each operation is recomputed, in the graph's order; views cost nothing and are not counted."""
    runs = Counter(schedule.computations)
    repeated = ((operation, runs[index] - 1) for index, operation in enumerate(graph.operations) if not operation.view)
    return {operation.name: repeats for operation, repeats in repeated if repeats > 0}


def _rendered_plan(graph: Graph, schedule: Schedule) -> dict[str, object]:
    plan = plan_of(graph, schedule)
    return {
        "stages": [[graph.operations[index].name for index in stage] for stage in plan.stages],
        "kept": [[graph.values[span.value].name, span.first, span.last] for span in plan.kept],
    }


def _step_name(graph: Graph, step: Step) -> str:
    return graph.operations[step.index].name if step.action is Action.COMPUTE else graph.values[step.index].name


def _finite(stated: str | int | float) -> str | int | float:
    """JSON has no infinity: convert it, so that a note in the provenance cannot prevent a schedule from being written."""
    return str(stated) if isinstance(stated, float) and not math.isfinite(stated) else stated


def parse_definition(document: object, where: str = "schedule") -> Graph | None:
    """The graph in a schedule file; None if the file does not contain it, as in older files."""
    top = Fields(document, where)
    check_header(top, FORMAT, VERSION)
    if "definition" not in top:
        return None
    graph = parse_graph(top.get("definition"), f"{where}: definition")
    if graph_digest(graph) != top.child("graph").text("digest"):
        raise InputError(f"{where}: 'definition' is not the graph of this schedule (their digests differ)")
    return graph


def parse_schedule(document: object, graph: Graph, where: str = "schedule") -> ScheduleDocument:
    """Parse a schedule of this graph. The verifier checks whether it is valid, `contradictions` whether its figures follow from them."""
    top = Fields(document, where)
    check_header(top, FORMAT, VERSION)
    _check_graph(top.child("graph"), graph)
    top.only(_KEYS)
    for key in _DERIVED:
        top.get(key)
    costs = top.child("costs")
    costs.only(("model", "unit", "amounts"))
    return ScheduleDocument(
        strategy=top.text("strategy"),
        status=_choice(top, "status", _STATUSES),
        stop=_choice(top, "stop", tuple(Stop)),
        budget_bytes=top.size("budget_bytes"),
        reserve_bytes=top.size("reserve_bytes"),
        peak_bytes=top.whole("peak_bytes"),
        keep_all_peak_bytes=top.whole("keep_all_peak_bytes"),
        cost=top.number("cost"),
        bound=top.number_or_none("bound"),
        cost_model=costs.text("model"),
        cost_unit=costs.text("unit"),
        amounts=_amounts(costs, graph),
        schedule=_schedule(top, graph),
        run=parse_run(top.child("run")),
        seed=top.whole("seed"),
        bound_scope=_choice(top, "bound_scope", tuple(Scope)),
        any_bound=top.number("any_bound") if "any_bound" in top else None,
        bound_model=_choice(top, "bound_runtime", tuple(MemoryModel)) if "bound_runtime" in top else None,
        provenance=_notes(top.child("provenance")),
        versions={key: versions.text(key) for versions in (top.child("versions"),) for key in versions.content},
        memory_model=_choice(top, "runtime", tuple(MemoryModel)),
        session=parse_session(top),
    )


def parse_session(top: Fields) -> SessionNote | None:
    """What an ONNX model was solved for; None for other graphs, and in older files."""
    if "session" not in top:
        return None
    session = top.child("session")
    session.only(("threads", "count"))
    return SessionNote(session.whole("threads"), session.text("count"))


def contradictions(document: object, parsed: ScheduleDocument, graph: Graph) -> tuple[str, ...]:
    """The figures in a schedule file that do not follow from its steps and costs. Takes the input and the result of `parse_schedule`."""
    stated, derived = Fields(document, "schedule").content, render_schedule(parsed, graph)
    found = [f"{key!r} in the file does not follow from its steps and costs" for key in _DERIVED if stated[key] != derived[key]]
    try:
        parse_definition(document)
    except InputError as error:
        found.append(str(error))
    return tuple(found)


def _check_graph(fields: Fields, graph: Graph) -> None:
    fields.only(("name", "digest", "operations"))
    name, digest, count = fields.text("name", empty=True), fields.text("digest"), fields.whole("operations")
    if digest != graph_digest(graph):
        raise InputError(
            f"{fields.where}: this schedule belongs to another graph, {quote(name)} with {count} operations, "
            f"not to {quote(graph.name)} with {len(graph.operations)} (their digests differ)"
        )


def _choice(fields: Fields, key: str, choices: tuple[Choice, ...]) -> Choice:
    found = fields.text(key)
    chosen = next((choice for choice in choices if choice.value == found), None)
    if chosen is None:
        fields.fail(key, f"expected one of {', '.join(choice.value for choice in choices)}, found {quote(found)}")
    return chosen


def _amounts(costs: Fields, graph: Graph) -> tuple[float, ...]:
    amounts = costs.items("amounts")
    if len(amounts) != len(graph.operations):
        costs.fail("amounts", f"expected one cost for each of {len(graph.operations)} operations, found {len(amounts)}")
    return tuple(costs.number_in("amounts", index) for index in range(len(amounts)))


def _schedule(top: Fields, graph: Graph) -> Schedule:
    numbers = {
        Action.COMPUTE.value: {operation.name: index for index, operation in enumerate(graph.operations)},
        Action.FREE.value: {value.name: index for index, value in enumerate(graph.values)},
    }
    steps: list[Step] = []
    for index, item in enumerate(top.items("steps")):
        key = f"steps[{index}]"
        if not isinstance(item, list) or len(item) != 2 or not all(isinstance(part, str) for part in item):
            top.fail(key, f'expected ["compute", operation] or ["free", value], found {describe(item)}')
        action, name = item
        if action not in numbers:
            top.fail(key, f"expected compute or free, found {quote(action)}{suggestion(action, numbers)}")
        if name not in numbers[action]:
            what = "operation" if action == Action.COMPUTE.value else "value"
            top.fail(key, f"the graph has no {what} {quote(name)}{suggestion(name, numbers[action])}")
        steps.append(Step(Action(action), numbers[action][name]))
    return Schedule(tuple(steps))


def parse_run(run: Fields) -> Run:
    """What `render_run` wrote."""
    run.only(("seconds", "created", "progress"))
    return Run(run.number("seconds"), run.text("created"), _progress(run))


def _progress(run: Fields) -> tuple[Moment, ...]:
    moments: list[Moment] = []
    for index, item in enumerate(run.items("progress", [])):
        key = f"progress[{index}]"
        if not isinstance(item, list) or len(item) != 4:
            run.fail(key, f"expected [seconds, cost, bound, phase], found {describe(item)}")
        seconds, incumbent, bound, phase = item
        figures = [figure for figure in (seconds, incumbent, bound) if figure is not None]
        if seconds is None or not isinstance(phase, str) or not all(_is_amount(figure) for figure in figures):
            run.fail(key, "expected [seconds, cost or null, bound or null, phase]")
        moments.append(Moment(seconds, incumbent, bound, phase))
    return tuple(moments)


def _is_amount(figure: object) -> bool:
    return isinstance(figure, (int, float)) and not isinstance(figure, bool) and figure >= 0


def _notes(fields: Fields) -> dict[str, str | int | float]:
    notes: dict[str, str | int | float] = {}
    for key, found in fields.content.items():
        if isinstance(found, bool) or not isinstance(found, (str, int, float)):
            fields.fail(key, f"expected text or a number, found {describe(found)}")
        notes[key] = found
    return notes
