"""Feeds damaged files to every reader, through the real command line, in a child that is watched.

The child does one case after the other and tells of each; its number and the seed are all it takes to do it again. A case is a failure
if it ends in anything but a result or one line of complaint, takes longer than `SLOWEST`, needs more memory than `MORE_MEMORY`, kills the
process, or opens a file outside the folder it was given.
"""

from __future__ import annotations

import faulthandler
import io
import json
import os
import random
import resource
import select
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, Any

from places import ROOT

SLOWEST = 10.0
"""Seconds."""
MORE_MEMORY = 2**30
"""Bytes of address space a case may add to what the process took before the first."""
START_UP = 120.0
LONGEST_TOLD = 3000
RESULTS = (0, 2)
WITH_SOLVING = (0, 2, 3, 4)
WITH_VERDICT = (0, 2, 6)


@dataclass(frozen=True)
class Kind:
    """One kind of file: how to damage it, and what is damaged."""

    damaged: Callable[[random.Random], bytes]
    good: tuple[bytes, ...]


@dataclass(frozen=True)
class Reader:
    """One way for a file to get in."""

    kind: Kind
    arguments: Sequence[str]
    """Of the command line; `FILE` stands for the damaged file."""
    file: str
    codes: tuple[int, ...] = RESULTS
    read: Callable[[Path], object] | None = None
    """In place of a command, where that would do more than read."""
    refuses: bool = True
    """False if damaged files are shown as such, with exit 0."""


@dataclass(frozen=True)
class Failure:
    reader: str
    case: int
    what: str


@dataclass(frozen=True)
class Tally:
    reader: str
    read: int
    refused: int
    failures: tuple[Failure, ...]
    slowest: float


def fuzz(reader: str, count: int, seed: int, first: int = 0) -> Tally:
    """Run `count` cases of one reader from the case `first` on."""
    read = refused = 0
    slowest = 0.0
    failures: list[Failure] = []
    in_memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="checkmate-fuzz-", dir=in_memory) as folder:
        case = first
        while case < first + count:
            for told in _child(reader, case, first + count, seed, Path(folder)):
                case = told["case"] + 1
                slowest = max(slowest, told["seconds"])
                read += told["outcome"] == "read"
                refused += told["outcome"].startswith("refused: ")
                if not told["outcome"].startswith(("read", "refused: ")):
                    failures.append(Failure(reader, told["case"], told["outcome"][-LONGEST_TOLD:]))
    return Tally(reader, read, refused, tuple(failures), slowest)


def _child(reader: str, first: int, end: int, seed: int, folder: Path) -> Iterator[dict[str, Any]]:
    """What one child tells of its cases; the one in which it died or hung counts as told."""
    command = [sys.executable, __file__, reader, str(first), str(end), str(seed), str(folder)]
    variables = {name: value for name, value in os.environ.items() if not name.startswith("CHECKMATE_")}
    variables |= {"CHECKMATE_DEBUG": "1", "PYTHONPATH": str(Path(__file__).parent.parent)}
    with tempfile.TemporaryFile() as complaints:
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=complaints, env=variables, bufsize=0)
        assert child.stdout is not None
        case = first
        try:
            ready = _line(child.stdout, START_UP)
            while ready and case < end:
                line = _line(child.stdout, 2 * SLOWEST)
                if not line:
                    break
                told = json.loads(line)
                case = told["case"] + 1
                yield told
        finally:
            child.kill()
            child.wait()
            child.stdout.close()
        if case < end:
            complaints.seek(0)
            tail = complaints.read()[-6000:].decode(errors="replace")
            if not ready:
                raise RuntimeError(f"the fuzzer itself fails:\n{tail}")
            what = "hangs" if "Timeout (" in tail or child.returncode == -9 else f"kills the process (code {child.returncode})"
            yield {"case": case, "seconds": SLOWEST, "outcome": f"{what}\n{tail}"}


