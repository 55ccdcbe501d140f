"""Runs of the command line inside the test's process, in a folder and an environment of their own."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

from checkmate.cli.main import main


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        found = json.loads(self.out)
        assert isinstance(found, dict)
        return found


def run(folder: Path, *arguments: str | Path, stdin: bytes = b"", encoding: str = "utf-8", **variables: str) -> Ran:
    """One command line; stdout and stderr are pipes, not terminals."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding=encoding) for _ in range(2))
    environment = {name: value for name, value in os.environ.items() if not name.startswith("CHECKMATE_") and name != "FORCE_COLOR"}
    with (
        chdir(folder),
        patch.dict(os.environ, environment | variables, clear=True),
        patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin))),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        code = main([str(argument) for argument in arguments])
    out.flush()
    err.flush()
    return Ran(int(code), out.buffer.getvalue().decode(encoding), err.buffer.getvalue().decode(encoding))  # type: ignore[attr-defined]


def started(folder: Path, *arguments: str | Path) -> subprocess.Popen[str]:
    """One command line with --verbose in a process of its own, as if alone in a terminal."""
    return subprocess.Popen(
        [sys.executable, "-m", "checkmate", *map(str, arguments), "-v"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        start_new_session=True,
    )


def workers_of(pid: int) -> list[int]:
    """Children of a process that were started to work for it."""
    children = (int(number) for number in Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
    return [child for child in children if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()]


def interrupted(folder: Path, is_time: Callable[[str], bool], *arguments: str | Path, times: int = 1) -> Ran:
    """One command line with --verbose in a process of its own, and Ctrl-C as a terminal sends it, when a line on stderr says it is time.

    The second Ctrl-C, if asked for, comes as soon as the first is acknowledged. Stderr is what comes after that.
    """
    process = started(folder, *arguments)
    assert process.stderr is not None
    for sign in [is_time, *[lambda line: "Ctrl-C again" in line] * (times - 1)]:
        assert any(map(sign, process.stderr)), "it ended before its time"
        os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    return Ran(process.returncode, out, err)


def chain_document(layers: int) -> dict[str, Any]:
    """The unit-cost chain: operations 0..2L, i read by i + 1 and, for i < L, by 2L - i."""
    last = 2 * layers
    operations = [
        {
            "name": f"op{number}",
            "inputs": [f"op{number - 1}"] * (number > 0) + [f"op{last - number}"] * (number > layers + 1),
            "bytes": 1,
            "cost": 1,
            "backward": number > layers,
        }
        for number in range(last + 1)
    ]
    operations[layers + 1]["inputs"] = [f"op{layers}", f"op{layers - 1}"]
    return {"format": "checkmate-graph", "version": 1, "name": "chain", "outputs": [f"op{last}"], "operations": operations}


def write_chain(folder: Path, layers: int = 8, name: str = "chain.json") -> Path:
    path = folder / name
    path.write_text(json.dumps(chain_document(layers)))
    return path


def write_uneven_chain(folder: Path) -> Path:
    """A chain that keeps a search busy: values of many sizes."""
    document = chain_document(150)
    for number, operation in enumerate(document["operations"]):
        operation["bytes"] = 1000 + number * number % 997
    path = folder / "chain.json"
    path.write_text(json.dumps(document))
    return path


def files_in(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def wait_for(process: subprocess.Popen[str], word: str) -> None:
    """Read stderr until a line has this word."""
    assert process.stderr is not None
    for line in process.stderr:
        if word in line:
            return
    raise AssertionError(f"the process ended without saying {word!r}")
