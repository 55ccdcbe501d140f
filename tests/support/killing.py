"""Kills commands at random moments, as `kill -9` does, and looks at what they leave.

Commands alternate between two budgets over the same files, so that every file has an old and a new content: after a kill it must be one of
the two. To do many in little time, a command is a fork of this process, which has everything imported; the kill and the files are real.
"""

from __future__ import annotations

import io
import json
import os
import random
import re
import shutil
import signal
import time
from collections.abc import Sequence
from contextlib import chdir, redirect_stdout, suppress
from dataclasses import dataclass, field
from pathlib import Path

from cli_runs import chain_document
from small_models import mlp

from checkmate.cli.main import main

BUDGETS = ("100%", "140%")
LOG = "run.log"
_LOG_LINE = re.compile(r"\d{4}-\d\d-\d\d .*|    .*")
_TEMPORARY = ".checkmate-"
JOBS = """version: 1
defaults: {strategy: chen-greedy, output: out, budget: BUDGET, name: "{graph}"}
jobs:
  - graph: chain.json
  - graph: model.onnx
    batch-size: 4
  - graph: chain.json
    name: same
    strategy: last-node
"""


@dataclass
class Kills:
    """What came of a number of kills."""

    kills: int = 0
    finished: int = 0
    """Commands that were done before they could be killed."""
    with_old: int = 0
    with_new: int = 0
    leftovers: int = 0
    """Temporary files that a kill left behind, as it must."""
    corrupt: list[str] = field(default_factory=list)


def fork(folder: Path, arguments: Sequence[str]) -> int:
    """Start a command line in a process, and a process group, of its own."""
    child = os.fork()
    if child:
        return child
    try:
        os.setsid()
        os.chdir(folder)
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(nowhere, stream)
        code = int(main(list(arguments)))
    except BaseException:
        code = 99
    os._exit(code)


def run_to_the_end(folder: Path, arguments: Sequence[str]) -> float:
    """Seconds it took; it must not fail."""
    begun = time.monotonic()
    _, status = os.waitpid(fork(folder, arguments), 0)
    assert os.waitstatus_to_exitcode(status) == 0, (arguments, status)
    return time.monotonic() - begun


class Killer:
    """One folder, one kind of command, and the two contents each of its files can have."""

    def __init__(self, folder: Path, command: str, seed: int) -> None:
        self.folder, self.command = folder, command
        self.draw = random.Random(f"{command}/{seed}")
        self.result = Kills()
        (folder / "chain.json").write_text(json.dumps(chain_document(6)))
        (folder / "model.onnx").write_bytes(mlp().SerializeToString())
        self._import_everything()
        self._known: dict[str, list[object]] = {}
        self._longest = 0.0
        for budget in BUDGETS:
            self._longest = max(self._longest, self._run(budget))
            for name, content in self._contents().items():
                self._known.setdefault(name, []).append(content)

    def _import_everything(self) -> None:
        with chdir(self.folder), redirect_stdout(io.StringIO()):
            for command in (["inspect", "model.onnx", "--batch-size", "4"], self._arguments(BUDGETS[0])):
                assert main(command) == 0

    def kill(self, times: int) -> Kills:
        for number in range(times):
            budget = BUDGETS[number % 2]
            if self.draw.random() < 0.3:
                shutil.rmtree(self.folder / "cache", ignore_errors=True)
            child = fork(self.folder, self._arguments(budget))
            time.sleep(self.draw.uniform(0, 0.8 * self._longest))
            with_all = self.draw.random() < 0.5
            done, _ = os.waitpid(child, os.WNOHANG)
            if done:
                self.result.finished += 1
            else:
                with suppress(ProcessLookupError):
                    if with_all:
                        os.killpg(child, signal.SIGKILL)
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
            self.result.kills += 1
            self._look(number, budget)
        return self.result

    def finish(self) -> None:
        """Whatever was killed before, the next run ends with the same files as if nothing had happened."""
        for budget, which in zip(BUDGETS, range(2), strict=True):
            self._run(budget)
            for name, content in self._contents().items():
                if content != self._known[name][which]:
                    self.result.corrupt.append(f"{name} is not as it should be after the last run")

    def _run(self, budget: str) -> float:
        return run_to_the_end(self.folder, self._arguments(budget))

    def _arguments(self, budget: str) -> list[str]:
        if self.command == "batch":
            (self.folder / "jobs.yaml").write_text(JOBS.replace("BUDGET", budget))
            return ["batch", "jobs.yaml", "--workers", "1", "--cache", "cache", "-o", "results.json", "-q", "--log-file", LOG]
        return [
            "solve",
            "model.onnx",
            "--batch-size",
            "4",
            "--strategy",
            "chen-greedy",
            "--budget",
            budget,
            "-o",
            "out/",
            "-q",
            "--log-file",
            LOG,
        ]

    def _contents(self) -> dict[str, object]:
        """Of every result, without what differs between equal runs."""
        found = [*sorted((self.folder / "out").glob("[!.]*")), *sorted(self.folder.glob("results.json"))]
        return {path.name: _content(path) for path in found}

    def _look(self, number: int, budget: str) -> None:
        for path in list(self.folder.rglob(f"{_TEMPORARY}*")):
            self.result.leftovers += 1
            path.unlink(missing_ok=True)
        try:
            contents = self._contents()
        except (ValueError, OSError) as error:
            self.result.corrupt.append(f"kill {number}: {error}")
            return
        for name, content in contents.items():
            if content not in self._known[name]:
                self.result.corrupt.append(f"kill {number}: {name} is neither the old file nor the new one")
            elif content == self._known[name][BUDGETS.index(budget)]:
                self.result.with_new += 1
            else:
                self.result.with_old += 1
        if missing := set(self._known) - set(contents):
            self.result.corrupt.append(f"kill {number}: {', '.join(missing)} gone")
        lines = (self.folder / LOG).read_text().splitlines()
        if bad := [line for line in lines if not _LOG_LINE.fullmatch(line)]:
            self.result.corrupt.append(f"kill {number}: the log has the line {bad[0]!r}")
        for entry in (self.folder / "cache").rglob("*.json"):
            json.loads(entry.read_bytes())


def _content(path: Path) -> object:
    if path.suffix != ".json":
        return path.read_bytes()
    document = json.loads(path.read_bytes())
    return _without(document, ("run", "seconds", "created", "cached", "from_cache"))


def _without(item: object, keys: tuple[str, ...]) -> object:
    if isinstance(item, dict):
        return {key: _without(content, keys) for key, content in item.items() if key not in keys}
    return [_without(content, keys) for content in item] if isinstance(item, list) else item
