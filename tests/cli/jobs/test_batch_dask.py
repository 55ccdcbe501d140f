"""The same batch on a real Dask cluster: two workers in processes of their own, one of which is killed in the middle of a job."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from batch_files import write_jobs
from cli_runs import files_in, run, write_chain

LONGEST_WAIT = 60.0


def busy_worker(cluster: Any) -> str:
    """The address of a worker that is at work, once there is one."""
    deadline = time.monotonic() + LONGEST_WAIT
    while time.monotonic() < deadline:
        for address, state in cluster.scheduler.workers.items():
            if state.processing:
                return str(address)
        time.sleep(0.01)
    raise AssertionError("no worker was ever busy")


@pytest.mark.slow
def test_a_worker_that_is_killed_loses_nothing(tmp_path: Path) -> None:
    """Workers sit in another folder: all they need is sent to them, all they find comes back."""
    from distributed import LocalCluster

    for layers in (4, 5, 6):
        write_chain(tmp_path, layers=layers, name=f"chain{layers}.json")
    write_chain(tmp_path, layers=40, name="slow.json")
    write_jobs(
        tmp_path,
        "jobs:\n- {graph: slow.json, budget: 9, strategy: optimal, gap: 0, time-limit: 2s, name: slow}\n"
        "- {graph: 'chain*.json', budget: 80%, strategy: linearized-greedy}\n",
    )
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    with LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, local_directory=str(elsewhere), silence_logs=50
    ) as cluster:
        pids = {worker.worker_address: worker.pid for worker in cluster.workers.values()}
        command = [sys.executable, "-m", "checkmate", "batch", "jobs.yaml", "--no-cache", "--json"]
        process = subprocess.Popen(
            [*command, "--executor", "dask", "--scheduler", cluster.scheduler_address],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        killed = pids[busy_worker(cluster)]
        os.kill(killed, signal.SIGKILL)
        out, err = process.communicate(timeout=LONGEST_WAIT)
    assert process.returncode == 0, err
    jobs = json.loads(out)["jobs"]
    assert [job["name"] for job in jobs] == ["slow", "chain4-80pct", "chain5-80pct", "chain6-80pct"]
    assert files_in(tmp_path / "schedules") == {f"{job['name']}.schedule.json" for job in jobs}
    assert run(tmp_path, "verify", "slow.json", "schedules/slow.schedule.json").code == 0


def test_without_a_scheduler_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("checkmate.cli.jobs.executors.CONNECT_SECONDS", 1)
    write_chain(tmp_path)
    write_jobs(tmp_path, "jobs: [{graph: chain.json, budget: 80%}]")
    command = ("batch", "jobs.yaml", "--no-cache", "--executor", "dask", "--scheduler")
    nobody = run(tmp_path, *command, "tcp://127.0.0.1:1")
    assert nobody.code == 5
    assert "tcp://127.0.0.1:1" in nobody.err
    assert nobody.err.count("\n") == 1
    nonsense = run(tmp_path, *command, "carrier-pigeon://x")
    assert nonsense.code == 2
    assert nonsense.err.count("\n") == 1


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "frozen"])
def test_a_scheduler_that_is_gone_ends_the_batch_and_keeps_what_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: signal.Signals
) -> None:
    """A frozen one, as one whose machine is gone, keeps its connections: only its silence tells."""
    monkeypatch.setattr("checkmate.cli.jobs.executors.PATIENCE", 2.0)
    write_chain(tmp_path, layers=4, name="quick.json")
    write_chain(tmp_path, layers=60, name="slow.json")
    slow = "{graph: slow.json, budget: 9, strategy: optimal, gap: 0, time-limit: 100s, name: slow}"
    write_jobs(tmp_path, f"jobs:\n- {{graph: quick.json, budget: 80%, strategy: linearized-greedy, name: quick}}\n- {slow}\n")
    found = tmp_path / "scheduler.json"
    python = [sys.executable, "-P", "-m"]
    options: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    scheduler = subprocess.Popen(
        [*python, "distributed.cli.dask_scheduler", "--port", "0", "--no-dashboard", "--scheduler-file", str(found)], **options
    )
    worker = subprocess.Popen(
        [*python, "distributed.cli.dask_worker", "--scheduler-file", str(found), "--nthreads", "2", "--no-nanny", "--no-dashboard"],
        **options,
        cwd=tmp_path,
    )
    quick = tmp_path / "schedules" / "quick.schedule.json"

    def end() -> None:
        wait_until(quick.exists)
        time.sleep(0.5)
        scheduler.send_signal(how)

    ending = threading.Thread(target=end)
    try:
        wait_until(found.exists)
        ending.start()
        address = json.loads(found.read_text())["address"]
        ran = run(tmp_path, "batch", "jobs.yaml", "--no-cache", "--json", "--executor", "dask", "--scheduler", address)
    finally:
        ending.join()
        for process in (scheduler, worker):
            process.kill()
            process.wait()
    assert ran.code == 5
    assert [(job["name"], job["exit_code"]) for job in ran.json["jobs"]] == [("quick", 0), ("slow", 5)]
    assert "does not answer any more" in ran.json["jobs"][1]["error"]
    assert quick.exists()
    assert "Traceback" not in ran.err


def wait_until(reached: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LONGEST_WAIT
    while not reached() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert reached()
