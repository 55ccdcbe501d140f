"""`checkmate verify` and `checkmate convert`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cli_runs import Ran, chain_document, files_in, run, write_chain

Document = dict[str, Any]


@pytest.fixture
def solved(tmp_path: Path) -> Path:
    write_chain(tmp_path, layers=4)
    assert run(tmp_path, "solve", "chain.json", "--budget", "5", "--strategy", "last-node", "-o", "s.json", "-q").code == 0
    return tmp_path


def changed(folder: Path, change: Callable[[Document], object]) -> Ran:
    document = json.loads((folder / "s.json").read_text())
    change(document)
    (folder / "t.json").write_text(json.dumps(document))
    return run(folder, "verify", "chain.json", "t.json", "--json")


def test_a_good_schedule_passes(solved: Path) -> None:
    ran = run(solved, "verify", "chain.json", "s.json")
    assert ran.code == 0
    assert ran.out.startswith("verdict   passed\n")
    found = run(solved, "verify", "chain.json", "s.json", "--json").json
    assert (found["status"], found["violations"], found["peak_bytes"], found["budget_bytes"]) == ("passed", [], 3, 5)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda document: document["steps"].pop(0), ["step 0", "'op0' is not in memory"]),
        (lambda document: document["steps"].append(["free", "op8"]), ["graph output 'op8' is not in memory at the end"]),
        (lambda document: document.update(peak_bytes=4), ["the peak is 3 bytes, but 4 was claimed"]),
        (lambda document: document.update(cost=9.0), ["9.0 was claimed"]),
        (lambda document: document.update(budget_bytes=2), ["exceeds the budget of 2 bytes"]),
        (lambda document: document.update(keep_all_peak_bytes=7), ["7 was claimed"]),
        (lambda document: document.update(bound=1e6), ["the bound 1000000.0 is above the cost"]),
        (lambda document: document.update(recomputed=0), ["'recomputed'"]),
        (lambda document: document["costs"].update(amounts=[0.5] * 9), ["'ideal_cost'"]),
    ],
)
def test_each_lie_is_found_and_named(solved: Path, change: Callable[[Document], object], words: list[str]) -> None:
    ran = changed(solved, change)
    assert ran.code == 6
    assert ran.json["status"] == "failed"
    text = "\n".join(ran.json["violations"])
    assert [word for word in words if word not in text] == []


def test_violations_are_listed_and_the_code_is_6(solved: Path) -> None:
    ran = run(solved, "verify", "chain.json", "s.json", "--budget", "2")
    assert ran.code == 6
    assert "failed" in ran.out
    assert "1. the peak of 3 bytes exceeds the budget of 2 bytes by 1" in ran.out
    assert run(solved, "verify", "chain.json", "s.json", "--budget", "2", "-q") == Ran(6, "", "")


def test_a_share_of_keeping_everything_can_be_asked_for(solved: Path) -> None:
    assert run(solved, "verify", "chain.json", "s.json", "--budget", "50%").code == 0
    assert run(solved, "verify", "chain.json", "s.json", "--budget", "49%").code == 6


def test_costs_the_graph_states_are_believed_over_those_in_the_schedule(solved: Path) -> None:
    document = json.loads((solved / "chain.json").read_text())
    document["operations"][0]["cost"] = 5
    (solved / "chain.json").write_text(json.dumps(document))
    ran = run(solved, "verify", "chain.json", "s.json")
    assert ran.code == 6
    assert "was claimed" in ran.out
    assert run(solved, "verify", "chain.json", "s.json", "--costs", "unit").code == 0


def test_a_pinned_operation_that_runs_twice_is_a_violation(solved: Path) -> None:
    ran = run(solved, "verify", "chain.json", "s.json", "--pin", "op0")
    assert ran.code == 6
    assert "'op0' is computed" in ran.out


def test_the_schedule_of_another_graph_is_bad_input(solved: Path) -> None:
    write_chain(solved, layers=3, name="other.json")
    ran = run(solved, "verify", "other.json", "s.json")
    assert ran.code == 2
    assert "another graph" in ran.err


def test_two_things_cannot_both_be_stdin(tmp_path: Path) -> None:
    ran = run(tmp_path, "verify", "-", "-")
    assert ran.code == 2
    assert "stdin" in ran.err


def test_convert_writes_what_it_read_with_the_costs_asked_for(tmp_path: Path) -> None:
    write_chain(tmp_path, layers=2)
    assert "wrote out.json (5 operations, 5 values, costs: given)" in run(tmp_path, "convert", "chain.json", "out.json").out
    again = json.loads((tmp_path / "out.json").read_text())
    assert [operation["name"] for operation in again["operations"]] == [f"op{number}" for number in range(5)]
    ran = run(tmp_path, "convert", "chain.json", "-", "--costs", "flops")
    assert [operation["cost"] for operation in ran.json["operations"]] == [1, 2, 2, 3, 3]
    assert run(tmp_path, "convert", "chain.json", "b.json", "--json").json["outputs"] == ["b.json"]
    assert run(tmp_path, "convert", "chain.json", "-", "--json").code == 2


def test_convert_reads_node_link_json_from_stdin(tmp_path: Path) -> None:
    nodes = [{"id": index, "cost_cpu": 2, "cost_ram": 3, "backward": False} for index in range(3)]
    document = {
        "directed": True,
        "multigraph": False,
        "graph": {},
        "nodes": nodes,
        "links": [{"source": 0, "target": 1}, {"source": 1, "target": 2}],
    }
    ran = run(tmp_path, "convert", "-", "-", stdin=json.dumps(document).encode())
    assert ran.code == 0, ran.err
    assert [(operation["bytes"], operation["cost"]) for operation in ran.json["operations"]] == [(3, 2)] * 3


def test_convert_never_overwrites_its_input(tmp_path: Path) -> None:
    write_chain(tmp_path)
    assert run(tmp_path, "convert", "chain.json", "chain.json").code == 2
    assert json.loads((tmp_path / "chain.json").read_text()) == chain_document(8)
    assert files_in(tmp_path) == {"chain.json"}


def test_what_is_claimed_and_cannot_be_checked_is_said(tmp_path: Path) -> None:
    """A bound that nobody proved passes, as long as it is not above the cost: the verifier says that it did not check it."""
    write_chain(tmp_path)
    assert run(tmp_path, "solve", "chain.json", "--budget", "6", "--strategy", "chen-greedy", "-o", "s.json").code == 0
    plain = run(tmp_path, "verify", "chain.json", "s.json", "--json").json
    assert plain["unchecked"] == [], "its bound is the ideal cost, and its costs are those of the graph"
    document = json.loads((tmp_path / "s.json").read_text())
    claimed = document["cost"] - 0.5
    document |= {"bound": claimed, "gap": (document["cost"] - claimed) / document["cost"], "status": "optimal"}
    (tmp_path / "s.json").write_text(json.dumps(document))
    checked = run(tmp_path, "verify", "chain.json", "s.json", "--json")
    assert (checked.code, checked.json["status"]) == (0, "passed")
    assert [claim.partition(":")[0] for claim in checked.json["unchecked"]] == [f"the bound {claimed:.6g} and the status 'optimal'"]
    assert "not checked" in run(tmp_path, "verify", "chain.json", "s.json").out
