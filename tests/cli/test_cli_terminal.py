"""What only a terminal gets: boxes, colour, a live line; and the amounts people read everywhere."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest
from cli_runs import chain_document, run, write_chain

from checkmate.cli.options.values import parse_dimension, parse_duration, parse_gap
from checkmate.cli.output.amounts import format_change, format_cost, format_seconds, format_share, shown
from checkmate.cli.output.render import shortened
from checkmate.core.errors import InputError
from checkmate.core.model.units import exact_bytes


def on_a_terminal(folder: Path, *arguments: str, **variables: str) -> str:
    """Both streams of a real process, as a terminal of 80 columns sees them."""
    environment = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR", "CI")}
    environment |= {"TERM": "xterm-256color", "COLUMNS": "80", "PYTHONIOENCODING": "utf-8"} | variables
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "checkmate", *arguments], cwd=folder, stdin=slave, stdout=slave, stderr=slave, env=environment
    )
    os.close(slave)
    received = b""
    while True:
        try:
            chunk = os.read(master, 65536)
        except OSError:
            break
        if not chunk:
            break
        received += chunk
    os.close(master)
    assert process.wait(timeout=60) == 0, received
    return received.decode()


@pytest.mark.slow
def test_a_terminal_gets_a_panel_in_colour_and_a_live_line_that_is_taken_away(tmp_path: Path) -> None:
    write_chain(tmp_path)
    seen = on_a_terminal(tmp_path, "solve", "chain.json", "--budget", "4")
    assert "╭─" in seen
    assert "\x1b[1;32moptimal" in seen
    assert "of 60 s" in seen
    assert seen.rindex("\x1b[?25h") > seen.index("\x1b[?25l")


@pytest.mark.slow
def test_no_color_means_no_colour(tmp_path: Path) -> None:
    write_chain(tmp_path)
    seen = on_a_terminal(tmp_path, "solve", "chain.json", "--budget", "4", NO_COLOR="1")
    assert "╭─" in seen
    assert "\x1b[1;32m" not in seen
    assert "32m" not in seen


def test_a_dumb_terminal_gets_plain_text(tmp_path: Path) -> None:
    write_chain(tmp_path)
    assert "\x1b" not in on_a_terminal(tmp_path, "inspect", "chain.json", TERM="dumb")


@pytest.mark.parametrize("columns", [80, 44])
@pytest.mark.parametrize(
    "command",
    [
        ("inspect", "chain.json"),
        ("sweep", "chain.json", "--budgets", "60%,100%", "--strategies", "keep-all,ap-greedy,griewank", "-o", "s.csv", "-v"),
        ("diff", "a.json", "b.json"),
    ],
    ids=lambda command: command[0],
)
def test_no_line_is_wider_than_the_terminal_and_no_figure_is_cut(tmp_path: Path, command: tuple[str, ...], columns: int) -> None:
    write_chain(tmp_path)
    for name, budget in (("a.json", "50%"), ("b.json", "90%")):
        assert run(tmp_path, "solve", "chain.json", "--budget", budget, "--strategy", "griewank", "-o", name).code == 0
    seen = re.sub(r"\x1b\[[0-9;]*m", "", on_a_terminal(tmp_path, *command, NO_COLOR="1", COLUMNS=str(columns)))
    lines = [line.rstrip() for line in seen.splitlines() if not line.startswith("[")]
    assert max(map(len, lines)) <= columns
    assert "…" not in seen
    if command[0] == "sweep":
        assert "+23.53 %" in seen


@pytest.mark.parametrize("columns", [100, 80, 70])
def test_long_names_are_shortened_in_the_middle(tmp_path: Path, columns: int) -> None:
    """Where names differ in the middle only, that part is shown."""
    scope = "model.encoder.layers.{}.attention.self.query.projection.weight_normalization.scope_that_an_exporter_wrote/{}"
    document = chain_document(6)
    new = {f"op{number}": scope.format(number, "Add") for number in range(13)}
    for number, operation in enumerate(document["operations"]):
        operation |= {"name": new[operation["name"]], "inputs": [new[name] for name in operation["inputs"]], "kind": f"Kind{number % 2}"}
    document["outputs"] = [new[name] for name in document["outputs"]]
    (tmp_path / "chain.json").write_text(json.dumps(document))
    seen = re.sub(r"\x1b\[[0-9;]*m", "", on_a_terminal(tmp_path, "inspect", "chain.json", NO_COLOR="1", COLUMNS=str(columns)))
    lines = [line.rstrip() for line in seen.splitlines()]
    assert max(map(len, lines)) <= columns
    rows = lines[next(number for number, line in enumerate(lines) if line.startswith("Largest values")) + 2 :][:10]
    assert all("layers." in row and "Kind" in row for row in rows), rows
    assert len({row.split()[0] for row in rows}) == 10, "different names look different"
    assert all(name in run(tmp_path, "inspect", "chain.json").out for name in list(new.values())[:3]), "a pipe gets whole names"


def test_shortened() -> None:
    assert shortened("abcdefghij", 10) == "abcdefghij"
    assert shortened("abcdefghijk", 10) == "abcd…ghijk"
    assert shortened("abcdefghijk", 10, unicode=False) == "abcd..hijk"
    assert shortened("at operation abcdefghijk, twice", 10) == "at operation abcd…hijk, twice"


@pytest.mark.parametrize(
    ("amount", "unit", "text"),
    [
        (0.0, "s", "0 s"),
        (1.5e-5, "s", "15 us"),
        (0.0123456, "s", "12.35 ms"),
        (0.99999, "s", "1 s"),
        (61.5, "s", "61.5 s"),
        (125.0, "s", "2 min 05 s"),
        (7384.0, "s", "2 h 03 min"),
        (2.5e12, "FLOP", "2.5 TFLOP"),
        (12.0, "FLOP", "12 FLOP"),
        (31263.125, "given", "31,263.1"),
        (31263.0, "given", "31,263"),
        (1e12, "given", "1e+12"),
        (43.0, "operations", "43 operations"),
    ],
)
def test_costs_are_written_as_people_read_them(amount: float, unit: str, text: str) -> None:
    assert format_cost(amount, unit) == text


def test_other_amounts() -> None:
    assert exact_bytes(13_153_337_344) == "13.15 GB (13153337344 bytes)"
    assert exact_bytes(1) == "1 byte"
    assert format_share(0.019677) == "1.97 %"
    assert (format_change(0.2), format_change(-0.2), format_change(-1e-9)) == ("+20.00 %", "-20.00 %", "+0.00 %")
    assert format_seconds(1e-12) == "0.001 ns"
    assert shown("a\x1b[2Jb\n") == "a?[2Jb?"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("60", 60), ("90s", 90), ("5m", 300), ("1h30m", 5400), ("500ms", 0.5), ("1.5 min", 90), ("1d", 86400), (" 2H ", 7200)],
)
def test_durations(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "m", "5x", "-5", "0", "1e3", "5 minutes", "99999999999d", "nan", "inf"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(InputError):
        parse_duration(text)


@pytest.mark.parametrize(("text", "gap"), [("0.01%", 1e-4), ("1e-4", 1e-4), ("0", 0), ("5 %", 0.05)])
def test_gaps(text: str, gap: float) -> None:
    assert parse_gap(text) == pytest.approx(gap)


@pytest.mark.parametrize("text", ["", "%", "-1", "1", "nan", "100%", "inf", "one"])
def test_what_is_no_gap(text: str) -> None:
    with pytest.raises(InputError):
        parse_gap(text)


def test_dimensions() -> None:
    assert parse_dimension(" batch = 032 ") == ("batch", 32)
    for text in ("batch", "=3", "n=", "n=0", "n=-1", "n=1.5", "n=" + "9" * 5000):
        with pytest.raises(InputError):
            parse_dimension(text)
