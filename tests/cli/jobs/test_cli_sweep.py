"""`checkmate sweep`: curves that fall, points that are solved once, files in every format, Ctrl-C, workers."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any
from unittest.mock import patch

import jsonschema
import pytest
from cli_runs import Ran, files_in, interrupted, run, started, workers_of, write_chain, write_uneven_chain
from places import DOCS

from checkmate.cli.output.curve_chart import draw_curves
from checkmate.core.baselines import BASELINES

DOCUMENTED = (DOCS / "formats.md").read_text(encoding="utf-8")


def check_schema(name: str, document: object) -> None:
    jsonschema.validate(document, json.loads(files("checkmate.io.schemas").joinpath(f"{name}.schema.json").read_text()))


def rows_of(document: dict[str, Any], strategy: str) -> list[dict[str, Any]]:
    return [row for row in document["rows"] if row["strategy"] == strategy]


def swept(folder: Path, *more: str) -> dict[str, Any]:
    ran = run(folder, "sweep", "chain.json", "--budgets", "20%:100%:10%", "--json", *more)
    assert ran.code == 0, ran.err
    return ran.json


@pytest.mark.slow
def test_the_curve_falls_and_auto_is_never_above_the_heuristics(tmp_path: Path) -> None:
    write_chain(tmp_path, layers=6)
    found = swept(tmp_path)
    check_schema("sweep", found)
    assert found["strategies"] == ["auto", "keep-all", "best-heuristic"]
    for strategy in found["strategies"]:
        rows = rows_of(found, strategy)
        assert [row["budget"] for row in rows if row["budget_bytes"] > 2][-1] == "100%"
        costs = [row["cost"] for row in rows if row["fits"]]
        assert costs == sorted(costs, reverse=True)
        assert costs[-1] == found["ideal_cost"]
        assert all(row["peak_bytes"] <= row["budget_bytes"] for row in rows if row["fits"])
    for auto, heuristic in zip(rows_of(found, "auto"), rows_of(found, "best-heuristic"), strict=True):
        assert not heuristic["fits"] or auto["cost"] <= heuristic["cost"]
        assert heuristic["found_by"] in ("", *BASELINES)
    assert rows_of(found, "auto")[0]["status"] == "infeasible"
    assert "needed" in rows_of(found, "auto")[0]["note"]
    assert {baseline["strategy"] for baseline in found["baselines"]} >= {"keep-all", "last-node", "ap-sqrt"}
    assert [key for key in {*found, *found["rows"][0]} - {"format", "version"} if f"`{key}`" not in DOCUMENTED] == []


@pytest.mark.slow
def test_each_point_is_what_solve_finds(tmp_path: Path) -> None:
    write_chain(tmp_path, layers=6)
    for row in rows_of(swept(tmp_path), "auto"):
        alone = run(tmp_path, "solve", "chain.json", "--budget", str(row["budget_bytes"]), "--json")
        assert (alone.code == 0) == row["fits"]
        assert not row["fits"] or (alone.json["cost"], row["status"]) == (row["cost"], "optimal")


@pytest.mark.slow
def test_a_second_run_solves_nothing_and_says_the_same(tmp_path: Path) -> None:
    write_chain(tmp_path, layers=6)
    first = swept(tmp_path)
    assert first["points"]["solved"] > 0
    check_schema("sweep-points", json.loads((tmp_path / "chain.sweep.points.json").read_text()))
    second = swept(tmp_path)
    assert second["points"]["solved"] == 0
    assert second["points"]["stored"] == first["points"]["solved"]
    same = ("cost", "bound", "peak_bytes", "status", "found_by", "seconds")
    assert [[row[key] for key in same] for row in second["rows"]] == [[row[key] for key in same] for row in first["rows"]]
    assert "points: 0 solved" in run(tmp_path, "sweep", "chain.json", "--budgets", "20%:100%:10%", "-v", "-o", "chain.sweep.json").err
    assert swept(tmp_path, "--fresh")["points"]["solved"] == first["points"]["solved"]


def test_only_what_is_new_is_solved(tmp_path: Path) -> None:
    write_chain(tmp_path, layers=6)
    command = ("sweep", "chain.json", "--strategies", "ap-greedy", "--json", "--budgets")
    first = run(tmp_path, *command, "4,5").json["points"]
    assert run(tmp_path, *command, "4,5,6").json["points"] == {"solved": 1, "stored": first["solved"], "implied": 0, "open": 0}
    for other in (("--gap", "1%"), ("--seed", "1"), ("--reserve", "0"), ("--pin", "op3")):
        expected = 2 if other[0] != "--reserve" else 0
        assert run(tmp_path, *command, "4,5", *other).json["points"]["solved"] == expected, other


def test_a_stored_schedule_is_not_believed(tmp_path: Path) -> None:
    """A sequence of another graph, and one that claims too much: both are solved again."""
    write_chain(tmp_path, layers=6)
    first = swept(tmp_path, "--strategies", "ap-greedy")
    path = tmp_path / "chain.sweep.points.json"
    for spoil in ([0, 1, 2], [99], list(range(12, -1, -1))):
        document = json.loads(path.read_text())
        for entry in document["points"].values():
            entry["sequence"] = spoil
        path.write_text(json.dumps(document))
        again = swept(tmp_path, "--strategies", "ap-greedy")
        assert again["points"]["stored"] == 0
        assert [row["cost"] for row in again["rows"]] == [row["cost"] for row in first["rows"]]


def test_files_by_their_endings(tmp_path: Path) -> None:
    write_chain(tmp_path, layers=4)
    command = ("sweep", "chain.json", "--budgets", "3,4,100%", "--strategies", "keep-all,ap-greedy")
    ran = run(tmp_path, *command, "-o", "a.csv", "-o", "b.json", "-o", "c.svg", "-o", "d.png")
    assert ran.code == 0, ran.err
    assert files_in(tmp_path) == {"chain.json", "a.csv", "b.json", "c.svg", "d.png", "a.points.json"}
    written = json.loads((tmp_path / "b.json").read_text())
    check_schema("sweep", written)
    table = list(csv.DictReader((tmp_path / "a.csv").open()))
    assert [row["budget_bytes"] for row in table] == [str(row["budget_bytes"]) for row in written["rows"]]
    assert list(table[0]) == list(written["rows"][0])
    assert "ap-greedy" in (tmp_path / "c.svg").read_text()
    assert (tmp_path / "d.png").read_bytes().startswith(b"\x89PNG")
    before = (tmp_path / "c.svg").read_bytes()
    run(tmp_path, *command, "-o", "c.svg", "-q")
    assert (tmp_path / "c.svg").read_bytes() == before
    assert run(tmp_path, *command, "-o", "out/", "--json").json["outputs"] == [f"out/chain.sweep.{kind}" for kind in ("json", "csv", "svg")]


def test_what_is_printed(tmp_path: Path) -> None:
    write_chain(tmp_path, layers=4)
    for encoding, mark in (("utf-8", "● auto"), ("ascii", "o auto")):
        ran = run(tmp_path, "sweep", "chain.json", "--budgets", "2,4,100%", encoding=encoding)
        assert ran.code == 0, ran.err
        assert mark in ran.out
    lines = {line.split()[0] + line.split()[1]: line for line in ran.out.splitlines() if len(line.split()) > 2}
    assert lines["2B"].count("nothing fits") == 3
    assert "optimal" in lines["4B"]
    assert "+0.00 %" in lines["6B"]
    assert "linearized-sqrt" in ran.out


def test_evenly_spaced_points_begin_at_the_smallest_budget_that_works(tmp_path: Path) -> None:
    write_chain(tmp_path, layers=6)
    smallest = run(tmp_path, "min-budget", "chain.json", "--json").json["budget_bytes"]
    command = ("sweep", "chain.json", "--points", "3", "--json")
    found = run(tmp_path, *command).json
    auto = rows_of(found, "auto")
    assert [auto[0]["budget_bytes"], auto[-1]["budget_bytes"], len(auto)] == [smallest, found["keep_all_peak_bytes"], 3]
    assert all(row["fits"] for row in auto)
    again = run(tmp_path, *command).json
    assert again["points"]["solved"] == 0
    assert [row["budget_bytes"] for row in again["rows"]] == [row["budget_bytes"] for row in found["rows"]]


@pytest.mark.slow
def test_workers_find_what_one_process_finds(tmp_path: Path) -> None:
    write_chain(tmp_path, layers=5)
    alone, together = (
        swept(tmp_path, "--workers", str(count), "-o", f"{count}.json", "--strategies", "optimal,ap-greedy") for count in (1, 2)
    )
    assert [(row["cost"], row["status"]) for row in together["rows"]] == [(row["cost"], row["status"]) for row in alone["rows"]]
    assert together["points"]["solved"] > 0


def test_a_forward_model_is_differentiated_first(tmp_path: Path) -> None:
    with as_file(files("checkmate.sample_graphs").joinpath("forward.onnx")) as model:
        ran = run(
            *(tmp_path, "sweep", model, "--loss", "cross-entropy", "--batch-size", "4", "--budgets", "60%,100%"),
            *("--strategies", "best-heuristic", "-o", "f.json", "--json"),
        )
    assert ran.json["graph"]["name"] == "forward.train"
    assert ran.json["rows"][-1]["overhead"] == 0.0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--budgets", "30%:20%:5%"], ["--budgets", "ends before it begins"]),
        (["--budgets", "30%:100%"], ["--budgets", "first:last:step"]),
        (["--budgets", "30%:8GB:5%"], ["--budgets", "mixes"]),
        (["--budgets", "0.1%:100%:0.01%"], ["--budgets", "more than 1000"]),
        (["--budgets", "5", "--points", "3"], ["choose one"]),
        (["--strategies", "best-heuristics"], ["did you mean 'best-heuristic'?"]),
        (["--budgets", "5", "-o", "-"], ["--json"]),
        (["--budgets", "5", "-o", "chain.json"], ["overwrite"]),
        (["--budgets", "5", "-o", "a.csv", "-o", "a.points.json"], ["finished points"]),
        (["--budgets", "5", "-o", "b.csv"], ["b.points.json", "move it away"]),
    ],
)
def test_a_bad_command_is_one_line(tmp_path: Path, arguments: list[str], words: list[str]) -> None:
    write_chain(tmp_path)
    (tmp_path / "b.points.json").write_text("{}")
    ran: Ran = run(tmp_path, "sweep", "chain.json", *arguments)
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert [word for word in words if word not in ran.err] == []
    assert files_in(tmp_path) == {"chain.json", "b.points.json"}


def test_without_matplotlib_a_picture_is_refused_and_the_rest_is_written(tmp_path: Path) -> None:
    write_chain(tmp_path, layers=4)
    command = ("sweep", "chain.json", "--budgets", "100%", "--strategies", "keep-all")
    with patch.dict(sys.modules, {"matplotlib": None}), patch("checkmate.io.report.sweep_plot.find_spec", return_value=None):
        ran = run(tmp_path, *command, "-o", "c.png")
        assert (ran.code, ran.err.count("\n")) == (5, 1)
        assert "checkmate-remat[plot]" in ran.err
        assert run(tmp_path, *command).code == 0
    assert files_in(tmp_path) == {"chain.json", "chain.sweep.json", "chain.sweep.csv", "chain.sweep.points.json"}


def is_at_auto(line: str) -> bool:
    return "auto at" in line and "100" not in line and "66 %" in line


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["1", "2"])
def test_ctrl_c_keeps_what_is_finished(tmp_path: Path, workers: str) -> None:
    write_uneven_chain(tmp_path)
    command = ["sweep", "chain.json", "--budgets", "30%,40%,100%", "--strategies", "keep-all,auto", "--time-limit", "10m"]
    ran = interrupted(tmp_path, is_at_auto, *command, "--workers", workers, "--json")
    assert ran.code == 130
    assert "run the same command again to continue" in ran.err
    check_schema("sweep", ran.json)
    assert ran.json["status"] == "interrupted"
    assert [row for row in ran.json["rows"] if (row["origin"] == "open") != (row["note"] == "not solved yet")] == []
    kept = json.loads((tmp_path / "chain.sweep.points.json").read_text())["points"].values()
    assert {entry["strategy"] for entry in kept} >= {"keep-all"}
    assert "interrupted" not in {entry["stop"] for entry in kept}


@pytest.mark.slow
def test_the_second_ctrl_c_says_one_line_and_leaves_nobody_behind(tmp_path: Path) -> None:
    """The pipe closes when the last worker is gone."""
    write_uneven_chain(tmp_path)
    command = ["sweep", "chain.json", "--budgets", "30%,40%,100%", "--strategies", "keep-all,auto", "--time-limit", "10m", "--workers", "2"]
    ran = interrupted(tmp_path, is_at_auto, *command, times=2)
    assert ran.code == 130
    assert ran.err == "error: interrupted; finished points are in chain.sweep.points.json\n"
    assert ran.out == ""


def test_a_worker_that_dies_is_told_and_what_was_finished_stays(tmp_path: Path) -> None:
    write_uneven_chain(tmp_path)
    command = ["sweep", "chain.json", "--budgets", "30%,40%", "--strategies", "ap-sqrt,auto", "--time-limit", "10m", "--workers", "2"]

    def is_killed(line: str, process: subprocess.Popen[str]) -> bool:
        if line.count("auto at") != 2:
            return False
        for worker in workers_of(process.pid):
            with suppress(ProcessLookupError):
                os.kill(worker, signal.SIGKILL)
        return True

    process = started(tmp_path, *command)
    assert process.stderr is not None
    assert any(is_killed(line, process) for line in process.stderr)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 4
    assert err.splitlines()[-1].startswith("error: a worker process died while solving auto")
    assert json.loads((tmp_path / "chain.sweep.points.json").read_text())["points"]


def test_a_chart_says_what_it_hides_and_what_it_cuts_off() -> None:
    lines = draw_curves({"auto": [(10, 0.0), (9, 0.1), (8, 0.2)], "other": [(10, 0.0), (9, 0.3), (8, 9.0)]}, width=40)
    assert max(map(len, lines)) <= 40
    assert "▲ above the scale" in lines[-2] + lines[-1]
    assert "(where marks overlap: first)" in lines[-1]
    assert sum(line.count("▲") for line in lines[:-2]) == 1
    flat = draw_curves({"auto": [(10, -1e-12)]})
    assert "+1 %" in flat[0]
    assert flat[-1].endswith("● auto")
