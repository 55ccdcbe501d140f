"""The jobs file: what it expands to, and what is said about one that is wrong."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path

import jsonschema
import pytest
import yaml
from batch_files import write_jobs
from cli_runs import run, write_chain

from checkmate.cli.jobs.job_list import Job, job_options, jobs_of
from checkmate.io.formats.jobs_yaml import OWN_KEYS
from checkmate.io.formats.strict_yaml import read_yaml

SCHEMA = json.loads((resources.files("checkmate.io.schemas") / "jobs.schema.json").read_text("utf-8"))


def expanded(folder: Path, text: str) -> list[Job]:
    path = write_jobs(folder, text)
    jsonschema.Draft202012Validator(SCHEMA).validate(yaml.safe_load(text))
    return jobs_of(read_yaml(path), str(path), folder)


def test_every_graph_is_solved_at_every_budget_by_every_strategy(tmp_path: Path) -> None:
    (tmp_path / "nets").mkdir()
    for name in ("b.json", "a.json", "big.json"):
        write_chain(tmp_path / "nets", name=name)
    jobs = expanded(
        tmp_path, "jobs:\n- graph: nets/*.json\n  exclude: nets/big*\n  budget: [80%, 2e9]\n  strategy: [auto, keep-all]\n  output: out\n"
    )
    assert [job.name for job in jobs] == [
        *("a-80pct-auto", "a-80pct-keep-all", "a-2e9-auto", "a-2e9-keep-all"),
        *("b-80pct-auto", "b-80pct-keep-all", "b-2e9-auto", "b-2e9-keep-all"),
    ]
    assert {job.folder for job in jobs} == {tmp_path / "out"}
    assert jobs[2].options.budget.bytes == 2 * 10**9


def test_a_job_overrides_the_defaults(tmp_path: Path) -> None:
    write_chain(tmp_path)
    (tmp_path / "costs.json").write_text("{}")
    first, second = expanded(
        tmp_path,
        "version: 1\n"
        "defaults: {budget: 80%, time-limit: 5m, pin: [op1, op2], seed: 3, costs: costs.json}\n"
        "jobs:\n"
        "- graph: chain.json\n"
        "- {graph: chain.json, name: 'own-{graph}', time-limit: 1h, pin: op3, strategy: optimal, threads: 2, costs: unit, no-onnx: true}\n",
    )
    assert (first.name, first.options.solving.time_limit, first.options.request.pin) == ("chain-80pct", 300, ("op1", "op2"))
    assert (second.name, second.options.solving.time_limit, second.options.request.pin) == ("own-chain", 3600, ("op3",))
    assert [job.options.solving.settings.seed for job in (first, second)] == [3, 3]
    assert [job.options.solving.settings.threads for job in (first, second)] == [1, 2]
    assert [job.options.request.costs for job in (first, second)] == [str(tmp_path / "costs.json"), "unit"]
    assert second.destinations(with_model=True).model is None


def test_variables_of_the_shell_do_not_change_a_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_chain(tmp_path)
    monkeypatch.setenv("CHECKMATE_STRATEGY", "keep-all")
    monkeypatch.setenv("CHECKMATE_BUDGET", "1")
    (job,) = expanded(tmp_path, "jobs: [{graph: chain.json, budget: 80%}]")
    assert (job.options.strategy, job.options.budget.text) == ("auto", "80%")


def test_the_schema_knows_the_keys_the_code_knows() -> None:
    own = SCHEMA["properties"]["jobs"]["items"]["properties"]
    assert {*own, *SCHEMA["$defs"]["options"]["properties"]} == {*OWN_KEYS, *job_options()}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ["empty"]),
        ("jobs: []", ["jobs", "no jobs"]),
        ("job: []", ["unknown key 'job'", "did you mean 'jobs'?"]),
        ("- graph: x", ["a list"]),
        ("jobs: [chain.json]", ["jobs[0]", "'chain.json'"]),
        ("jobs: [{graph: chain.json}]", ["jobs[0]", "'budget' is missing"]),
        ("jobs: [{budget: 80%}]", ["jobs[0]", "'graph' is missing"]),
        ("jobs: [{graph: chain.json, bugdet: 80%}]", ["jobs[0]", "'bugdet'", "did you mean 'budget'?"]),
        ("jobs: [{graph: chain.json, budgets: 80%}]", ["jobs[0]", "did you mean 'budget'?"]),
        ("defaults: {timelimit: 5m}\njobs: [{graph: chain.json, budget: 8}]", ["defaults", "did you mean 'time-limit'?"]),
        ("jobs: [{graph: chain.json, budget: 8, time_limit: 5}]", ["jobs[0]", "did you mean 'time-limit'?"]),
        ("defaults: {graph: chain.json}\njobs: [{budget: 8}]", ["defaults", "'graph'"]),
        ("jobs: [{graph: chain.json, budget: 8XB}]", ["jobs[0]: budget", "'8XB'"]),
        ("jobs: [{graph: chain.json, budget: [80%, [1]]}]", ["jobs[0].budget", "a list"]),
        ("jobs: [{graph: chain.json, budget: }]", ["jobs[0].budget", "no value"]),
        ("jobs: [{graph: chain.json, budget: true}]", ["jobs[0].budget", "true"]),
        ("jobs: [{graph: chain.json, budget: 8, strategy: atuo}]", ["jobs[0]: strategy", "did you mean 'auto'?"]),
        ("jobs: [{graph: chain.json, budget: 8, no-onnx: 3}]", ["jobs[0]", "'no-onnx'", "true or false"]),
        ("jobs: [{graph: chain.json, budget: 8, momentum: 0.5}]", ["jobs[0]", "--loss"]),
        ("jobs: [{graph: chain.json, budget: 8, name: '{grahp}'}]", ["{grahp}", "did you mean 'graph'?"]),
        ("jobs: [{graph: chain.json, budget: 8, name: 'a/b'}]", ["'a/b'", "output"]),
        ("jobs: [{graph: chain.json, budget: [8, 9], name: same}]", ["two jobs", "'same'"]),
        ("jobs: [{graph: 'nets/*.json', budget: 8}]", ["jobs[0].graph", "nets/*.json"]),
        ("jobs: [{graph: chain.jsn, budget: 8}]", ["jobs[0].graph", "'chain.jsn'"]),
        ("jobs: [{graph: chain.json, budget: 8, budget: 9}]", ["line 1", "'budget'", "twice"]),
        ("jobs: [{graph: chain.json, budget: 8}]\nversion: 2", ["versions up to 1", "version 2"]),
        ("jobs: [{graph: chain.json\n", ["line", "YAML"]),
        ("jobs: [!!python/object/apply:os.system [ls]]", ["YAML"]),
        ("? [a]\n: b", ["YAML", "plain word"]),
        ("a: &a [*a]\njobs: *a", ["an alias refers to a value that contains it"]),
        ("[" * 5000, ["nested too deeply"]),
    ],
)
def test_a_bad_jobs_file_is_one_line_with_exit_2(tmp_path: Path, text: str, words: list[str]) -> None:
    write_chain(tmp_path)
    write_jobs(tmp_path, text)
    ran = run(tmp_path, "batch", "jobs.yaml", "--no-cache")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("error: jobs.yaml: ")
    assert ran.err.count("\n") == 1
    assert [word for word in words if word not in ran.err] == []
    assert not (tmp_path / "schedules").exists()
