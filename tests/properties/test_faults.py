"""What can go wrong around us: full disks, folders nobody can write to, files that vanish, too little memory. Each is one clear line."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from cli_runs import files_in, run, write_chain
from places import SAMPLES
from small_models import mlp

from checkmate.core.errors import InputError
from checkmate.io.formats.content import Content

SOLVE = ("solve", "chain.json", "--budget", "100%", "--strategy", "keep-all")


def limited(folder: Path, limit: Callable[[], None], *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """A command line in a process of its own that begins with `limit`."""
    command = [sys.executable, "-m", "checkmate", *arguments]
    return subprocess.run(
        command, cwd=folder, env={**os.environ, **variables}, preexec_fn=limit, capture_output=True, text=True, timeout=120, check=False
    )


def one_line(done: subprocess.CompletedProcess[str], code: int) -> str:
    assert done.returncode == code, done.stderr
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    return done.stderr


def no_file_larger_than(size: int) -> Callable[[], None]:
    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    return limit


def test_a_disk_that_fills_up_while_writing_leaves_the_old_file(tmp_path: Path) -> None:
    write_chain(tmp_path, layers=30)
    assert run(tmp_path, *SOLVE).code == 0
    schedule = tmp_path / "chain.schedule.json"
    old = schedule.read_bytes()
    done = limited(tmp_path, no_file_larger_than(4096), *SOLVE)
    assert "cannot write chain.schedule.json: file too large" in one_line(done, 2)
    assert schedule.read_bytes() == old
    assert files_in(tmp_path) == {"chain.json", "chain.schedule.json"}


def test_a_disk_that_is_full(tmp_path: Path) -> None:
    write_chain(tmp_path)
    ran = run(tmp_path, *SOLVE, "-o", "/dev/full")
    assert ran.code == 2
    assert ran.err == "error: cannot write /dev/full: no space left on device\n"


def test_the_model_and_its_schedule_are_not_half_there_if_the_model_does_not_fit(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(mlp().SerializeToString())
    arguments = ("solve", "model.onnx", "--batch-size", "4", "--budget", "100%", "--strategy", "keep-all")
    done = limited(tmp_path, no_file_larger_than(256), *arguments)
    assert "cannot write model.remat.onnx: file too large" in one_line(done, 2)
    assert files_in(tmp_path) == {"model.onnx"}


@pytest.mark.parametrize("output", ["chain.json/out.json", "/proc/out.json", "/sys/deeper/still/out.json"])
def test_places_nobody_can_write_to_are_refused_before_the_work(tmp_path: Path, output: str) -> None:
    """Not even root can make a file there. That it is said first shows in a graph that is not."""
    write_chain(tmp_path)
    ran = run(tmp_path, "solve", "nowhere.json", "--budget", "8", "-o", output)
    assert ran.code == 2
    assert "cannot write" in ran.err
    assert ran.err.count("\n") == 1


def test_a_file_that_vanishes_after_the_first_look(tmp_path: Path) -> None:
    path = write_chain(tmp_path)
    content = Content.from_path(path)
    path.unlink()
    with pytest.raises(InputError, match=r"chain\.json: cannot be read: no such file or directory"):
        _ = content.document


def test_files_that_are_not_there(tmp_path: Path) -> None:
    write_chain(tmp_path)
    for arguments in (
        ("solve", "gone.json", "--budget", "8"),
        ("verify", "chain.json", "gone.json"),
        ("inspect", "chain.json", "--costs", "gone.json"),
        ("inspect", "chain.json", "--device", "gone.yaml"),
        ("inspect", "chain.json", "--config", "gone.yaml"),
        ("batch", "gone.yaml"),
    ):
        ran = run(tmp_path, *arguments)
        assert ran.code == 2
        assert "gone." in ran.err
        assert ran.err.count("\n") == 1


def test_too_little_memory_is_one_line_and_exit_4(tmp_path: Path) -> None:
    """The document alone takes more than the process may have."""
    (tmp_path / "graph.json").write_text('{"nodes": [' + ",".join(["[]"] * 4_000_000) + "]}")

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (250 * 2**20, resource.RLIM_INFINITY))

    done = limited(tmp_path, limit, "inspect", "graph.json")
    assert "too little memory" in one_line(done, 4)


@pytest.mark.slow
@pytest.mark.parametrize("kilobytes", [700_000, 450_000, 300_000])
def test_a_limit_on_the_address_space_ends_in_a_result_or_one_line(tmp_path: Path, kilobytes: int) -> None:
    """`ulimit -v`: OpenBLAS, which scipy loads, waits forever if it cannot have its memory."""
    for graph in ("resnet.onnx", "chain.onnx"):
        arguments = ("solve", str(SAMPLES / graph), "--budget", "70%", "--time-limit", "5s", "-q", "-o", "out/")
        done = limited(tmp_path, address_space(1024 * kilobytes), *arguments)
        if done.returncode != 0:
            assert "too little memory" in one_line(done, 4)


def test_a_limit_below_what_libraries_need_to_start_is_one_line(tmp_path: Path) -> None:
    write_chain(tmp_path)
    done = limited(tmp_path, address_space(150 * 2**20), *SOLVE)
    assert "too little memory to start: allow at least 251658240" in one_line(done, 4)
    assert limited(tmp_path, address_space(150 * 2**20), "--version").returncode == 0


def address_space(size: int) -> Callable[[], None]:
    return lambda: resource.setrlimit(resource.RLIMIT_AS, (size, resource.RLIM_INFINITY))


def test_libraries_that_run_out_of_memory_in_their_own_words(tmp_path: Path) -> None:
    from checkmate.cli.failures import explain

    hidden = OSError("could not load library")
    hidden.__cause__ = OSError(12, "Cannot allocate memory")
    for error in (
        MemoryError(),
        RuntimeError("can't start new thread"),
        ImportError("x.so: failed to map segment from shared object"),
        SystemError("error return without exception set"),
        hidden,
    ):
        assert explain(error)[:2] == (4, "unknown")
    assert explain(RuntimeError("something else"))[0] == 1


def test_no_place_for_temporary_files_is_no_bug(tmp_path: Path) -> None:
    """The solver's process keeps its complaints in one."""
    write_chain(tmp_path, layers=6)
    program = (
        "import sys, tempfile\n"
        "tempfile._candidate_tempdir_list = lambda: ['/nowhere']\n"
        "from checkmate.cli.main import main\n"
        "sys.exit(main(['solve', 'chain.json', '--budget', '4', '--strategy', 'optimal']))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert "no usable temporary directory" in one_line(done, 2)
    assert "TMPDIR" in done.stderr


def test_the_log_tells_faults_too(tmp_path: Path) -> None:
    write_chain(tmp_path)
    run(tmp_path, *SOLVE, "-o", "/dev/full", "--log-file", "run.log")
    assert "ERROR   cannot write /dev/full: no space left on device" in (tmp_path / "run.log").read_text()
