"""Solvers that crash, hang or lie: the user hears of it in one line, and what is written is right all the same."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import faulty_cbc
import numpy as np
import pytest
from chains import unit_chain
from cli_runs import Ran, run, write_chain

from checkmate.core.events import Event, Watch
from checkmate.core.milp import get_formulation
from checkmate.core.milp.formulation import Formulated
from checkmate.core.result import Status, Stop
from checkmate.core.settings import Settings
from checkmate.core.solvers import get_solver
from checkmate.core.solvers.base import SolverResult
from checkmate.core.solvers.checked import found_lie


def chain(layers: int, budget: int) -> Formulated:
    return get_formulation("liveness")(unit_chain(layers, budget))


@pytest.fixture
def faulty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a graph, in a world where the wheel cbcbox brings an executable that fails as FAULT says."""
    script = tmp_path / "bin" / "cbc"
    script.parent.mkdir()
    script.write_text(f'#!/bin/sh\nexec {sys.executable} {faulty_cbc.__file__} "$@"\n')
    script.chmod(0o755)
    wheel = ModuleType("cbcbox")
    wheel.cbc_bin_path = lambda: str(script)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "cbcbox", wheel)
    write_chain(tmp_path, layers=6)
    return tmp_path


def solve(folder: Path, fault: str, budget: str, *more: str) -> Ran:
    return run(folder, "solve", "chain.json", "--budget", budget, "--strategy", "optimal", "--solver", "cbc", "--json", *more, FAULT=fault)


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("crash", "CBC failed: it ended with signal 6"),
        ("quit", "CBC failed: it ended with code 3 without an answer: ERROR: no licence"),
        ("garbage", "CBC failed: its solution file cannot be parsed"),
        ("zeros", "cbc failed: its solution violates a constraint; its answer is ignored"),
        ("infeasible", "cbc failed: it reports a feasible model as infeasible"),
        ("too high", "cbc failed: it claims to have proven what a known schedule refutes"),
    ],
)
def test_what_a_solver_gets_wrong_is_caught(faulty: Path, fault: str, words: str) -> None:
    """The heuristics have a schedule already: it is written, and nothing is claimed that was not proven."""
    ran = solve(faulty, fault, "4")
    assert ran.code == 0
    assert words in ran.err
    assert ran.err.count("\n") == ran.err.count("warning: ") == 1
    assert ran.json["bound"] <= 18 <= ran.json["cost"]
    assert run(faulty, "verify", "chain.json", "chain.schedule.json").code == 0


