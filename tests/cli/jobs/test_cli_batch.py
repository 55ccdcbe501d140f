"""`checkmate batch`: what it writes, what it exits with, how it stops and goes on, and workers that die."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Future
from pathlib import Path

import pytest
from batch_files import run_batch, small_batch, write_jobs
from cli_runs import files_in, run, started, wait_for, workers_of, write_chain
from places import DOCS, SAMPLES

from checkmate.cli.jobs.batch_run import MOST_ATTEMPTS, Batch
from checkmate.cli.jobs.job_list import jobs_of
from checkmate.cli.jobs.job_worker import answer_text
from checkmate.cli.options.conditions import parse_condition
from checkmate.core.errors import InputError
from checkmate.io.formats.strict_yaml import read_yaml

SLOW = "strategy: optimal, gap: 0, time-limit: 10m"
"""Options under which a chain of 40 layers takes minutes."""


def without_run(path: Path) -> dict[str, object]:
    return {key: value for key, value in json.loads(path.read_text()).items() if key != "run"}


@pytest.mark.slow
def test_a_batch_writes_what_solve_writes(tmp_path: Path) -> None:
    small_batch(tmp_path, "optimal")
    ran = run_batch(tmp_path, "-o", "out/results.json", "--json")
    assert ran.code == 0, ran.err
    names = ["chain4-100pct", "chain4-80pct", "chain6-100pct", "chain6-80pct"]
    assert [job["name"] for job in ran.json["jobs"]] == names
    assert ran.json == json.loads((tmp_path / "out" / "results.json").read_text())
    assert (ran.json["status"], ran.json["succeeded"], ran.json["failed"]) == ("ok", 4, 0)
    assert files_in(tmp_path / "schedules") == {f"{name}.schedule.json" for name in names}
    options = ("--budget", "80%", "--strategy", "optimal", "--threads", "1")
    alone = run(tmp_path, "solve", "chain6.json", *options, "-o", "alone.json", "--json")
    assert without_run(tmp_path / "alone.json") == without_run(tmp_path / "schedules" / "chain6-80pct.schedule.json")
    job = ran.json["jobs"][3]
    assert {key: job[key] for key in alone.json.keys() - {"format", "version", "seconds", "outputs"}} == {
        key: alone.json[key] for key in alone.json.keys() - {"format", "version", "seconds", "outputs"}
    }
    assert run(tmp_path, "verify", "chain6.json", "schedules/chain6-80pct.schedule.json").code == 0


def test_the_table_names_every_job_and_every_key_is_documented(tmp_path: Path) -> None:
    small_batch(tmp_path)
    plain = run_batch(tmp_path)
    assert "4 jobs" in plain.out
    assert all(name in plain.out for name in ("chain4-100pct", "chain6-80pct"))
    again = run_batch(tmp_path, "-o", "-")
    assert "4 from the cache" in again.err
    fields = json.loads(again.out)
    documented = (DOCS / "cli.md").read_text(encoding="utf-8")
    keys = {*fields, *(key for job in fields["jobs"] for key in job)} - {"format", "version"}
    assert [key for key in keys if f"`{key}`" not in documented] == []


def test_onnx_models_and_training_graphs_are_written_too(tmp_path: Path) -> None:
    sample = SAMPLES
    write_jobs(
        tmp_path,
        f"defaults: {{strategy: last-node, budget: 100%}}\njobs:\n- graph: {sample / 'chain.onnx'}\n"
        f"- {{graph: {sample / 'forward.onnx'}, loss: cross-entropy, batch-size: 2, name: trained}}\n",
    )
    ran = run_batch(tmp_path, "--json")
    assert ran.code == 0, ran.err
    assert files_in(tmp_path / "schedules") == {
        *("chain-100pct.schedule.json", "chain-100pct.remat.onnx", "trained.schedule.json", "trained.remat.onnx"),
        *("trained.train.onnx", "trained.train.params.npz"),
    }


def test_the_worst_outcome_is_the_exit_code_and_the_others_are_done(tmp_path: Path) -> None:
    write_chain(tmp_path, layers=4)
    (tmp_path / "broken.json").write_text("{")
    write_jobs(
        tmp_path,
        "defaults: {strategy: keep-all}\njobs:\n- {graph: chain.json, budget: [1, 5, 100%]}\n- {graph: broken.json, budget: 8}\n",
    )
    ran = run_batch(tmp_path, "--json")
    assert ran.code == ran.json["exit_code"] == 2
    assert [job["status"] for job in ran.json["jobs"]] == ["infeasible", "unknown", "optimal", "error"]
    assert [job["exit_code"] for job in ran.json["jobs"]] == [3, 4, 0, 2]
    assert ran.json["jobs"][0]["smallest_budget_bytes"] > 1
    assert "broken.json" in ran.json["jobs"][3]["error"]
    assert files_in(tmp_path / "schedules") == {"chain-100pct.schedule.json"}
    fast = run_batch(tmp_path, "--json", "--fail-fast")
    assert fast.code == 3
    assert [job["status"] for job in fast.json["jobs"]] == ["infeasible", "not-run", "not-run", "not-run"]
    assert run_batch(tmp_path, "--json", "--fail-fast", "--keep-going").code == 2


def test_conditions_fail_a_batch_whose_schedules_are_fine(tmp_path: Path) -> None:
    write_chain(tmp_path, layers=6)
    write_jobs(tmp_path, "jobs: [{graph: chain.json, budget: [100%, 60%], strategy: optimal}]")
    assert run_batch(tmp_path, "--fail-if", "gap > 1%", "--fail-if", "peak > 100%").code == 0
    ran = run_batch(tmp_path, "--fail-if", "overhead > 0%", "--fail-if", "cost<=0", "--json")
    assert ran.code == 7
    assert [(job["exit_code"], job["fail_if"]) for job in ran.json["jobs"]] == [(0, []), (7, ["overhead > 0%"])]
    assert "fails: overhead > 0%" in run_batch(tmp_path, "--fail-if", "overhead > 0%").out


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("gap", ["'gap > 1%'"]),
        ("gap > ", ["'gap > 1%'"]),
        ("gap == 1%", ["'gap > 1%'"]),
        ("gapp > 1%", ["did you mean 'gap'?"]),
        ("weight > 1", ["figures are gap, peak"]),
        ("gap > 5", ["did you mean 5%?"]),
        ("peak > 8XB", ["'8XB'"]),
        ("cost > cheap", ["'cheap'"]),
        ("cost > nan", ["'nan'"]),
        ("seconds > soon", ["'soon'"]),
        ("__import__('os') > 1", ["'gap > 1%'"]),
    ],
)
def test_a_bad_condition_is_an_error_that_says_what_to_write(text: str, words: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        parse_condition(text)
    assert [word for word in words if word not in str(caught.value)] == []


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--executor", "dask"], "--scheduler"),
        (["--scheduler", "tcp://x:1"], "--executor dask"),
        (["--executor", "dsk"], "'dask'?"),
        (["--executor", "dask", "--scheduler", "tcp://x:1", "--workers", "2"], "--workers"),
        (["--fail-if", "gap"], "--fail-if"),
        (["-o", "jobs.yaml"], "overwrite"),
    ],
)
def test_options_that_contradict_are_errors(tmp_path: Path, arguments: list[str], word: str) -> None:
    small_batch(tmp_path)
    ran = run(tmp_path, "batch", "jobs.yaml", "--no-cache", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert word in ran.err
    assert not (tmp_path / "schedules").exists()


def test_jobs_from_stdin_are_relative_to_the_current_folder(tmp_path: Path) -> None:
    write_chain(tmp_path, layers=4)
    text = b"jobs: [{graph: chain.json, budget: 100%, strategy: keep-all}]"
    assert run(tmp_path, "batch", "-", "--no-cache", "--workers", "1", "-q", stdin=text).code == 0
    assert files_in(tmp_path / "schedules") == {"chain-100pct.schedule.json"}


def start_batch(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    return started(folder, "batch", "jobs.yaml", "--cache", "cache", "--workers", "2", *arguments)


def quick_and_slow(folder: Path, slow: str = SLOW) -> None:
    write_chain(folder, layers=4, name="quick.json")
    write_chain(folder, layers=40, name="slow.json")
    write_jobs(
        folder, f"jobs:\n- {{graph: quick.json, budget: 70%, strategy: optimal}}\n- {{graph: slow.json, budget: 9, {slow}, name: slow}}\n"
    )


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_batch_that_was_stopped_or_killed_goes_on_where_it_was(tmp_path: Path, number: signal.Signals) -> None:
    """Ctrl-C as a terminal sends it: to the workers too. After a kill, the workers must go by themselves."""
    quick_and_slow(tmp_path)
    process = start_batch(tmp_path)
    wait_for(process, "quick-70pct: optimal")
    if number == signal.SIGINT:
        os.killpg(process.pid, number)
    else:
        process.kill()
    out, err = process.communicate(timeout=60)  # the pipe closes when the last worker is gone
    if number == signal.SIGINT:
        assert process.returncode == 130
        assert "run the same command again" in err
        assert "not-run" in out
    assert "Traceback" not in err
    assert "resource_tracker" not in err
    first = (tmp_path / "schedules" / "quick-70pct.schedule.json").read_bytes()
    assert files_in(tmp_path / "schedules") == {"quick-70pct.schedule.json"}
    quick_and_slow(tmp_path, "strategy: keep-all")
    ran = run_batch(tmp_path, "--json")
    assert [job["from_cache"] for job in ran.json["jobs"]] == [True, False]
    assert (tmp_path / "schedules" / "quick-70pct.schedule.json").read_bytes() == first


class Doomed:
    """A crew whose workers die while they work on certain jobs, as often as said; the others are done in this process."""

    def __init__(self, deaths: dict[int, int]) -> None:
        self.deaths, self.renewed, self.batches = deaths, 0, 0
        self._lost: list[Future[str]] = []
        self.lost: Future[BaseException] = Future()

    def slots(self) -> int:
        return 2

    def submit(self, work: Callable[[str], str], text: str) -> Future[str]:
        assert work is answer_text
        future: Future[str] = Future()
        budget = json.loads(text)["budget_bytes"]
        if self.deaths.get(budget, 0) > 0:
            self.deaths[budget] -= 1
            future.set_exception(BrokenExecutor("died"))
        else:
            future.set_result(work(text))
        return future

    def renew(self) -> None:
        self.renewed += 1

    def explain(self, error: BaseException) -> BaseException:
        return error

    def close(self) -> None:
        self.closed = True


def test_a_job_whose_worker_dies_runs_again_but_not_for_ever(tmp_path: Path) -> None:
    write_chain(tmp_path, layers=6)
    path = write_jobs(tmp_path, "jobs: [{graph: chain.json, budget: [14, 13, 12, 11], strategy: linearized-greedy}]")
    crew = Doomed({13: 1, 11: 99})
    rows = Batch(jobs_of(read_yaml(path), str(path), tmp_path), crew, None).run()
    assert [(row.job.name, int(row.code)) for row in rows] == [("chain-14", 0), ("chain-13", 0), ("chain-12", 0), ("chain-11", 4)]
    assert f"{MOST_ATTEMPTS} attempts" in rows[3].note
    assert crew.renewed == 1 + MOST_ATTEMPTS
    assert crew.closed


def test_a_killed_worker_process_costs_nothing_but_time(tmp_path: Path) -> None:
    small_batch(tmp_path)
    process = start_batch(tmp_path, "--json")
    while not (workers := workers_of(process.pid)):
        assert process.poll() is None
        time.sleep(0.01)
    os.kill(workers[0], signal.SIGKILL)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert re.search(r"the worker process of chain\S+ died", err)
    assert "resource_tracker" not in err
    assert json.loads(out)["succeeded"] == 4
