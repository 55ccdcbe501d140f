"""Our own graph format: hand-written short forms, round trips, and every way to get it wrong."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checkmate.core.errors import InputError
from checkmate.core.model.costs import unit_costs
from checkmate.core.model.graph import Graph, OperationSpec, ValueSpec, Work, assemble
from checkmate.io.formats.graph_json import parse_graph, render_graph
from checkmate.io.formats.json_text import json_text
from checkmate.io.formats.strict_json import parse_json

VALIDATOR = jsonschema.Draft202012Validator(json.loads(files("checkmate.io.schemas").joinpath("graph.schema.json").read_text()))


def document(*operations: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"format": "checkmate-graph", "version": 1, "operations": list(operations), **more}


def test_short_and_long_forms_mean_the_same() -> None:
    short = document(
        {"name": "a", "bytes": 4},
        {"name": "b", "inputs": ["a"], "alias_of": "a"},
        {"name": "c", "view": True},
        {"name": "d", "inputs": ["b", "c"], "bytes": 1e3, "cost": 2},
        name="g",
        outputs=["d"],
    )
    full = document(
        {"name": "a", "kind": "operation", "inputs": [], "outputs": [{"name": "a", "bytes": 4}], "workspace": 0, "pinned": False},
        {"name": "b", "inputs": ["a"], "outputs": [{"name": "b", "alias_of": "a", "bytes": 0}], "view": True},
        {"name": "c", "outputs": [{"name": "c"}], "view": True, "comment": "a view of fixed memory"},
        {"name": "d", "inputs": ["b", "c"], "outputs": [{"name": "d", "bytes": 1000}], "cost": 2.0, "backward": False},
        name="g",
        outputs=["d"],
        fixed={},
        comment="the same",
    )
    VALIDATOR.validate(short)
    VALIDATOR.validate(full)
    graph = parse_graph(short, "short.json")
    assert graph == parse_graph(full, "full.json")
    assert [operation.view for operation in graph.operations] == [False, True, True, False]
    assert graph.values[1].alias_of == 0
    assert graph.outputs == (3,)


def test_everything_an_operation_can_say_arrives() -> None:
    graph = parse_graph(
        document(
            {
                "name": "conv",
                "kind": "Conv",
                "outputs": [{"name": "y", "bytes": 8}, {"name": "z", "bytes": 0}],
                "cost": 1.5,
                "workspace": 16,
                "flops": 1e12,
                "moved_bytes": 99,
                "backward": True,
                "pinned": True,
            },
            fixed={"parameters": 123, "inputs": 45},
        ),
        "some/where/net.json",
    )
    operation = graph.operations[0]
    assert (graph.name, graph.fixed_bytes) == ("net", 168)
    assert (operation.kind, operation.outputs, operation.workspace, operation.backward, operation.pinned) == (
        "Conv",
        (0, 1),
        16,
        True,
        True,
    )
    assert operation.work == Work(cost=1.5, flops=1e12, moved_bytes=99)


def test_operations_may_stand_in_any_order() -> None:
    graph = parse_graph(document({"name": "b", "inputs": ["a"], "bytes": 1}, {"name": "a", "bytes": 1}), "g.json")
    assert [operation.name for operation in graph.operations] == ["a", "b"]


NAMES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=6)
SIZES = st.integers(0, 2**60)
COSTS = st.none() | st.floats(0, 1e30)


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    names = draw(st.lists(NAMES, min_size=1, max_size=8, unique=True))
    specs: list[OperationSpec] = []
    values: list[str] = []
    for name in names:
        inputs = tuple(draw(st.lists(st.sampled_from(values), max_size=3, unique=True))) if values else ()
        view = draw(st.booleans())
        # Either named like the operation (the short form), or several with names of their own.
        made = [name] if draw(st.booleans()) else [f"{name}:{index}" for index in range(draw(st.integers(0, 3)))]
        made = [output for output in made if output not in values]
        aliases = [draw(st.sampled_from(inputs)) if view and inputs and draw(st.booleans()) else None for _ in made]
        outputs = tuple(
            ValueSpec(output, 0 if view and alias is None else draw(SIZES), alias) for output, alias in zip(made, aliases, strict=True)
        )
        work = Work(None if view else draw(COSTS), draw(COSTS), draw(st.none() | SIZES))
        workspace = 0 if view else draw(SIZES)
        kind = draw(st.sampled_from(["operation", "Conv", ""]))
        specs.append(OperationSpec(name, kind, inputs, outputs, workspace, work, view, draw(st.booleans()), draw(st.booleans())))
        values.extend(made)
    kept = draw(st.lists(st.sampled_from(values), max_size=3, unique=True)) if values else []
    return assemble(draw(st.text(st.characters(codec="utf-8"), max_size=5)), specs, kept, draw(st.dictionaries(NAMES, SIZES, max_size=3)))


@settings(deadline=None, max_examples=150)
@given(graphs())
def test_what_is_written_reads_back_equal_and_follows_the_schema(graph: Graph) -> None:
    text = json_text(render_graph(graph, None))
    VALIDATOR.validate(json.loads(text))
    assert parse_graph(parse_json(text.encode(), "g.json"), "g.json") == graph
    assert json_text(render_graph(parse_graph(json.loads(text), "g.json"))) == text


def test_given_costs_are_stated_and_views_have_none() -> None:
    graph = parse_graph(document({"name": "a", "bytes": 1}, {"name": "v", "inputs": ["a"], "alias_of": "a"}), "g.json")
    rendered = render_graph(graph, unit_costs(graph))
    assert [operation.work.cost for operation in parse_graph(rendered, "g.json").operations] == [1.0, None]
    assert rendered["comment"] == "costs: unit, in operations"


A = {"name": "a", "bytes": 1}

HOSTILE: dict[str, tuple[object, str]] = {
    "not an object": ([A], "g.json: expected an object {...}, found a list"),
    "null": (None, "g.json: expected an object {...}, found null"),
    "no format": ({"operations": [A]}, "g.json: the key 'format' is missing"),
    "another format": (
        {"format": "checkmate-schedule", "version": 1},
        "g.json: format: expected 'checkmate-graph', found 'checkmate-schedule': this is another kind of file",
    ),
    "newer version": (
        document(A, version=2),
        "g.json: version: the file has version 2, but this checkmate reads versions up to 1: update checkmate",
    ),
    "version true": (document(A, version=True), "g.json: version: expected a number, found true"),
    "no operations": ({"format": "checkmate-graph", "version": 1}, "g.json: the key 'operations' is missing"),
    "empty": (document(), "g.json: operations: the graph has no operations"),
    "operations object": ({**document(), "operations": {"a": 1}}, "g.json: operations: expected a list [...], found an object"),
    "operation text": (document("a"), "g.json: operations[0]: expected an object {...}, found the text 'a'"),  # type: ignore[arg-type]
    "misspelt key": (document({"name": "a", "byte": 1}), "g.json: operations[0]: unknown key 'byte'; did you mean 'bytes'?"),
    "misspelt top key": (document(A, output=["a"]), "g.json: unknown key 'output'; did you mean 'outputs'?"),
    "no size": (
        document({"name": "a"}),
        "g.json: operations[0]: needs 'bytes' (one output with the name of the operation) or a list of 'outputs'",
    ),
    "no name": (document({"bytes": 1}), "g.json: operations[0]: the key 'name' is missing"),
    "empty name": (document({"name": "", "bytes": 1}), "g.json: operations[0].name: a name cannot be empty"),
    "both forms": (
        document({"name": "a", "bytes": 1, "outputs": []}),
        "g.json: operations[0]: has both 'outputs' and 'bytes'; use only one: 'bytes' is short for a single output "
        "with the name of the operation",
    ),
    "negative bytes": (
        document(A, {"name": "b", "outputs": [{"name": "y", "bytes": -1}]}),
        "g.json: operations[1].outputs[0].bytes: -1 is negative",
    ),
    "negative cost": (document({**A, "cost": -0.5}), "g.json: operations[0].cost: -0.5 is negative"),
    "negative fixed": (document(A, fixed={"parameters": -4}), "g.json: fixed.parameters: -4 is negative"),
    "half a byte": (document({"name": "a", "bytes": 1.5}), "g.json: operations[0].bytes: 1.5 is not a whole number"),
    "text for bytes": (document({"name": "a", "bytes": "4"}), "g.json: operations[0].bytes: expected a number, found the text '4'"),
    "true for bytes": (document({"name": "a", "bytes": True}), "g.json: operations[0].bytes: expected a number, found true"),
    "1 for true": (document({**A, "pinned": 1}), "g.json: operations[0].pinned: expected true or false, found the number 1"),
    "huge bytes": (document({"name": "a", "bytes": 10**30}), "g.json: operations[0].bytes: 1e+30 bytes is larger than any memory"),
    "huge float bytes": (document({"name": "a", "bytes": 1e300}), "g.json: operations[0].bytes: 1e+300 bytes is larger than any memory"),
    "huge cost": (document({**A, "cost": 1e31}), "g.json: cost of operation 'a' is larger than 1e30"),
    "null cost": (document({**A, "cost": None}), "g.json: operations[0].cost: expected a number, found null"),
    "duplicate operation": (document(A, A), "g.json: operation 'a' is defined twice: operation names must be unique"),
    "duplicate value": (
        document(A, {"name": "b", "outputs": [{"name": "a", "bytes": 1}]}),
        "g.json: value 'a' is made twice, by 'a' and by 'b': value names must be unique",
    ),
    "dangling input": (document({"name": "b", "inputs": ["x"], "bytes": 1}), "g.json: operation 'b' reads 'x', which no operation makes"),
    "dangling output": (document(A, outputs=["x"]), "g.json: no operation makes the graph output 'x'"),
    "dangling alias": (
        document(A, {"name": "v", "alias_of": "a"}),
        "g.json: value 'v' is an alias of 'a', which is not an input of its operation 'v'",
    ),
    "cycle": (
        document({"name": "a", "inputs": ["b"], "bytes": 1}, {"name": "b", "inputs": ["a"], "bytes": 1}),
        "g.json: the graph has a cycle: 'a' -> 'b' -> 'a'",
    ),
    "self loop": (document({"name": "a", "inputs": ["a"], "bytes": 1}), "g.json: the graph has a cycle: 'a' -> 'a'"),
    "half a view": (
        document(A, {"name": "v", "inputs": ["a"], "outputs": [{"name": "x", "alias_of": "a"}, {"name": "y", "bytes": 1}]}),
        "g.json: operation 'v' makes the alias 'x' but is not a view",
    ),
    "view with bytes": (document({"name": "v", "view": True, "bytes": 1}), "g.json: operation 'v' is a view, but its output 'v' has bytes"),
    "view with cost": (document({"name": "v", "view": True, "cost": 1}), "g.json: operation 'v' is a view: it cannot have a cost"),
    "half a surrogate": (document({"name": "\ud800", "bytes": 1}), "g.json: operations[0].name: '\\ud800' has a lone surrogate"),
    "input number": (document({**A, "inputs": [3]}), "g.json: operations[0].inputs[0]: expected text, found the number 3"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_graphs_get_one_clear_line(case: str) -> None:
    hostile, message = HOSTILE[case]
    with pytest.raises(InputError) as caught:
        parse_graph(hostile, "g.json")
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


BEYOND_THE_SCHEMA = {
    *("duplicate operation", "duplicate value", "dangling input", "dangling output", "dangling alias", "cycle", "self loop"),
    *("half a view", "view with bytes", "view with cost", "half a surrogate"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_the_schema_refuses_what_a_schema_can(case: str) -> None:
    assert VALIDATOR.is_valid(HOSTILE[case][0]) == (case in BEYOND_THE_SCHEMA)


def test_messages_stay_short_and_on_one_line_whatever_the_names() -> None:
    name = "line\n" * 10_000
    for hostile in (document({"name": name, "bytes": 1}, {"name": name, "bytes": 1}), document({**A, name: 1})):
        with pytest.raises(InputError) as caught:
            parse_graph(hostile, "g.json")
        assert "\n" not in str(caught.value)
        assert len(str(caught.value)) < 500


def test_ten_thousand_operations_are_read() -> None:
    chain = [{"name": f"n{index}", "inputs": [f"n{index - 1}"] if index else [], "bytes": index} for index in range(10_000)]
    graph = parse_graph(document(*reversed(chain)), "g.json")
    assert [operation.name for operation in graph.operations[:2]] == ["n0", "n1"]
