"""Streams that are closed, signals that come too early, caches that are damaged: around every command, and no traceback."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cli_runs import write_chain
from places import ROOT

SOLVE = ("solve", "chain.json", "--budget", "4", "-o", "out/")


def shell(folder: Path, redirection: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = f'"$@" {redirection}'
    return subprocess.run(
        ["sh", "-c", command, "sh", sys.executable, "-m", "checkmate", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize(
    ("redirection", "arguments", "code", "words"),
    [
        ("<&-", ("inspect", "-"), 2, "error: stdin: the file is empty\n"),
        ("<&-", ("batch", "-"), 2, "error: stdin: the file is empty"),
        ("<&-", ("inspect", "chain.json", "-q"), 0, ""),
        (">&-", ("inspect", "chain.json"), 2, "error: cannot write to stdout: Bad file descriptor\n"),
        (">&-", ("inspect", "chain.json", "--json"), 2, "error: cannot write to stdout: Bad file descriptor\n"),
        (">&-", ("--version",), 2, "error: cannot write to stdout: Bad file descriptor\n"),
        (">&-", (*SOLVE, "-q"), 0, ""),
        ("2>&-", ("inspect", "nowhere.json"), 2, ""),
        ("<&- >&- 2>&-", (*SOLVE, "-q"), 0, ""),
        ("<&- >&- 2>&-", ("inspect", "nowhere.json", "--json"), 2, ""),
    ],
)
def test_closed_streams(tmp_path: Path, redirection: str, arguments: tuple[str, ...], code: int, words: str) -> None:
    write_chain(tmp_path)
    graph = (tmp_path / "chain.json").read_bytes()
    done = shell(tmp_path, redirection, *arguments)
    assert done.returncode == code, done.stderr
    assert done.stderr.startswith(words)
    assert done.stderr.count("\n") == words.count("\n") or words.startswith("error")
    assert "Traceback" not in done.stderr
    assert (tmp_path / "chain.json").read_bytes() == graph, "no file is opened in place of a stream"


KERNEL = """
from checkmate.core.jit.compile import outer

@outer
def double(number):
    return 2 * number

assert double(21) == 42
"""


@pytest.mark.parametrize("damage", ["emptied", "cut", "changed", "folder"])
@pytest.mark.parametrize("suffix", ["nbi", "nbc"])
def test_a_damaged_cache_of_compiled_code_is_no_bug(tmp_path: Path, damage: str, suffix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is damaged is compiled again, and kept if it can be."""
    import numba

    monkeypatch.setattr(numba.core.config, "CACHE_DIR", str(tmp_path / "numba"))
    (tmp_path / "kernel.py").write_text(KERNEL)

    def from_cache() -> bool:
        spec = importlib.util.spec_from_file_location("kernel", tmp_path / "kernel.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return bool(module.double.stats.cache_hits)

    assert [from_cache(), from_cache()] == [False, True]
    (path,) = (tmp_path / "numba").rglob(f"*.{suffix}")
    data = path.read_bytes()
    match damage:
        case "emptied":
            path.write_bytes(b"")
        case "cut":
            path.write_bytes(data[: len(data) // 2])
        case "changed":
            path.write_bytes(data[:8] + bytes(byte ^ 0x55 for byte in data[8:64]) + data[64:])
        case _:
            path.unlink()
            path.mkdir()
    assert not from_cache()
    if damage != "folder":
        assert from_cache()


@pytest.mark.slow
def test_an_interruption_right_after_the_start_is_one_line(tmp_path: Path) -> None:
    """Also while Python itself and the program are still being loaded."""
    write_chain(tmp_path, layers=60)
    for delay in (0.0, 0.005, 0.01, 0.02, 0.03, 0.05, 0.08, 0.12, 0.2):
        process = subprocess.Popen(
            [sys.executable, "-m", "checkmate", *SOLVE, "--time-limit", "20s", "--strategy", "optimal", "--gap", "0"],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        time.sleep(delay)
        os.killpg(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=60)
        assert process.returncode in (130, -signal.SIGINT, 1), (delay, err)
        ours = [line for line in err.splitlines() if f"{ROOT}/" in line and "_root/__" not in line and "/site-packages/" not in line]
        assert ours == [], "only Python itself, before our first line, prints a traceback"
