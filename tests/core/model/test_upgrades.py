"""Files of every version there ever was are read; those of a newer checkmate are refused in one clear line.

tests/fixtures/v1 holds files as checkmate 0.1 wrote them. They never change: another format gets another version and folder.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from cli_runs import run
from places import TESTS

FIXTURES = TESTS / "fixtures"
GRAPH_DIGEST = "sha256:a865ac1a51823e3dc93fe823a8ecbb203530ce9c537e9e6950642572f92e021b"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the files of version 1."""
    return Path(shutil.copytree(FIXTURES / "v1", tmp_path / "v1"))


def test_a_graph(folder: Path) -> None:
    ran = run(folder, "inspect", "graph.json", "--json")
    assert ran.code == 0
    assert (ran.json["keep_all_peak_bytes"], ran.json["smallest_budget_bytes"]) == (22404, 16004)


@pytest.mark.parametrize("file", ["schedule.json", "schedule-without-graph.json"])
def test_schedules_are_read_verified_and_belong_to_the_same_graph(folder: Path, file: str) -> None:
    assert json.loads((folder / file).read_text())["graph"]["digest"] == GRAPH_DIGEST
    ran = run(folder, "verify", "graph.json", file, "--json")
    assert ran.code == 0, ran.err
    assert ran.json["status"] == "passed"


def test_costs(folder: Path) -> None:
    ran = run(folder, "inspect", "graph.json", "--costs", "costs.json", "--json")
    assert ran.code == 0
    assert ran.json["costs"]["unit"] == "ms"
    assert ran.json["bytes"]["largest_workspace"] == 1048


def test_jobs(folder: Path) -> None:
    ran = run(folder, "batch", "jobs.yaml", "--no-cache", "--workers", "1", "--json")
    assert len(ran.json["jobs"]) == 3


READERS = {
    "graph.json": ("inspect", "graph.json"),
    "schedule.json": ("verify", "graph.json", "schedule.json"),
    "costs.json": ("inspect", "graph.json", "--costs", "costs.json"),
    "jobs.yaml": ("batch", "jobs.yaml"),
}


@pytest.mark.parametrize("file", READERS)
def test_a_newer_file_is_refused_in_one_line_that_says_what_to_do(folder: Path, file: str) -> None:
    path = folder / file
    for version, words in (
        ("2", "the file has version 2, but this checkmate reads versions up to 1: update checkmate"),
        ("0", "versions begin with 1"),
    ):
        path.write_text(re.sub(r"(version\"?: )\d+", rf"\g<1>{version}", path.read_text(), count=1))
        ran = run(folder, *READERS[file])
        assert ran.code == 2
        assert ran.err.startswith(f"error: {file}: version: ")
        assert words in ran.err
        assert ran.err.count("\n") == 1


def test_every_file_written_says_its_version(folder: Path) -> None:
    """What is written today is what the fixtures are: whoever changes a format must keep the old one readable."""
    assert run(folder, "solve", "graph.json", "--budget", "90%", "--strategy", "chen-greedy", "-o", "new.json").code in (0, 4)
    assert run(folder, "solve", "graph.json", "--budget", "100%", "--strategy", "keep-all", "-o", "new.json").code == 0
    assert run(folder, "convert", "graph.json", "copy.json").code == 0
    for written, kept in (("new.json", "schedule.json"), ("copy.json", "graph.json")):
        new, old = (json.loads((folder / name).read_text()) for name in (written, kept))
        assert (new["format"], new["version"]) == (old["format"], old["version"])
        assert set(new) - {"comment", "any_bound", "bound_runtime"} == set(old) - {"comment"}
