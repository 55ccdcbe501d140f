"""Jobs files for tests of batches, and the folder they run in."""

from __future__ import annotations

from pathlib import Path

from cli_runs import Ran, run, write_chain


def write_jobs(folder: Path, text: str) -> Path:
    path = folder / "jobs.yaml"
    path.write_text(text)
    return path


def small_batch(folder: Path, strategy: str = "linearized-greedy") -> Path:
    """Two chains, two budgets, and if need be a strategy that takes no time."""
    for layers in (4, 6):
        write_chain(folder, layers=layers, name=f"chain{layers}.json")
    return write_jobs(folder, f"jobs:\n  - graph: chain*.json\n    budget: [100%, 80%]\n    strategy: {strategy}\n")


def run_batch(folder: Path, *arguments: str) -> Ran:
    """With a cache of its own and one worker."""
    return run(folder, "batch", "jobs.yaml", "--cache", folder / "cache", "--workers", "1", *arguments)
