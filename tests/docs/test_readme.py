"""The README's commands are commands that work: CI runs the test command itself, these are the others."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from cli_runs import run
from places import ROOT

TEXT = (ROOT / "README.md").read_text("utf-8")
COMMANDS = [line for block in re.findall(r"```sh\n(.*?)```", TEXT, re.DOTALL) for line in block.splitlines()]


@pytest.mark.slow
def test_the_main_command_does_the_main_job(tmp_path: Path) -> None:
    main = shlex.split(COMMANDS[0].split(".venv/bin/checkmate ")[1])
    main[1] = str(ROOT / main[1])
    ran = run(tmp_path, *main, "--json")
    assert ran.code == 0, ran.err
    assert ran.json["peak_bytes"] <= ran.json["budget_bytes"]
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "forward.remat.onnx",
        "forward.schedule.json",
        "forward.train.onnx",
        "forward.train.params.npz",
    ]


def test_the_test_command_is_the_one_ci_looks_for() -> None:
    assert "pytest" in TEXT.split("<!-- test command -->")[1].split("```")[1]


@pytest.mark.parametrize("path", sorted(set(re.findall(r"\]\(([^)#]+)\)", TEXT))))
def test_links_lead_somewhere(path: str) -> None:
    assert (ROOT / path).exists()


@pytest.mark.parametrize("command", [command for command in COMMANDS if "checkmate " in command and ".venv" not in command])
def test_every_command_has_options_that_exist(command: str, tmp_path: Path) -> None:
    for part in command.split("&&"):
        words = shlex.split(part.split("|")[0])
        shown = run(tmp_path, words[1], "--help")
        assert shown.code == 0
        for word in words:
            if word.startswith("--"):
                assert word in shown.out, word
