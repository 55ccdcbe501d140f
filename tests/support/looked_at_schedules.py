"""Schedule files for the commands that look at them: solved by the real command, or changed by hand afterwards."""

from __future__ import annotations

import functools
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cli_runs import run, write_chain


def solved_chain(folder: Path, name: str = "a.json", budget: str = "4", layers: int = 8, strategy: str = "optimal") -> Path:
    """The unit chain of eight layers within four bytes costs 26: nine recomputations. The graph is beside it as chain.json."""
    write_chain(folder, layers)
    (folder / name).write_bytes(_solved(budget, layers, strategy))
    return folder / name


@functools.cache
def _solved(budget: str, layers: int, strategy: str) -> bytes:
    """The schedule file. Solving takes a second, and all tests look at the same few."""
    with tempfile.TemporaryDirectory() as folder:
        write_chain(Path(folder), layers)
        ran = run(Path(folder), "solve", "chain.json", "--budget", budget, "--strategy", strategy)
        assert ran.code == 0, ran.err
        return (Path(folder) / "chain.schedule.json").read_bytes()


def changed(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Edit a JSON file in place."""
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))


def without_graph(path: Path) -> None:
    """As files were before they held their graph."""
    changed(path, lambda document: document.pop("definition"))
