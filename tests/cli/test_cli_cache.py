"""The cache of `batch`: what shares an entry, what is done about a damaged one, and `checkmate cache`."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from batch_files import run_batch, small_batch, write_jobs
from cli_runs import Ran, files_in, run, write_chain

from checkmate.core.model.costs import unit_costs
from checkmate.core.model.graph import pin
from checkmate.core.model.memory_model import MemoryModel
from checkmate.core.model.problem import build_problem
from checkmate.core.settings import Settings
from checkmate.io.formats.result_cache import Cache, cache_key, default_cache_folder
from checkmate.io.formats.task_json import Task
from checkmate.io.load import load


def cache(folder: Path, *arguments: str) -> Ran:
    return run(folder, "cache", *arguments, "--cache", folder / "cache")


def entries(folder: Path) -> list[Path]:
    return sorted((folder / "cache").rglob("*.json"))


@pytest.fixture(scope="module")
def batch_done(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("done")
    small_batch(folder)
    assert run_batch(folder, "-q").code == 0
    assert len(entries(folder)) == 4
    return folder


@pytest.fixture
def filled(batch_done: Path, tmp_path: Path) -> Path:
    """Where a batch of four jobs has run."""
    return Path(shutil.copytree(batch_done, tmp_path, dirs_exist_ok=True))


def sealed(document: dict[str, Any]) -> str:
    """With a checksum that fits: as a forger would."""
    content = {key: document[key] for key in ("key", "about", "answer")}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return json.dumps(document | {"checksum": f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"})


def test_finished_jobs_come_from_the_cache_with_the_same_files(filled: Path) -> None:
    before = {path.name: path.read_bytes() for path in (filled / "schedules").iterdir()}
    for path in (filled / "schedules").iterdir():
        path.unlink()
    ran = run_batch(filled, "--json")
    assert ran.json["from_cache"] == 4
    assert {path.name: path.read_bytes() for path in (filled / "schedules").iterdir()} == before
    assert run_batch(filled, "--json", "--no-cache").json["from_cache"] == 0


def test_what_found_nothing_is_tried_again(tmp_path: Path) -> None:
    write_chain(tmp_path, layers=6)
    write_jobs(tmp_path, "jobs: [{graph: chain.json, budget: 5, strategy: keep-all}]")
    assert run_batch(tmp_path).code == 4
    assert entries(tmp_path) == []


def test_the_key_covers_everything_a_result_depends_on_and_no_more(tmp_path: Path) -> None:
    graph = load(str(write_chain(tmp_path)), dims={}, batch_size=None).graph
    problem = build_problem(graph, unit_costs(graph), budget=9)
    task = Task(problem, "auto", Settings(), 60.0)
    dearer = replace(unit_costs(graph), amounts=(2.0,) + (1.0,) * (len(graph.operations) - 1))
    pinned = pin(graph, lambda name: name == "op3")
    others = [
        replace(task, strategy="optimal"),
        replace(task, time_limit=61.0),
        *(replace(task, settings=replace(task.settings, **change)) for change in ({"seed": 1}, {"gap": 0.1}, {"order": "search"})),
        replace(task, problem=problem.with_budget(10)),
        replace(task, problem=build_problem(graph, dearer, budget=9)),
        replace(task, problem=build_problem(pinned, unit_costs(pinned), budget=9)),
        replace(task, problem=build_problem(graph, unit_costs(graph), budget=9, reserve=1)),
        replace(task, problem=build_problem(graph, unit_costs(graph), budget=9, memory_model=MemoryModel.ONNXRUNTIME)),
    ]
    keys = [cache_key(task, "1"), cache_key(task, "2"), *(cache_key(other, "1") for other in others)]
    assert len(set(keys)) == len(keys)
    renamed = replace(graph, name="another name for the same")
    assert cache_key(replace(task, problem=build_problem(renamed, unit_costs(renamed), budget=9)), "1") == keys[0]


@pytest.mark.parametrize("damage", ["flipped", "cut", "emptied", "renamed", "json", "key", "forged", "sequence"])
def test_a_damaged_entry_is_noticed_and_computed_anew(filled: Path, damage: str) -> None:
    path = next(path for path in entries(filled) if json.loads(path.read_text())["answer"]["sequence"][-1] > 8)
    whole = path.read_text()
    document = json.loads(whole)
    answer = document["answer"]
    match damage:
        case "flipped":
            path.write_text(whole.replace('"seed": 0', '"seed": 1'))
        case "cut":
            path.write_text(whole[: len(whole) // 2])
        case "emptied":
            path.write_text("")
        case "renamed":
            path.write_bytes(next(other for other in entries(filled) if other != path).read_bytes())
        case "json":
            path.write_text("[]")
        case "key":
            path.write_text(whole.replace('"version": 1', '"version": 99', 1))
        case "forged":
            path.write_text(sealed(document | {"answer": answer | {"sequence": answer["sequence"][::-1]}}))
        case _:
            path.write_text(sealed(document | {"answer": answer | {"sequence": [*answer["sequence"], 10**6]}}))
    ran = run_batch(filled, "--json")
    assert (ran.code, ran.json["from_cache"]) == (0, 3)
    assert ran.err.count("damaged cache entry") == 1
    assert str(path.relative_to(filled)) in ran.err
    assert run_batch(filled, "--json").json["from_cache"] == 4


def test_a_cache_that_cannot_be_written_stops_nothing(tmp_path: Path) -> None:
    small_batch(tmp_path)
    (tmp_path / "cache").write_text("a file where the folder should be")
    ran = run(tmp_path, "batch", "jobs.yaml", "--workers", "1", "--json", CHECKMATE_CACHE=str(tmp_path / "cache" / "below"))
    assert (ran.code, ran.json["succeeded"]) == (0, 4)
    assert ran.err.count("results are not cached") == 1


def test_list_and_show(filled: Path) -> None:
    listed = cache(filled, "list", "--json").json
    assert {(entry["graph"], entry["strategy"]) for entry in listed["entries"]} == {("chain", "linearized-greedy")}
    assert listed["bytes"] == sum(path.stat().st_size for path in entries(filled))
    key = listed["entries"][0]["key"]
    table = cache(filled, "list").out
    assert "4 entries" in table
    assert key[:12] in table
    assert str(filled / "cache") in cache(filled, "show", key[:8]).out
    assert cache(filled, "show", key, "--json").json["answer"]["stop"] == "finished"
    assert cache(filled, "path").out == f"{filled / 'cache'}\n"


def test_prune_takes_the_damaged_the_old_and_the_superfluous(filled: Path) -> None:
    damaged, old, first, second = entries(filled)
    damaged.write_text("{}")
    ages = {damaged: 0, old: 40 * 86400, first: 200, second: 100}
    for path, age in ages.items():
        os.utime(path, (time.time() - age, time.time() - age))
    abandoned = damaged.parent / ".checkmate-0123456789abcdef.tmp"
    abandoned.write_text("half")
    os.utime(abandoned, (1, 1))
    (filled / "cache" / "notes.txt").write_text("mine")
    pruned = cache(filled, "prune", "--older-than", "30d", "--json").json
    assert sorted(pruned["removed"]) == sorted([damaged.stem, old.stem])
    assert not abandoned.exists()
    cache(filled, "prune", "--max-size", str(second.stat().st_size))
    assert entries(filled) == [second]
    document = json.loads(second.read_text())
    second.write_text(sealed(document | {"about": document["about"] | {"checkmate": "0.0.1"}}))
    assert "of checkmate 0.0.1" in cache(filled, "list").out
    assert "removed 1" in cache(filled, "prune").out
    assert files_in(filled / "cache") == {"notes.txt"}


def test_clear_deletes_entries_and_nothing_else(filled: Path) -> None:
    (filled / "cache" / "notes.txt").write_text("mine")
    (entries(filled)[0].parent / "notes.json").write_text("mine too")
    assert cache(filled, "clear", "--json").json["kept"] == 0
    assert [path.name for path in entries(filled)] == ["notes.json"]
    assert (filled / "cache" / "notes.txt").exists()
    assert cache(filled, "list", "--json").json["entries"] == []


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["lst"], "'list'?"),
        (["show"], "KEY"),
        (["show", "ffff"], "no entry"),
        (["show", ""], "4 entries"),
        (["list", "ab"], "takes no KEY"),
        (["clear", "--max-size", "1GB"], "for prune"),
        (["prune", "--older-than", "long"], "'long'"),
    ],
)
def test_bad_actions_are_errors(filled: Path, arguments: list[str], word: str) -> None:
    ran = cache(filled, *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert word in ran.err


def test_the_default_is_the_users_cache_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    monkeypatch.setattr("sys.platform", "linux")
    assert default_cache_folder() == Path("/somewhere/checkmate")
    assert Cache(default_cache_folder()).entries() == []


def test_links_in_the_cache_are_neither_read_nor_written_through(filled: Path) -> None:
    """An entry, or a folder of entries, that leads elsewhere is not the cache's."""
    outside = filled / "outside"
    outside.mkdir()
    first, *others = entries(filled)
    first.rename(outside / first.name)
    first.symlink_to(outside / first.name)
    for folder in {path.parent for path in others} - {first.parent}:
        folder.rename(outside / folder.name)
        folder.symlink_to(outside / folder.name)
    before = {path: path.read_bytes() for path in outside.rglob("*.json")}
    assert cache(filled, "list", "--json").json["entries"] == []
    ran = run_batch(filled, "--json")
    assert ran.code == 0
    assert ran.json["from_cache"] == 0
    assert {path: path.read_bytes() for path in outside.rglob("*.json")} == before


def test_a_pipe_in_place_of_an_entry_is_not_waited_for(filled: Path) -> None:
    path = entries(filled)[0]
    path.unlink()
    os.mkfifo(path)
    assert len(cache(filled, "list", "--json").json["entries"]) == 3
    assert run_batch(filled, "-q").code == 0


@pytest.mark.parametrize("change", [{"budget_bytes": "many"}, {"budget_bytes": None, "operations": []}, {"status": 7, "key": "x"}, {}])
def test_an_entry_of_strange_things_is_shown(filled: Path, change: dict[str, object]) -> None:
    """Its checksum is right, so somebody made it."""
    path = entries(filled)[0]
    document = json.loads(path.read_text())
    path.write_text(sealed(document | {"about": document["about"] | change, "answer": {"run": [], "bound": "high"}}))
    for arguments in (("list",), ("list", "--json"), ("show", path.stem), ("show", path.stem, "--json")):
        assert cache(filled, *arguments).code == 0
