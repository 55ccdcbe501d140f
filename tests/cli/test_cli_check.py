"""`checkmate check`: what counts as worse than the baseline, and what it exits with."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cli_runs import Ran, run, write_chain


@pytest.fixture(scope="module")
def solved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two schedules and their baseline, alike."""
    folder = tmp_path_factory.mktemp("solved")
    write_chain(folder, layers=6)
    for name, budget in (("a", "70%"), ("b", "60%")):
        assert run(folder, "solve", "chain.json", "--budget", budget, "--strategy", "optimal", "-o", f"now/{name}", "-q").code == 0
    shutil.copytree(folder / "now", folder / "before")
    return folder


@pytest.fixture
def folder(solved: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(solved, tmp_path, dirs_exist_ok=True))


def check(folder: Path, *arguments: str) -> Ran:
    return run(folder, "check", "now", "--against", "before", *arguments)


def solve(folder: Path, strategy: str, *arguments: str) -> None:
    """Schedule `a` anew."""
    assert run(folder, "solve", "chain.json", "--budget", "70%", "--strategy", strategy, "-o", "now/a", "-q", *arguments).code == 0


def edited(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))


def test_equal_schedules_pass(folder: Path) -> None:
    ran = check(folder)
    assert ran.code == 0
    assert "all as good as the baseline" in ran.out
    fields = check(folder, "--json").json
    assert fields["status"] == "passed"
    assert [(found["name"], found["verdict"]) for found in fields["schedules"]] == [("a", "same"), ("b", "same")]


def test_a_dearer_schedule_is_worse_unless_within_the_tolerance(folder: Path) -> None:
    solve(folder, "last-node")
    ran = check(folder, "--json")
    assert ran.code == 7
    assert ran.json["status"] == "failed"
    worse = ran.json["schedules"][0]
    assert (worse["name"], worse["verdict"]) == ("a", "worse")
    assert worse["schedule"]["cost"] > worse["baseline"]["cost"]
    assert [problem.split()[0] for problem in worse["problems"]] == ["cost", "gap", "no"]
    assert "1 failed" in check(folder).out
    assert check(folder, "--tolerance", "99%").code == 0


def test_a_schedule_of_a_lower_peak_and_the_same_cost_is_better_and_the_other_way_round_worse(folder: Path) -> None:
    """Costs nothing to recompute, so that only memory counts."""
    free = json.loads((folder / "chain.json").read_text())
    for operation in free["operations"]:
        operation["cost"] = 0
    (folder / "chain.json").write_text(json.dumps(free))
    for side, strategy in (("now", "last-node"), ("before", "linearized-greedy")):
        assert run(folder, "solve", "chain.json", "--budget", "70%", "--strategy", strategy, "-o", f"{side}/a", "-q").code == 0
    assert [found["verdict"] for found in check(folder, "--json").json["schedules"]] == ["better", "same"]
    ran = run(folder, "check", "before", "--against", "now", "--json")
    assert (ran.code, ran.json["schedules"][0]["problems"]) == (7, ["peak +66.67 %"])
    assert run(folder, "check", "before", "--against", "now", "--tolerance", "67%").code == 0


def test_a_cheaper_schedule_may_take_more_of_the_budget(folder: Path) -> None:
    solve(folder, "last-node")
    for name in ("a", "b"):
        (folder / "before" / f"{name}.schedule.json").write_bytes((folder / "now" / f"{name}.schedule.json").read_bytes())
    solve(folder, "griewank")
    found = check(folder, "--json").json["schedules"][0]
    assert found["schedule"]["peak_bytes"] > found["baseline"]["peak_bytes"]
    assert found["verdict"] == "better"


def test_missing_is_failing_and_new_is_not(folder: Path) -> None:
    (folder / "now" / "a.schedule.json").rename(folder / "now" / "c.schedule.json")
    ran = check(folder, "--json")
    assert ran.code == 7
    assert {found["name"]: found["verdict"] for found in ran.json["schedules"]} == {"a": "missing", "b": "same", "c": "new"}


@pytest.mark.parametrize(
    "change",
    [
        lambda document: document.update(peak_bytes=1),
        lambda document: document.update(cost=document["cost"] - 1),
        lambda document: document["steps"].pop(3),
        lambda document: document.update(format="other"),
        lambda document: document.pop("plan"),
    ],
)
def test_a_schedule_that_does_not_verify_is_exit_6(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    edited(folder / "now" / "b.schedule.json", change)
    (folder / "now" / "a.schedule.json").unlink()
    ran = check(folder, "--json")
    assert ran.code == 6
    assert [found["verdict"] for found in ran.json["schedules"]] == ["missing", "invalid"]
    assert "b.schedule.json" in ran.json["schedules"][1]["problems"][0]


def test_other_graphs_budgets_and_costs_are_not_compared(folder: Path) -> None:
    def problems() -> list[str]:
        ran = check(folder, "--json")
        assert ran.code == 7
        return list(ran.json["schedules"][0]["problems"])

    solve(folder, "optimal", "--costs", "unit")
    assert "other costs" in problems()[0]
    assert run(folder, "solve", "chain.json", "--budget", "100%", "-o", "now/a", "-q").code == 0
    assert "budget" in problems()[0]
    write_chain(folder, layers=7)
    solve(folder, "optimal")
    assert "graph" in problems()[0]


def test_single_files_and_what_is_not_there(folder: Path) -> None:
    (folder / "before" / "a.schedule.json").rename(folder / "before" / "old.schedule.json")
    assert run(folder, "check", "now/a.schedule.json", "--against", "before/old.schedule.json").code == 0
    assert run(folder, "check", "now", "--against", "nowhere").code == 2
    (folder / "empty").mkdir()
    ran = run(folder, "check", "empty", "--against", "before")
    assert (ran.code, ran.out) == (2, "")
    assert "no schedules" in ran.err
    (folder / "before" / "b.schedule.json").write_text("{")
    assert check(folder).code == 2
