"""`checkmate explain`: the peak, what is dropped, what more budget would gain."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from cli_runs import chain_document, interrupted, run, write_uneven_chain
from looked_at_schedules import solved_chain, without_graph
from places import DOCS

DOCUMENTED = (DOCS / "cli.md").read_text(encoding="utf-8")


def test_the_facts_of_the_chain(tmp_path: Path) -> None:
    """Within four bytes it costs 26, within five 22: one byte more is 25 % more."""
    schedule = json.loads(solved_chain(tmp_path).read_text())
    facts = run(tmp_path, "explain", "a.json", "--more", "25%", "--json").json
    assert (facts["format"], facts["status"], facts["cost"], facts["ideal_cost"]) == ("checkmate-explain", "ok", 26, 17)
    peak = facts["peak"]
    assert (
        peak["bytes"] == schedule["peak_bytes"] == peak["fixed_bytes"] + peak["workspace_bytes"] + sum(v["bytes"] for v in peak["values"])
    )
    assert {value["role"] for value in peak["values"]} <= {"input", "output", "held"}
    assert len(facts["dropped"]) == 5
    for dropped in facts["dropped"]:
        assert dropped["repeats"] == schedule["recomputations"][dropped["operation"]]
        assert dropped["over_budget_if_kept_bytes"] == max(0, dropped["peak_if_kept_bytes"] - 4)
        assert dropped["cost_if_kept"] <= 26 - dropped["cost"]
    assert any(dropped["over_budget_if_kept_bytes"] for dropped in facts["dropped"])
    larger = facts["larger_budget"]
    solved = run(tmp_path, "solve", "chain.json", "--budget", "5", "--json").json
    assert (larger["budget_bytes"], larger["cost"], larger["gain"]) == (5, solved["cost"], 26 - solved["cost"])
    assert larger["gain"] > 0
    keys = {*facts, *peak, *facts["dropped"][0], *larger} - {"format", "version"}
    assert [key for key in sorted(keys) if f"`{key}`" not in DOCUMENTED] == []


def test_in_words(tmp_path: Path) -> None:
    solved_chain(tmp_path)
    ran = run(tmp_path, "explain", "a.json", "--no-solve")
    assert ran.code == 0
    assert [line for line in ran.out.splitlines() if not line.startswith(" ")] == [
        "Why the peak is where it is",
        "What is dropped and recomputed",
        "How far from optimal it can be",
    ]
    text = " ".join(ran.out.split())
    assert "The peak of 4 bytes is at operation" in text
    assert "9 recomputations in total; this costs 9, +52.94 % over the ideal cost" in text
    assert "1 B over the budget" in text
    assert max(map(len, ran.out.splitlines())) <= 100
    more = " ".join(run(tmp_path, "explain", "a.json", "--more", "25%").out.split())
    assert "What 25 % more budget would gain With 5 bytes a schedule costs" in more
    assert run(tmp_path, "explain", "a.json", "--no-solve", "-q").out == ""


def test_where_nothing_is_recomputed_nothing_is_dropped_or_gained(tmp_path: Path) -> None:
    solved_chain(tmp_path, budget="100%", strategy="keep-all")
    text = run(tmp_path, "explain", "a.json").out
    assert "Nothing: every operation is computed once" in text
    assert "Nothing: every operation is already computed only once" in text


def test_what_is_always_there_and_what_waits_is_named(tmp_path: Path) -> None:
    document = chain_document(3) | {"fixed": {"parameters": 70, "inputs": 20}}
    document["operations"][3] |= {"workspace": 500, "kind": "Conv"}
    (tmp_path / "chain.json").write_text(json.dumps(document))
    assert run(tmp_path, "solve", "chain.json", "--budget", "100%", "--reserve", "10", "-o", "a.json").code == 0
    text = " ".join(run(tmp_path, "explain", "a.json", "--no-solve").out.split())
    assert "is at operation 'op3' (Conv), computation 4 of 7" in text
    assert "100 B of the peak are fixed memory, in every schedule: 70 B parameters, 20 B inputs, 10 B reserve." in text
    assert "The operation itself needs 502 B: 1 B of inputs, 1 B of outputs, 500 B of workspace." in text
    assert "2 other values, 2 B in total, kept for later operations; the largest: 'op0' (1 B, for 'op6'); 'op1' (1 B, for 'op5')." in text


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["a.json", "--more", "8GB"], "expected a percentage"),
        (["a.json", "--more", "0%"], "above 0"),
        (["bare.json"], "--graph"),
        (["chain.json"], "expected 'checkmate-schedule'"),
    ],
)
def test_bad_requests_are_one_line(tmp_path: Path, arguments: list[str], words: str) -> None:
    solved_chain(tmp_path, "bare.json")
    without_graph(tmp_path / "bare.json")
    solved_chain(tmp_path)
    ran = run(tmp_path, "explain", *arguments)
    assert ran.code == 2
    assert words in ran.err
    assert ran.err.count("\n") == 1


def test_a_share_of_few_bytes_is_at_least_one_more(tmp_path: Path) -> None:
    solved_chain(tmp_path)
    larger = run(tmp_path, "explain", "a.json", "--json").json["larger_budget"]
    assert (larger["budget_bytes"], larger["cost"]) == (5, 22)


def test_where_nothing_more_can_be_gained_that_is_said(tmp_path: Path) -> None:
    """A tenth more is not enough for one value more, and the schedule is optimal."""
    document = chain_document(3)
    for operation in document["operations"]:
        operation["bytes"] = 100
    (tmp_path / "chain.json").write_text(json.dumps(document))
    assert run(tmp_path, "solve", "chain.json", "--budget", "400", "--strategy", "optimal", "-o", "a.json").code == 0
    text = " ".join(run(tmp_path, "explain", "a.json").out.split())
    assert re.search(r"Nothing: it is proven that with 440 bytes no schedule( in this order)? costs less than this one", text)


@pytest.mark.slow
def test_ctrl_c_still_explains(tmp_path: Path) -> None:
    write_uneven_chain(tmp_path)
    assert run(tmp_path, "solve", "chain.json", "--budget", "40%", "--strategy", "chen-greedy", "-o", "a.json").code == 0
    ran = interrupted(tmp_path, lambda line: "best" in line, "explain", "a.json", "--time-limit", "10m")
    assert ran.code == 130
    assert "best schedule found so far" in ran.err
    assert "What 10 % more budget would gain" in ran.out
