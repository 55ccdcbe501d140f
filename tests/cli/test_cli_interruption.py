"""Ctrl-C, as a terminal sends it, to a real process."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from cli_runs import files_in, run, wait_for, write_chain


def start(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, *arguments], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1, encoding="utf-8"
    )


@pytest.mark.slow
def test_the_best_schedule_so_far_is_written_and_verified(tmp_path: Path) -> None:
    write_chain(tmp_path, layers=40)
    arguments = ["--budget", "9", "--strategy", "optimal", "--time-limit", "10m", "--gap", "0", "-v"]
    process = start(tmp_path, "-m", "checkmate", "solve", "chain.json", *arguments)
    wait_for(process, "best")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "the best schedule found so far" in err
    assert "chain.schedule.json" in out
    assert run(tmp_path, "verify", "chain.json", "chain.schedule.json").code == 0


def test_without_a_schedule_nothing_is_written(tmp_path: Path) -> None:
    """The work here is a sleep in place of a solver: it sees the flag, and has nothing to give."""
    program = (
        "import sys, time\n"
        "from checkmate.core.engine import run\n"
        "from checkmate.cli.main import main\n"
        "from checkmate.core.result import Result, Status, Stop\n"
        "def wait(problem, strategy, settings, watch):\n"
        "    print('waiting', file=sys.stderr, flush=True)\n"
        "    while not watch.expired: time.sleep(0.01)\n"
        "    return Result(Status.UNKNOWN, Stop.INTERRUPTED, strategy=strategy)\n"
        "run.run_strategy = wait\n"
        "sys.exit(main(['solve', 'chain.json', '--budget', '5', '--json']))\n"
    )
    write_chain(tmp_path)
    process = start(tmp_path, "-c", program)
    wait_for(process, "waiting")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "nothing was written" in err
    assert '"status": "interrupted"' in out
    assert files_in(tmp_path) == {"chain.json"}


def test_the_second_ctrl_c_ends_work_that_does_not_listen(tmp_path: Path) -> None:
    program = (
        "import sys, time\n"
        "from checkmate.cli.jobs.interruption import Interruption\n"
        "from checkmate.cli.console import Console\n"
        "with Interruption(Console(), lambda: print('noted', file=sys.stderr, flush=True)):\n"
        "    print('working', file=sys.stderr, flush=True)\n"
        "    time.sleep(600)\n"
    )
    process = start(tmp_path, "-c", program)
    wait_for(process, "working")
    process.send_signal(signal.SIGINT)
    wait_for(process, "noted")
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err == "error: interrupted; nothing was written\n"


def test_ctrl_c_works_as_ever_once_the_work_is_done(tmp_path: Path) -> None:
    program = (
        "import signal\n"
        "from checkmate.cli.jobs.interruption import Interruption\n"
        "from checkmate.cli.console import Console\n"
        "with Interruption(Console(), lambda: None) as interruption: pass\n"
        "assert signal.getsignal(signal.SIGINT) is signal.default_int_handler and not interruption.requested\n"
    )
    process = start(tmp_path, "-c", program)
    assert process.communicate(timeout=60) == ("", "")
    assert process.returncode == 0