def _line(stream: IO[bytes], patience: float) -> bytes:
    """A whole line, or nothing if the stream ends or stays silent."""
    ready, _, _ = select.select([stream], [], [], patience)
    line = stream.readline() if ready else b""
    return line if line.endswith(b"\n") else b""


def run_case(reader: Reader, data: bytes, folder: Path) -> str:
    """One file, in this process, whose folder this is: `read`, `refused`, or what is wrong."""
    from checkmate.cli.main import main
    from checkmate.core.errors import InputError

    (folder / reader.file).write_bytes(data)
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    _opened_outside.clear()
    if reader.read is not None:
        try:
            reader.read(Path(reader.file))
        except InputError as error:
            return f"refused: {error}" if not _opened_outside and "\n" not in str(error) else f"opened {_opened_outside}, or {error!r}"
        return "read"
    with redirect_stdout(out), redirect_stderr(err):
        code = int(main([reader.file if word == "FILE" else word for word in reader.arguments]))
    err.flush()
    said = err.buffer.getvalue().decode()  # type: ignore[attr-defined]
    if _opened_outside:
        return f"opened {_opened_outside[0]}"
    if code not in reader.codes or "too little memory" in said:
        return f"exit {code}\n{said}"
    complaints = [line for line in said.splitlines() if not line.startswith(("note: ", "warning: "))]
    if code != 0 and (len(complaints) != 1 or not complaints[0].startswith("error: ")) and code != 6:
        return f"exit {code}, but not one line:\n{said}"
    return f"refused: {said}" if code == 2 else "read"


def damaged_file(reader: Reader, case: int, seed: int) -> bytes:
    return reader.kind.damaged(random.Random(f"{seed}/{reader.file}/{reader.arguments[0]}/{case}"))


_opened_outside: list[str] = []


def _watch_files(folder: Path) -> None:
    """Note every file that is opened outside the folder and outside what Python itself is made of."""
    prefixes = (
        sys.prefix,
        sys.base_prefix,
        "/proc/",
        "/dev/null",
        "/sys/",
        "/etc/localtime",
        "/usr/share/zoneinfo",
        "/usr/lib",
        *sys.path[1:],
    )
    known = tuple(os.path.realpath(place) for place in (folder, ROOT, *prefixes) if str(place))

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        if event == "open" and isinstance(arguments[0], (str, bytes)):
            path = os.path.realpath(os.fsdecode(arguments[0]))
            if not path.startswith(known):
                _opened_outside.append(path)

    sys.addaudithook(hook)


def _limit_memory() -> None:
    taken = next(int(line.split()[1]) * 1024 for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmSize"))
    resource.setrlimit(resource.RLIMIT_AS, (taken + MORE_MEMORY, resource.RLIM_INFINITY))


@cache
def _readers() -> dict[str, Reader]:
    from hostile_files import readers

    return readers()


def _serve(reader: str, first: int, end: int, seed: int, folder: Path) -> None:
    import time

    faulthandler.enable()
    from hostile_files import write_good_files

    inside = folder / "inside"
    inside.mkdir(exist_ok=True)
    write_good_files(inside)
    (folder / "secret.bin").write_bytes(b"not for you" * 100)
    os.chdir(inside)
    told = os.fdopen(os.dup(1), "w", buffering=1)
    chosen = _readers()[reader]
    for data in chosen.kind.good:
        if run_case(chosen, data, inside) != "read":
            raise AssertionError(f"a good file is not read: {run_case(chosen, data, inside)}")
    _watch_files(inside)
    _limit_memory()
    told.write("ready\n")
    for case in range(first, end):
        faulthandler.dump_traceback_later(SLOWEST, exit=True)
        begun = time.perf_counter()
        try:
            outcome = run_case(chosen, damaged_file(chosen, case, seed), inside)
        except BaseException:
            outcome = traceback.format_exc()
        faulthandler.cancel_dump_traceback_later()
        told.write(json.dumps({"case": case, "seconds": time.perf_counter() - begun, "outcome": outcome}) + "\n")


if __name__ == "__main__":
    _serve(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), Path(sys.argv[5]))
