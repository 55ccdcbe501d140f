"""Compiling before any clock runs: all of it, in two processes, and whatever goes wrong with the second."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from places import TESTS

from checkmate.core.jit import beside
from checkmate.core.jit.compile import outer
from checkmate.core.search.warm import warm_up_splices

FIRST_USE = """
import json, sys
from numba.core.event import RecordingListener, install_listener
from chains import unit_chain
from random_graphs import random_problem
from checkmate.core.engine.run import run_strategy
from checkmate.core.events import Watch
from checkmate.core.search import splice_kernels
from checkmate.core.search.warm import warm_up
from checkmate.core.settings import Settings

warm_up()
hits = [sum(kernel.stats.cache_hits.values()) for kernel in (splice_kernels.reset, splice_kernels.anneal)]
with install_listener("numba:compile", listener := RecordingListener()):
    for problem in (unit_chain(8, 6), random_problem(5, most=400)):
        for order in ("given", "search"):
            run_strategy(problem, "auto", Settings(order=order), Watch(3.0))
compiled = [str(event.data["dispatcher"]) for _, event in listener.buffer]
json.dump({"hits": hits, "compiled": compiled, "operations": problem.count}, sys.stdout)
"""


@pytest.mark.slow
def test_the_first_use_compiles_in_two_processes_and_nothing_is_compiled_after_it(tmp_path: Path) -> None:
    variables = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(TESTS / "support")}
    done = subprocess.run([sys.executable, "-c", FIRST_USE], env=variables, capture_output=True, text=True, check=False, timeout=300)
    assert done.stderr == ""
    found = json.loads(done.stdout)
    assert found["hits"] == [1, 1]
    assert found["compiled"] == []
    assert found["operations"] > 150


def test_the_second_process_ends_when_the_first_does() -> None:
    """Then the end of the pipe that only the first one holds is closed."""
    child = beside.start(signal.pause)
    assert child is not None
    assert child.stdin is not None
    with pytest.raises(subprocess.TimeoutExpired):
        child.wait(1)
    child.stdin.close()
    assert child.wait(60) == 1


def test_a_second_process_that_fails_or_cannot_be_had_stops_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    child = beside.start(time.sleep)
    assert child is not None
    assert child.wait(60) == 1
    beside.end(child)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "gone"))
    assert beside.start(warm_up_splices) is None


def test_a_kernel_that_can_be_cached_nowhere_is_compiled_all_the_same() -> None:
    """As where the package belongs to another user and there is no home; here, because the function is in no file."""
    names: dict[str, object] = {}
    exec("def twice(number): return 2 * number", names)
    kernel = outer(names["twice"])
    assert kernel(3) == 6
    assert kernel.stats.cache_path is None
    assert beside.is_cached(kernel)
