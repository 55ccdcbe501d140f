"""`checkmate diff`: two schedules of one graph, known differences, exit codes."""

from __future__ import annotations

import json
from pathlib import Path

from cli_runs import chain_document, run
from looked_at_schedules import changed, solved_chain, without_graph
from places import DOCS

DOCUMENTED = (DOCS / "cli.md").read_text(encoding="utf-8")


def pair(folder: Path) -> None:
    """26 within four bytes, and what without recomputation costs: 17."""
    solved_chain(folder, "a.json", "4")
    solved_chain(folder, "b.json", "100%")


def test_what_differs_and_what_that_changes(tmp_path: Path) -> None:
    pair(tmp_path)
    facts = run(tmp_path, "diff", "a.json", "b.json", "--json").json
    assert (facts["format"], facts["status"]) == ("checkmate-diff", "different")
    one, other = facts["schedules"]
    assert (one["cost"], one["peak_bytes"], one["recomputed"]) == (26, 4, 9)
    assert (other["cost"], other["recomputed"]) == (17, 0)
    assert sum(entry["cost_change"] for entry in facts["recomputations"]) == -9
    assert sum(entry["first"] - entry["second"] for entry in facts["recomputations"]) == 9
    assert facts["moved"] == []
    largest = facts["memory"][0]
    assert largest["second_bytes"] - largest["first_bytes"] == len(largest["only_second"]) - len(largest["only_first"]) > 0
    assert [key for key in facts.keys() - {"format", "version"} if f"`{key}`" not in DOCUMENTED] == []


def test_in_words(tmp_path: Path) -> None:
    pair(tmp_path)
    out = run(tmp_path, "diff", "a.json", "b.json").out
    assert "more memory, 9 (34.62 %) cheaper" in out
    assert "Where memory differs most" in out
    back = run(tmp_path, "diff", "b.json", "a.json").out
    assert "less memory, 9 (52.94 %) more expensive" in back
    assert "recomputed more often" in back
    assert "the same steps" in run(tmp_path, "diff", "a.json", "a.json").out


def test_the_exit_code_tells_only_if_asked(tmp_path: Path) -> None:
    pair(tmp_path)
    assert run(tmp_path, "diff", "a.json", "b.json").code == 0
    assert run(tmp_path, "diff", "a.json", "b.json", "--exit-code", "-q").code == 7
    assert run(tmp_path, "diff", "a.json", "a.json", "--exit-code").code == 0


def test_another_order_is_told(tmp_path: Path) -> None:
    """Three that do not depend on one another, and one that reads them all: computed as given, and the first of them last."""
    operations = [{"name": name, "bytes": size, "cost": 1} for name, size in (("x", 3), ("y", 2), ("z", 1))]
    operations.append({"name": "end", "inputs": ["x", "y", "z"], "bytes": 1, "cost": 1})
    document = {"format": "checkmate-graph", "version": 1, "outputs": ["end"], "operations": operations}
    (tmp_path / "g.json").write_text(json.dumps(document))
    assert run(tmp_path, "solve", "g.json", "--budget", "100%", "--strategy", "keep-all", "-o", "a.json").code == 0
    other = json.loads((tmp_path / "a.json").read_text())
    other["steps"][:3] = [other["steps"][index] for index in (1, 2, 0)]
    other["plan"] = {"stages": [["y"], ["z"], ["x"], ["end"]], "kept": [["x", 3, 3], ["y", 1, 3], ["z", 2, 3]]}
    (tmp_path / "b.json").write_text(json.dumps(other))
    facts = run(tmp_path, "diff", "a.json", "b.json", "--json").json
    assert facts["moved"] == ["x"]
    assert facts["recomputations"] == []
    assert "1 operation moved" in run(tmp_path, "diff", "a.json", "b.json").out


def test_schedules_of_different_graphs_are_one_line(tmp_path: Path) -> None:
    solved_chain(tmp_path, "b.json", layers=4)
    solved_chain(tmp_path, "a.json")
    ran = run(tmp_path, "diff", "a.json", "b.json")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("error: b.json: this schedule belongs to another graph, 'chain' with 9 operations")
    assert ran.err.count("\n") == 1


def test_the_graph_of_one_will_do_for_both(tmp_path: Path) -> None:
    pair(tmp_path)
    without_graph(tmp_path / "a.json")
    assert run(tmp_path, "diff", "a.json", "b.json").code == 0
    without_graph(tmp_path / "b.json")
    assert "--graph" in run(tmp_path, "diff", "a.json", "b.json").err
    assert run(tmp_path, "diff", "a.json", "b.json", "--graph", "chain.json").code == 0
    assert "only one" in run(tmp_path, "diff", "-", "b.json", "--graph", "-").err


def test_other_costs_are_noted_and_both_priced_alike(tmp_path: Path) -> None:
    pair(tmp_path)
    document = chain_document(8)
    for operation in document["operations"]:
        operation["cost"] = 2
    (tmp_path / "chain.json").write_text(json.dumps(document))
    assert run(tmp_path, "solve", "chain.json", "--budget", "100%", "--strategy", "keep-all", "-o", "b.json").code == 0
    ran = run(tmp_path, "diff", "a.json", "b.json", "--json")
    assert ran.json["schedules"][1]["cost"] == 17
    assert "priced with the costs in a.json" in ran.err


def test_a_schedule_that_does_not_hold_is_exit_6(tmp_path: Path) -> None:
    pair(tmp_path)
    changed(tmp_path / "b.json", lambda document: document["steps"].pop(0))
    assert run(tmp_path, "diff", "a.json", "b.json").code == 6
