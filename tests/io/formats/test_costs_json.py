"""Measured costs from a file."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from checkmate.core.errors import InputError
from checkmate.io.formats.costs_json import CostsFile, match_costs, parse_costs, read_costs, render_costs
from checkmate.io.formats.graph_json import parse_graph

GRAPH = parse_graph(
    {
        "format": "checkmate-graph",
        "version": 1,
        "operations": [
            {"name": "conv1", "bytes": 4, "workspace": 7},
            {"name": "flat", "inputs": ["conv1"], "alias_of": "conv1"},
            {"name": "gemm", "inputs": ["flat"], "bytes": 4, "workspace": 9},
        ],
    },
    "g.json",
)
FULL: dict[str, Any] = {
    "format": "checkmate-costs",
    "version": 1,
    "unit": "ms",
    "costs": {"conv1": 1.5, "gemm": 2},
    "workspace": {"conv1": 100},
}
SCHEMA = json.loads(files("checkmate.io.schemas").joinpath("costs.schema.json").read_text())


def test_a_file_prices_the_graph_and_brings_workspaces(tmp_path: Path) -> None:
    (tmp_path / "costs.json").write_text(json.dumps(FULL))
    graph, costs = match_costs(GRAPH, read_costs(tmp_path / "costs.json"))
    assert (costs.unit, costs.amounts) == ("ms", (1.5, 0.0, 2.0))
    assert costs.sources == ("measured", "view", "measured")
    assert [operation.workspace for operation in graph.operations] == [100, 0, 9]


def test_a_plain_object_will_do() -> None:
    file = parse_costs({"conv1": 1, "flat": 0.1, "gemm": 2}, "costs.json")
    graph, costs = match_costs(GRAPH, file)
    assert (costs.unit, costs.amounts) == ("s", (1.0, 0.0, 2.0))
    assert graph == GRAPH


@pytest.mark.parametrize("document", [FULL, {"conv1": 1, "gemm": 2.5}])
def test_files_follow_the_schema_and_round_trip(document: dict[str, Any]) -> None:
    jsonschema.Draft202012Validator(SCHEMA).validate(document)
    file = parse_costs(document, "costs.json")
    rendered = render_costs(file)
    jsonschema.Draft202012Validator(SCHEMA).validate(rendered)
    assert parse_costs(rendered, "costs.json") == file


HOSTILE: dict[str, tuple[object, str]] = {
    "list": ([1], "c.json: expected an object {...}, found a list"),
    "nothing": ({}, "c.json: it contains no costs"),
    "negative": ({"conv1": -1}, "c.json: conv1: -1 is negative"),
    "text": ({"conv1": "1"}, "c.json: conv1: expected a number, found the text '1'"),
    "true": ({"conv1": True}, "c.json: conv1: expected a number, found true"),
    "too large": ({"conv1": 1e300}, "c.json: conv1: 1e+300 is larger than 1e+30"),
    "empty name": ({"": 1}, "c.json: a name cannot be empty"),
    "a graph": ({"format": "checkmate-graph"}, "c.json: format: expected 'checkmate-costs', found 'checkmate-graph'"),
    "newer": (
        {**FULL, "version": 3},
        "c.json: version: the file has version 3, but this checkmate reads versions up to 1: update checkmate",
    ),
    "misspelt": ({**FULL, "workspaces": {}}, "c.json: unknown key 'workspaces'; did you mean 'workspace'?"),
    "no costs": ({"format": "checkmate-costs", "version": 1}, "c.json: the key 'costs' is missing"),
    "half a byte": ({**FULL, "workspace": {"conv1": 0.5}}, "c.json: workspace.conv1: 0.5 is not a whole number"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_files_get_one_clear_line(case: str) -> None:
    hostile, message = HOSTILE[case]
    with pytest.raises(InputError) as caught:
        parse_costs(hostile, "c.json")
    assert str(caught.value).startswith(message)
    assert not jsonschema.Draft202012Validator(SCHEMA).is_valid(hostile)


@pytest.mark.parametrize(
    ("costs", "workspace", "message"),
    [
        ({"conv1": 1, "gem": 1}, {}, "c.json: the graph has no operation 'gem'; did you mean 'gemm'?"),
        ({"conv1": 1, "gemm": 1}, {"conv2": 1}, "c.json: the graph has no operation 'conv2'; did you mean 'conv1'?"),
        ({"conv1": 1}, {}, "the costs file has no cost for operation 'gemm' (operation); add it"),
        ({"conv1": 1, "gemm": 1}, {"flat": 5}, "c.json: workspace of 'flat': this operation is a view and needs no memory; remove it"),
    ],
)
def test_names_must_fit_in_both_directions(costs: dict[str, float], workspace: dict[str, int], message: str) -> None:
    with pytest.raises(InputError) as caught:
        match_costs(GRAPH, CostsFile("c.json", "s", costs, workspace))
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("content", "message"), [(b"", "the file is empty"), (b'{"a": NaN}', "a: NaN is not a number in JSON"), (b'{"a": 1', "truncated")]
)
def test_unreadable_files_get_one_clear_line(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "c.json").write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_costs(tmp_path / "c.json")


def test_a_missing_file_is_said_to_be_missing(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.json: cannot be read: no such file or directory$"):
        read_costs(tmp_path / "none.json")
