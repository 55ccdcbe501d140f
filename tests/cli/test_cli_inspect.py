"""`checkmate inspect` and the drawing of memory over time."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_runs import run, write_chain

from checkmate.cli.output.timeline import draw_timeline, legend

GRAPH = {
    "format": "checkmate-graph",
    "version": 1,
    "name": "small",
    "fixed": {"parameters": 100, "inputs": 20},
    "outputs": ["loss"],
    "operations": [
        {
            "name": "conv",
            "kind": "Conv",
            "outputs": [{"name": "features", "bytes": 5000}],
            "workspace": 70,
            "flops": 4000,
            "moved_bytes": 9,
        },
        {"name": "flat", "kind": "Reshape", "inputs": ["features"], "alias_of": "features"},
        {"name": "tanh", "kind": "Tanh", "inputs": ["flat"], "bytes": 3000},
        {"name": "mean", "kind": "ReduceMean", "inputs": ["tanh"], "bytes": 40},
        {"name": "loss", "kind": "Add", "inputs": ["mean", "features"], "bytes": 4, "pinned": True},
    ],
}


def write_graph(folder: Path) -> None:
    (folder / "g.json").write_text(json.dumps(GRAPH))


def test_the_object_says_what_a_calculation_by_hand_says(tmp_path: Path) -> None:
    write_graph(tmp_path)
    found = run(tmp_path, "inspect", "g.json", "--costs", "flops", "--costs-table", "--json", "--reserve", "7").json
    assert (found["operations"], found["values"], found["views"], found["pinned"]) == (5, 5, 1, 1)
    assert found["bytes"] == {"fixed": {"parameters": 100, "inputs": 20}, "reserve": 7, "computed": 8044, "largest_workspace": 70}
    assert found["timeline"] == [127 + 5070, 127 + 8000, 127 + 8040, 127 + 5044]
    assert (found["keep_all_peak_bytes"], found["keep_all_peak_operation"]) == (8167, "mean")
    assert (found["smallest_budget_bytes"], found["binding_operation"]) == (8127, "tanh")
    assert found["largest_values"][0] == {"name": "features", "bytes": 5000, "operation": "conv", "kind": "Conv", "first": 0, "last": 3}
    assert [value["name"] for value in found["largest_values"]] == ["features", "tanh", "mean", "loss"]
    costs = {entry["name"]: (entry["cost"], entry["source"]) for entry in found["operation_costs"]}
    assert costs["conv"] == (4000, "flops")
    assert costs["flat"] == (0, "view")
    assert costs["mean"] == (3040, "bytes moved")
    assert found["costs"]["sources"]["flops"] == {"operations": 1, "cost": 4000}


def test_the_text_says_the_same(tmp_path: Path) -> None:
    write_graph(tmp_path)
    out = run(tmp_path, "inspect", "g.json", "--costs", "flops").out
    for words in ("8.16 kB (8160 bytes)", "8.12 kB (8120 bytes)", "'tanh'", "1 views, 1 pinned", "1-4", "parameters", "fixed"):
        assert words in out
    assert "bytes moved" in run(tmp_path, "inspect", "g.json", "--costs", "flops", "-v").out


def test_costs_of_the_file_are_the_default_if_it_has_any(tmp_path: Path) -> None:
    write_graph(tmp_path)
    write_chain(tmp_path)
    assert run(tmp_path, "inspect", "g.json", "--json").json["costs"]["model"].startswith("roofline")
    assert run(tmp_path, "inspect", "chain.json", "--json").json["costs"]["model"] == "given"


def test_a_graph_of_views_alone_can_be_inspected(tmp_path: Path) -> None:
    document = {"format": "checkmate-graph", "version": 1, "operations": [{"name": "v", "view": True}], "outputs": ["v"]}
    (tmp_path / "g.json").write_text(json.dumps(document))
    ran = run(tmp_path, "inspect", "g.json")
    assert ran.code == 0, ran.err
    assert run(tmp_path, "inspect", "g.json", "--json").json["timeline"] == []


def test_an_ascii_terminal_gets_ascii(tmp_path: Path) -> None:
    document = dict(GRAPH, name="h\u00fclle \U0001f600", operations=[{"name": "\u00e9 \x1b[31m", "bytes": 3, "cost": 1}], outputs=[])
    (tmp_path / "g.json").write_text(json.dumps(document))
    ran = run(tmp_path, "inspect", "g.json", encoding="ascii")
    assert ran.code == 0, ran.err
    assert "##" in ran.out
    assert "\x1b" not in ran.out
    assert "█" in run(tmp_path, "inspect", "g.json").out


def test_a_drawing() -> None:
    assert draw_timeline([1, 2, 4, 3], 1, width=8, height=4) == [
        "4 B ┤    ██",
        "    │    ████",
        "2 B ┤  ██████",
        "    │░░░░░░░░",
        "0 B └────────",
        "     1operation4",
    ]
    assert draw_timeline([1, 2, 4, 3], 0, width=4, height=2, unicode=False) == [
        "4 B +  ##",
        "2 B +####",
        "0 B +----",
        "     1operation4",
    ]


@pytest.mark.parametrize("spike", [0, 4711, 9999])
def test_no_peak_is_lost_among_many_operations(spike: int) -> None:
    memory = [10] * 10_000
    memory[spike] = 1000
    drawing = draw_timeline(memory, 0)
    assert drawing[0].count("█") == 1
    assert max(map(len, drawing)) <= 80


def test_an_empty_memory_is_drawn_empty() -> None:
    assert "█" not in "".join(draw_timeline([0, 0], 0))
    assert legend(0) == ""
