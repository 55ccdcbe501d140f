"""The working folder may be somebody else's: what is in it is read if it is asked for, and never run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from cli_runs import write_chain

MODULES = ("pickle", "socket", "json", "numpy", "struct", "queue", "selectors", "tempfile", "click", "sitecustomize", "checkmate")


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        ("batch", "jobs.yaml", "--no-cache", "--workers", "1"),
        ("sweep", "chain.json", "--budgets", "50%,60%", "--strategies", "auto", "--workers", "2", "-o", "s.csv"),
        ("solve", "chain.json", "--budget", "5", "--strategy", "optimal"),
    ],
    ids=lambda arguments: arguments[0],
)
def test_modules_in_the_working_folder_are_not_imported(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    """Worker processes and solvers import their modules from where the program found them."""
    write_chain(tmp_path)
    (tmp_path / "jobs.yaml").write_text("jobs:\n  - {graph: chain.json, budget: 5}\n")
    trap = tmp_path / "imported"
    for name in MODULES:
        (tmp_path / f"{name}.py").write_text(f"open({str(trap)!r}, 'a').write({name!r})\nraise ImportError('not this one')\n")
    program = Path(sys.executable).with_name("checkmate")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "CHECKMATE_"))}
    command = [str(program), *arguments] if program.exists() else [sys.executable, "-P", "-m", "checkmate", *arguments]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, trap.exists()) == (0, False), done.stderr