def test_a_wrong_infeasible_is_no_proof(faulty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAULT", "infeasible")
    told: list[Event] = []
    result = get_solver("cbc").solve(chain(5, 4).form, Settings(), Watch(30, told.append))
    assert result.values is not None
    assert [event.message for event in told if event.warning] == [
        "the solver cbc failed: it reports a feasible model as infeasible; its answer is ignored"
    ]
    true = get_solver("cbc").solve(chain(5, 2).form, Settings(), Watch(30, told.append))
    assert true.status is Status.INFEASIBLE


@pytest.mark.slow
def test_a_solver_that_hangs_is_ended_soon_after_its_limit(faulty: Path) -> None:
    begun = time.monotonic()
    ran = solve(faulty, "hang", "4", "--time-limit", "1s", "-v")
    assert ran.code == 0
    assert "CBC did not stop in time and was killed" in ran.err
    assert ran.json["stop"] == "time-limit"
    assert time.monotonic() - begun < 60
    with pytest.raises(ProcessLookupError):
        os.kill(int((faulty / "hanging").read_text()), 0)


def lies(formulated: Formulated, good: SolverResult) -> Iterator[tuple[str, SolverResult]]:
    assert good.values is not None
    short, doubled, half = good.values[:-1], good.values * 2, good.values * 0.5
    yield "without a solution", replace(good, values=None)
    yield "missing values", replace(good, values=short)
    yield "missing values", replace(good, values=good.values * np.nan)
    yield "limits of a variable", replace(good, values=doubled)
    yield "not integer", replace(good, values=half)
    yield "violates a constraint", replace(good, values=np.zeros(formulated.form.columns))
    yield "below the bound", replace(good, bound=good.bound * 1.1)


def test_every_kind_of_lie_is_found_and_no_truth_is_called_one() -> None:
    formulated = chain(6, 4)
    good = get_solver("highs").solve(formulated.form, Settings(), Watch(60))
    assert found_lie(formulated.form, good) == ""
    for words, lie in lies(formulated, good):
        assert words in found_lie(formulated.form, lie)


def process_with(folder: Path, module: str, content: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A command line in a process of its own, in which HiGHS' wheel is a file of ours."""
    (folder / "wheels").mkdir()
    (folder / "wheels" / f"{module}.py").write_text(content)
    variables = {**os.environ, "PYTHONPATH": str(folder / "wheels")}
    return subprocess.run(
        [sys.executable, "-m", "checkmate", *arguments], cwd=folder, env=variables, capture_output=True, text=True, timeout=120, check=False
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("import os; os.abort()", "HiGHS failed: it crashed (SIGABRT)"),
        ("raise MemoryError", "HiGHS failed: it ran out of memory"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "probably by the system because memory ran out"),
        ("import time; time.sleep(600)", "HiGHS did not stop in time and was killed"),
    ],
)
def test_highs_may_crash_or_hang_without_harm(tmp_path: Path, content: str, words: str) -> None:
    write_chain(tmp_path, layers=6)
    arguments = ("solve", "chain.json", "--budget", "4", "--strategy", "optimal", "--time-limit", "2s", "-v")
    done = process_with(tmp_path, "highspy", content, *arguments)
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert done.returncode == 0
    assert run(tmp_path, "verify", "chain.json", "chain.schedule.json").code == 0


def test_a_worker_that_dies_half_way_leaves_what_it_told(tmp_path: Path) -> None:
    formulated = chain(12, 4)
    told: list[Event] = []
    found: list[float] = []

    def kill_at_the_first_solution(cost: float | None, bound: float | None) -> None:
        if cost is not None and not found:
            found.append(cost)
            for child in own_children("highs_worker"):
                os.kill(child, signal.SIGKILL)

    result = get_solver("highs").solve(formulated.form, Settings(gap=0.0), Watch(60, told.append), on_progress=kill_at_the_first_solution)
    assert [event.message for event in told if event.warning]
    assert (result.status, result.stop) == (Status.FEASIBLE, Stop.FINISHED)
    assert result.values is not None
    assert float(formulated.form.objective @ result.values) + formulated.form.offset <= found[0] + 1e-6
    again = get_solver("highs").solve(chain(5, 4).form, Settings(), Watch(60))
    assert again.status is Status.OPTIMAL


def own_children(word: str) -> list[int]:
    """Processes this one started whose command line has this word."""
    listed = [int(number) for file in Path("/proc/self/task").glob("*/children") for number in file.read_text().split()]
    return [number for number in listed if word in Path(f"/proc/{number}/cmdline").read_text()]


def test_a_worker_ends_when_whoever_started_it_is_killed(tmp_path: Path) -> None:
    program = (
        "import os, signal\n"
        "from checkmate.core.solvers.process import SolverProcess\n"
        "worker = SolverProcess('checkmate.core.solvers.highs_worker')\n"
        "print(worker.pid, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    worker = int(subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False).stdout)
    for _ in range(200):
        if not Path(f"/proc/{worker}/cmdline").exists() or not Path(f"/proc/{worker}/cmdline").read_bytes():
            return
        time.sleep(0.05)
    pytest.fail("the worker is still there")


def test_a_batch_tells_of_it_and_does_not_keep_what_came_of_it(faulty: Path) -> None:
    """The worker is a process of its own: there the wheel is a file on its path."""
    (faulty / "wheels").mkdir()
    (faulty / "wheels" / "highspy.py").write_text("import os; os.abort()")
    (faulty / "jobs.yaml").write_text("jobs: [{graph: chain.json, budget: 4, strategy: optimal, time-limit: 20s}]")
    ran = run(faulty, "batch", "jobs.yaml", "--cache", "cache", "--json", PYTHONPATH=str(faulty / "wheels"))
    assert ran.code == 0
    assert "note: chain-4: the solver HiGHS failed: it crashed (SIGABRT)" in ran.err
    assert not list((faulty / "cache").rglob("*.json"))
