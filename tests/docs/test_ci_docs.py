"""docs/ci.md and the files beside it do what they say, and docs/reference.md is what the commands say."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from batch_files import write_jobs
from cli_runs import files_in, write_chain
from places import DOCS

TEXT = (DOCS / "ci.md").read_text(encoding="utf-8")
LINES = [line for block in re.findall(r"```sh\n(.*?)```", TEXT, re.DOTALL) for line in block.splitlines()]


def shell(folder: Path, script: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """As a CI system runs it, with our command on the path."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("CHECKMATE_")}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = kept | {"PATH": path, "CHECKMATE_CACHE": str(folder / "cache")} | variables
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with a graph, a jobs file and a baseline."""
    folder = tmp_path_factory.mktemp("project")
    write_chain(folder, layers=4, name="graph.json")
    write_jobs(folder, "jobs: [{graph: graph.json, budget: [100%, 80%], strategy: optimal}]")
    assert shell(folder, next(line for line in LINES if "cp -r" in line)).returncode == 0
    assert files_in(folder / "baseline") == {"graph-100pct.schedule.json", "graph-80pct.schedule.json"}
    return folder


@pytest.fixture
def checkout(project: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(project, tmp_path, dirs_exist_ok=True))


@pytest.mark.slow
@pytest.mark.parametrize("line", LINES)
def test_every_line_works_and_jq_is_asked_for_what_is_there(checkout: Path, line: str) -> None:
    command, _, query = line.partition("| jq ")
    done = shell(checkout, command)
    assert done.returncode == 0, done.stderr
    if query:
        held = json.dumps(json.loads(done.stdout))
        asked = re.findall(r"\.([a-z_]+)", query)
        assert asked
        assert [key for key in asked if f'"{key}"' not in held] == []


def step(name: str) -> str:
    action = yaml.safe_load((DOCS / "ci" / "action.yml").read_text())
    return str(next(step["run"] for step in action["runs"]["steps"] if step.get("name") == name))


def test_the_action_solves_compares_and_fails_on_regression(checkout: Path) -> None:
    summary = checkout / "summary.md"
    variables = {"JOBS": "jobs.yaml", "GITHUB_STEP_SUMMARY": str(summary)}
    done = shell(checkout, step("Solve"), **variables, FAIL_IF="gap > 1%\npeak > 8GB\n")
    assert done.returncode == 0, done.stderr
    assert "graph-80pct" in summary.read_text()
    assert json.loads((checkout / "results.json").read_text())["from_cache"] == 2
    assert shell(checkout, step("Solve"), **variables, FAIL_IF="overhead >= 0%").returncode == 7
    compared = {"SCHEDULES": "schedules", "BASELINE": "baseline", "TOLERANCE": "0.5%"}
    assert shell(checkout, step("Compare with the baseline"), **compared).returncode == 0
    (checkout / "schedules" / "graph-80pct.schedule.json").unlink()
    assert shell(checkout, step("Compare with the baseline"), **compared).returncode == 7
    assert "::notice::" in shell(checkout, step("Compare with the baseline"), **compared | {"BASELINE": "nowhere"}).stdout


def test_the_snippet_for_gitlab_does_the_same(checkout: Path) -> None:
    job = yaml.safe_load((DOCS / "ci" / "gitlab.yml").read_text())["schedules"]
    done = shell(checkout, "\n".join([*job["script"], *job["after_script"]]))
    assert done.returncode == 0, done.stderr


def test_inputs_of_the_action_are_those_shown_and_used() -> None:
    action = (DOCS / "ci" / "action.yml").read_text()
    inputs = set(yaml.safe_load(action)["inputs"])
    assert set(re.findall(r"inputs\.([a-z-]+)", action)) == inputs
    shown = re.search(r"```yaml\n(.*?)```", TEXT, re.DOTALL)
    assert shown is not None
    assert set(yaml.safe_load(shown.group(1))["jobs"]["schedules"]["steps"][1]["with"]) <= inputs


def test_the_reference_is_current() -> None:
    """If this fails: python docs/reference.py."""
    spec = importlib.util.spec_from_file_location("reference", DOCS / "reference.py")
    assert spec is not None
    assert spec.loader is not None
    reference = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(reference)
    assert reference.PATH.read_text(encoding="utf-8") == reference.page()
