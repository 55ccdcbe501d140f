"""A few of benchmarks/kills.py: what `kill -9` leaves is the old file or the new one, never half of one."""

from __future__ import annotations

from pathlib import Path

import pytest
from killing import Killer


@pytest.mark.slow
@pytest.mark.parametrize(("command", "times"), [("solve", 20), ("batch", 8)])
def test_a_kill_at_any_moment_leaves_whole_files_and_the_next_run_finishes(tmp_path: Path, command: str, times: int) -> None:
    killer = Killer(tmp_path, command, seed=1)
    found = killer.kill(times)
    killer.finish()
    assert found.corrupt == []
    assert found.kills == times
    assert found.finished < times, "nothing was killed in the middle of its work"
