"""The schedule file: exact round trips, its schema, its derived parts, and every way to get it wrong."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from importlib.resources import files
from typing import Any

import jsonschema
import pytest

from checkmate.core.errors import InputError
from checkmate.core.history import Moment
from checkmate.core.model.costs import Costs, unit_costs
from checkmate.core.model.graph import Graph, OperationSpec, ValueSpec, assemble
from checkmate.core.model.problem import build_problem
from checkmate.core.result import Status, Stop
from checkmate.core.schedule.certify import certify
from checkmate.core.schedule.plan import Kept, plan_of
from checkmate.core.schedule.schedule import Action, Schedule
from checkmate.io.formats.json_text import json_text
from checkmate.io.formats.schedule_json import Run, ScheduleDocument, contradictions, parse_definition, parse_schedule, render_schedule
from checkmate.io.formats.strict_json import parse_json

SCHEMA = json.loads(files("checkmate.io.schemas").joinpath("schedule.schema.json").read_text())


def diamond() -> Graph:
    """a -> b -> c -> d, and d reads a again."""
    specs = [
        OperationSpec("a", "Op", (), (ValueSpec("x", 4),)),
        OperationSpec("b", "Op", ("x",), (ValueSpec("y", 3),)),
        OperationSpec("c", "Op", ("y",), (ValueSpec("z", 2),)),
        OperationSpec("d", "Op", ("z", "x"), (ValueSpec("loss", 1),)),
    ]
    return assemble("diamond", specs, ["loss"], {"parameters": 10})


def documented(graph: Graph, costs: Costs, sequence: list[int], **more: Any) -> ScheduleDocument:
    schedule, simulation = certify(build_problem(graph, costs, reserve=5), tuple(sequence))
    fields: dict[str, Any] = {
        "strategy": "optimal",
        "status": Status.OPTIMAL,
        "stop": Stop.FINISHED,
        "budget_bytes": simulation.peak_bytes,
        "reserve_bytes": 5,
        "peak_bytes": simulation.peak_bytes,
        "keep_all_peak_bytes": simulation.peak_bytes + 3,
        "cost": simulation.cost,
        "bound": simulation.cost * 0.9,
        "cost_model": costs.model,
        "cost_unit": costs.unit,
        "amounts": costs.amounts,
        "schedule": schedule,
        "run": Run(1.25, "2024-05-01T12:00:00+00:00", (Moment(0.5, None, 3.0, "bounding"), Moment(1.25, simulation.cost, 3.5, "end"))),
        "seed": 7,
        "provenance": {"solver": "highs", "nodes": 12, "epsilon": 0.1},
        "versions": {"python": "3.11.2", "checkmate": "0.1.0"},
    }
    return ScheduleDocument(**{**fields, **more})


def recomputing() -> tuple[Graph, ScheduleDocument]:
    graph = diamond()
    return graph, documented(graph, unit_costs(graph), [0, 1, 2, 0, 3])


def rendered() -> tuple[Graph, dict[str, Any]]:
    """As it comes out of a file."""
    graph, document = recomputing()
    return graph, json.loads(json_text(render_schedule(document, graph)))


def test_known_schedule_in_full() -> None:
    _, file = rendered()
    assert file["steps"] == [
        *(["compute", "a"], ["compute", "b"], ["free", "x"], ["compute", "c"], ["free", "y"]),
        *(["compute", "a"], ["compute", "d"], ["free", "x"], ["free", "z"]),
    ]
    assert file["plan"] == {"stages": [["a"], ["b"], ["c"], ["a", "d"]], "kept": [["x", 1, 1], ["y", 2, 2], ["z", 3, 3]]}
    assert (file["recomputed"], file["recomputations"]) == (1, {"a": 1})
    assert (file["cost"], file["ideal_cost"], file["overhead"], file["bound"]) == (5, 4, 0.25, 4.5)
    assert file["gap"] == pytest.approx(0.1)
    assert file["graph"]["operations"] == 4
    assert file["costs"] == {"model": "unit", "unit": "operations", "amounts": [1, 1, 1, 1]}
    assert list(file["versions"]) == ["checkmate", "python"]
    jsonschema.Draft202012Validator(SCHEMA).validate(file)


def test_steps_stand_one_a_line() -> None:
    graph, document = recomputing()
    text = json_text(render_schedule(document, graph))
    assert '\n    ["compute", "b"],\n    ["free", "x"],\n' in text
    assert '\n      ["a", "d"]\n' in text
    assert len(text) < 1.5 * len(json.dumps(json.loads(text)))


def test_only_the_run_block_tells_equal_runs_apart() -> None:
    graph, document = recomputing()
    other = replace(document, run=Run(99.0, "2025-01-01T00:00:00+00:00"))
    first, second = render_schedule(document, graph), render_schedule(other, graph)
    assert first.pop("run") != second.pop("run")
    assert json_text(first) == json_text(second)


def random_graph(rng: random.Random) -> Graph:
    specs: list[OperationSpec] = []
    values: list[str] = []
    for index in range(rng.randint(1, 12)):
        inputs = tuple(rng.sample(values, min(len(values), rng.randint(0, 3))))
        view = bool(inputs) and rng.random() < 0.2
        made = [f"v{index}.{output}" for output in range(1 if view else rng.randint(0, 3))]
        outputs = tuple(ValueSpec(name, 0 if view else rng.randint(0, 9), inputs[0] if view else None) for name in made)
        specs.append(OperationSpec(f"op{index}", "Op", inputs, outputs, 0 if view else rng.randint(0, 5), view=view))
        values.extend(made)
    return assemble("random", specs, rng.sample(values, min(len(values), 2)), {"inputs": rng.randint(0, 9)})


def random_document(seed: int) -> tuple[Graph, ScheduleDocument]:
    rng = random.Random(seed)
    graph = random_graph(rng)
    costs = Costs("measured", "s", tuple(0.0 if op.view else rng.random() for op in graph.operations), ("",) * len(graph.operations))
    count = build_problem(graph, costs).count
    sequence = [
        again for operation in range(count) for again in (*sorted(rng.sample(range(operation), rng.randint(0, operation) // 3)), operation)
    ]
    sequence += sorted(rng.sample(range(count), count // 4))
    return graph, documented(graph, costs, sequence, bound=rng.choice([None, 0.0, 0.3]), stop=rng.choice(list(Stop)))


@pytest.mark.parametrize("seed", range(60))
def test_what_is_written_reads_back_equal_and_follows_the_schema(seed: int) -> None:
    graph, document = random_document(seed)
    text = json_text(render_schedule(document, graph))
    file = parse_json(text.encode(), "s.json")
    jsonschema.Draft202012Validator(SCHEMA).validate(file)
    parsed = parse_schedule(file, graph, "s.json")
    assert parsed == document
    assert contradictions(file, parsed, graph) == ()
    assert json_text(render_schedule(parsed, graph)) == text


@pytest.mark.parametrize("seed", range(60))
def test_the_plan_says_what_is_in_memory_when_each_stage_begins(seed: int) -> None:
    graph, document = random_document(seed)
    plan = plan_of(graph, document.schedule)
    assert [operation for stage in plan.stages for operation in stage] == list(document.schedule.computations)
    assert len(plan.stages) == len(graph.operations)
    seen: set[int] = set()
    for stage in plan.stages[:-1]:
        assert [operation in seen for operation in stage] == [True] * (len(stage) - 1) + [False]
        seen.update(stage)
    assert carried_by_replay(graph, document.schedule, [len(stage) for stage in plan.stages]) == [
        {span.value for span in plan.kept if span.first <= number <= span.last} for number in range(len(plan.stages))
    ]


def carried_by_replay(graph: Graph, schedule: Schedule, lengths: list[int]) -> list[set[int]]:
    """What is in memory right before the first computation of each stage."""
    starts = {sum(lengths[:stage]) for stage in range(len(lengths))}
    carried: list[set[int]] = []
    live: set[int] = set()
    computed = 0
    for step in schedule.steps:
        if step.action is Action.FREE:
            live.discard(step.index)
            continue
        if computed in starts:
            carried.append(set(live))
        computed += 1
        live.update(graph.operations[step.index].outputs)
    return carried


def test_a_value_kept_through_several_stages_is_one_interval() -> None:
    graph = diamond()
    document = documented(graph, unit_costs(graph), [0, 1, 2, 3])
    assert plan_of(graph, document.schedule).kept == (Kept(0, 1, 3), Kept(1, 2, 2), Kept(2, 3, 3))


def test_a_schedule_of_another_graph_is_refused() -> None:
    _, file = rendered()
    other = assemble("chain", [OperationSpec("a", "Op", (), (ValueSpec("x", 4),))], ["x"], {})
    with pytest.raises(InputError) as caught:
        parse_schedule(file, other, "s.json")
    assert str(caught.value) == (
        "s.json: this schedule belongs to another graph, 'diamond' with 4 operations, not to 'chain' with 1 (their digests differ)"
    )


@pytest.mark.parametrize("seed", range(20))
def test_the_file_brings_its_graph_along(seed: int) -> None:
    graph, document = random_document(seed)
    file = json.loads(json_text(render_schedule(document, graph)))
    assert parse_definition(file) == graph
    del file["definition"]
    assert parse_definition(file) is None
    assert contradictions(file, parse_schedule(file, graph), graph) == ()


def test_a_graph_that_is_not_the_schedules_own_is_found_out() -> None:
    graph, file = rendered()
    file["definition"]["operations"][0]["workspace"] = 1
    with pytest.raises(InputError) as caught:
        parse_definition(file, "s.json")
    assert str(caught.value) == "s.json: 'definition' is not the graph of this schedule (their digests differ)"
    assert len(contradictions(file, parse_schedule(file, graph), graph)) == 1


def test_infinities_in_notes_do_not_stop_the_writing() -> None:
    graph, document = recomputing()
    file = render_schedule(replace(document, provenance={"bound": float("inf")}), graph)
    assert '"bound": "inf"' in json_text(file)


@pytest.mark.parametrize(
    ("path", "lie", "key"),
    [
        (("ideal_cost",), 3, "ideal_cost"),
        (("overhead",), 0.5, "overhead"),
        (("gap",), 0, "gap"),
        (("recomputed",), 0, "recomputed"),
        (("recomputations",), {"b": 1}, "recomputations"),
        (("plan", "stages", 3), ["d"], "plan"),
        (("plan",), None, "plan"),
    ],
)
def test_a_file_that_contradicts_itself_is_found_out(path: tuple[str | int, ...], lie: object, key: str) -> None:
    graph, file = rendered()
    change(file, path, lie)
    parsed = parse_schedule(file, graph, "s.json")
    assert contradictions(file, parsed, graph) == (f"{key!r} in the file does not follow from its steps and costs",)


def change(file: Any, path: tuple[str | int, ...], content: object) -> None:
    for part in path[:-1]:
        file = file[part]
    if content is ...:
        del file[path[-1]]
    else:
        file[path[-1]] = content


HOSTILE: dict[str, tuple[tuple[str | int, ...], object, str]] = {
    "another format": (("format",), "checkmate-graph", "s.json: format: expected 'checkmate-schedule', found 'checkmate-graph'"),
    "newer": (("version",), 2, "s.json: version: the file has version 2, but this checkmate reads versions up to 1: update checkmate"),
    "no graph": (("graph",), ..., "s.json: the key 'graph' is missing"),
    "no plan": (("plan",), ..., "s.json: the key 'plan' is missing"),
    "no steps": (("steps",), ..., "s.json: the key 'steps' is missing"),
    "unknown key": (("budget",), 1, "s.json: unknown key 'budget'; did you mean 'budget_bytes'?"),
    "unknown operation": (("steps", 1), ["compute", "bb"], "s.json: steps[1]: the graph has no operation 'bb'; did you mean 'b'?"),
    "unknown value": (("steps", 2), ["free", "b"], "s.json: steps[2]: the graph has no value 'b'"),
    "unknown action": (
        ("steps", 0),
        ["computes", "a"],
        "s.json: steps[0]: expected compute or free, found 'computes'; did you mean 'compute'?",
    ),
    "half a step": (("steps", 0), ["compute"], 's.json: steps[0]: expected ["compute", operation] or ["free", value], found a list'),
    "step by number": (("steps", 0), ["compute", 0], 's.json: steps[0]: expected ["compute", operation]'),
    "step as text": (("steps", 0), "compute a", 's.json: steps[0]: expected ["compute", operation] or ["free", value], found the text'),
    "status": (("status",), "infeasible", "s.json: status: expected one of optimal, feasible, found 'infeasible'"),
    "stop": (("stop",), "done", "s.json: stop: expected one of finished, time-limit, interrupted, found 'done'"),
    "negative budget": (("budget_bytes",), -1, "s.json: budget_bytes: -1 is negative"),
    "cost as text": (("cost",), "5", "s.json: cost: expected a number, found the text '5'"),
    "bound as true": (("bound",), True, "s.json: bound: expected a number, found true"),
    "too few costs": (("costs", "amounts"), [1], "s.json: costs.amounts: expected one cost for each of 4 operations, found 1"),
    "a bad cost": (("costs", "amounts", 2), None, "s.json: costs.amounts[2]: expected a number, found null"),
    "a negative cost": (("costs", "amounts", 2), -1, "s.json: costs.amounts[2]: -1 is negative"),
    "no time": (("run", "created"), ..., "s.json: run: the key 'created' is missing"),
    "progress as a number": (("run", "progress"), 1, "s.json: run.progress: expected a list [...], found the number 1"),
    "progress without a phase": (("run", "progress", 0), [0, 1, 2], "s.json: run.progress[0]: expected [seconds, cost, bound, phase]"),
    "progress as text": (("run", "progress", 0), ["0", 1, 2, ""], "s.json: run.progress[0]: expected [seconds, cost or null"),
    "progress at no time": (("run", "progress", 1), [None, 1, 2, ""], "s.json: run.progress[1]: expected [seconds, cost or null"),
    "a list as a note": (("provenance", "solver"), [], "s.json: provenance.solver: expected text or a number, found a list"),
    "a number as a version": (("versions", "python"), 3, "s.json: versions.python: expected text, found the number 3"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_schedules_get_one_clear_line(case: str) -> None:
    path, content, message = HOSTILE[case]
    graph, file = rendered()
    change(file, path, content)
    with pytest.raises(InputError) as caught:
        parse_schedule(file, graph, "s.json")
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)
