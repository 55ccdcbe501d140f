"""`--log-file`: what happened and how long it took, in a file and nowhere else."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from unittest.mock import patch

import pytest
from cli_runs import run, write_chain

from checkmate.cli.registry import all_commands

LINE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} [+-]\d{4} (INFO|WARNING|ERROR) +\S.*")


def log_lines(path: Path) -> list[str]:
    """Every line stands for itself, or is set in and belongs to the one before it."""
    text = path.read_text()
    assert text.endswith("\n")
    assert [line for line in text.splitlines() if not LINE.fullmatch(line) and not line.startswith("    ")] == []
    return text.splitlines()


def test_every_command_has_it() -> None:
    without = [name for name, command in all_commands().items() if all(option.long_name != "log-file" for option in command.own_options)]
    assert without == ["completion"]


def test_a_run_tells_each_stage_and_its_seconds_and_stdout_stays_as_it_is(tmp_path: Path) -> None:
    write_chain(tmp_path, layers=5)
    arguments = ("solve", "chain.json", "--budget", "4", "--strategy", "optimal", "--json")
    plain, logged = run(tmp_path, *arguments), run(tmp_path, *arguments, "--log-file", "run.log")
    assert (plain.code, logged.code) == (0, 0)
    assert plain.json.keys() == logged.json.keys()
    assert logged.err == ""
    text = "\n".join(log_lines(tmp_path / "run.log"))
    for pattern in (
        r"solve chain.json --budget 4 .*--log-file run.log \(in .*\)",
        r"load: \d+\.\d{3} s",
        r"price: \d+\.\d{3} s",
        r"optimal: building the liveness model: \d+\.\d{3} s",
        r"optimal: highs: \d+ variables, \d+ constraints: \d+\.\d{3} s",
        r"simulated in \d+\.\d{3} s",
        r"verified in \d+\.\d{3} s",
        r"wrote chain.schedule.json: \d+ bytes in \d+\.\d{3} s",
        r"exit 0 after \d+\.\d{3} s",
    ):
        assert re.search(pattern, text), pattern


def test_other_commands_append_to_the_same_file(tmp_path: Path) -> None:
    write_chain(tmp_path)
    run(tmp_path, "solve", "chain.json", "--budget", "100%", CHECKMATE_LOG_FILE="run.log")
    first = log_lines(tmp_path / "run.log")
    ran = run(tmp_path, "verify", "chain.json", "chain.schedule.json", "--log-file", "run.log", "-v")
    lines = log_lines(tmp_path / "run.log")
    assert lines[: len(first)] == first
    assert any("verify: 0." in line for line in lines[len(first) :])
    assert re.search(r"^verify: \d+\.\d{3} s$", ran.err, re.MULTILINE)


def test_errors_and_bugs_are_in_it_with_where_they_happened(tmp_path: Path) -> None:
    write_chain(tmp_path)
    assert run(tmp_path, "solve", "chain.json", "--log-file", "run.log").code == 2
    with patch("checkmate.cli.options.shared.price", side_effect=KeyError("a name\nof two lines")):
        assert run(tmp_path, "inspect", "chain.json", "--log-file", "run.log").code == 1
    text = "\n".join(log_lines(tmp_path / "run.log"))
    assert "ERROR   missing --budget" in text
    assert "exit 2 after" in text
    assert "    Traceback (most recent call last):" in text


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("chain.json", "exists and is not a checkmate log; choose another name"),
        ("nowhere/run.log", "cannot write the log file 'nowhere/run.log': no such file or directory"),
        ("chain.json/run.log", "not a directory"),
        ("-", "name a file"),
    ],
)
def test_places_a_log_cannot_go(tmp_path: Path, place: str, words: str) -> None:
    graph = write_chain(tmp_path)
    before = graph.read_bytes()
    ran = run(tmp_path, "inspect", "chain.json", "--log-file", place)
    assert ran.code == 2
    assert words in ran.err
    assert ran.err.count("\n") == 1
    assert graph.read_bytes() == before


def test_a_log_that_cannot_be_written_any_more_does_not_stop_the_work(tmp_path: Path) -> None:
    write_chain(tmp_path)
    ran = run(tmp_path, "solve", "chain.json", "--budget", "100%", "--log-file", "/dev/full")
    assert ran.code == 0
    assert ran.err.count("warning: cannot write to the log file") == 1
    assert (tmp_path / "chain.schedule.json").exists()


@pytest.mark.slow
def test_a_killed_run_leaves_a_readable_log(tmp_path: Path) -> None:
    write_chain(tmp_path, layers=40)
    arguments = [
        "solve",
        "chain.json",
        "--budget",
        "9",
        "--strategy",
        "optimal",
        "--time-limit",
        "10m",
        "--gap",
        "0",
        "--log-file",
        "run.log",
    ]
    process = subprocess.Popen(
        [sys.executable, "-m", "checkmate", *arguments], cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    for _ in range(1200):
        time.sleep(0.05)
        if (tmp_path / "run.log").exists() and "variables" in (tmp_path / "run.log").read_text():
            break
    process.send_signal(signal.SIGKILL)
    process.wait()
    lines = log_lines(tmp_path / "run.log")
    assert any("baselines" in line for line in lines)
    assert not any("exit" in line for line in lines)
