"""CBC as a child process: the binary of the wheel `cbcbox`, or a `cbc` on the path.

CBC has no Python interface: the matrix is written to a temporary MPS file, and the solution is read from a text file. The first line of the
solution file says whether it is optimal, infeasible, or stopped with or without a solution.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import numpy as np

from ..errors import UnavailableError
from ..events import Event, Watch
from ..milp.standard_form import StandardForm
from ..result import Status, Stop
from ..settings import Settings
from .base import Progress, SolverResult, failure, ignore, without_columns
from .mps import column_name, write_mps

_NUMBER = r"(-?[\d.]+(?:[eE][+-]?\d+)?)"
_PROGRESS = (
    re.compile(rf"Cbc0010I After .* on tree, {_NUMBER} best solution, best possible {_NUMBER}"),
    re.compile(rf"^\W*\d+ +\d+ +\d+ +{_NUMBER} (?:.* )?{_NUMBER} +[\d.]+% +[\d.]+$"),
)
"""Log lines of branch and bound with incumbent and bound, of release 2.10 and of development builds."""
_FOUND = (re.compile(rf"Cbc00(?:04|12|16)I .*?solution of {_NUMBER}"), re.compile(rf" best {_NUMBER} in "))
PATIENCE = 2.0
"""Seconds after the time limit, or after a request to stop, until the process is killed."""
_BOUND = re.compile(rf"(?:Lower bound:|best possible|Bound:) *{_NUMBER}")


class Cbc:
    """Runs `cbc` on a temporary MPS file."""

    name = "cbc"

    def require(self) -> None:
        if _executable() is None:
            raise UnavailableError("the solver CBC is missing: pip install 'checkmate-remat[cbc]' (or cbcbox), or install a system cbc")

    def version(self) -> str:
        command = _executable()
        assert command is not None
        printed = subprocess.run([command, "--version"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False).stdout
        found = re.search(r"[Vv]ersion:? +(\S.*)", printed)
        return found.group(1).strip() if found else "unknown"

    def solve(
        self,
        form: StandardForm,
        settings: Settings,
        watch: Watch,
        start: Mapping[int, float] | None = None,
        on_progress: Progress = ignore,
    ) -> SolverResult:
        if not form.columns:
            return without_columns(form)
        command = _executable()
        assert command is not None
        with tempfile.TemporaryDirectory(prefix="checkmate-cbc-") as folder:
            model, solution, first = (Path(folder) / name for name in ("model.mps", "solution.txt", "start.txt"))
            write_mps(form, model)
            arguments = [command, str(model), "-timeMode", "elapsed", "-seconds", f"{max(watch.remaining, 0.1):.2f}"]
            arguments += ["-ratioGap", repr(settings.gap), "-allowableGap", "1e-9"]
            arguments += ["-randomCbcSeed", str(settings.seed % 2**31 or 1), "-randomSeed", str(settings.seed % 2**31 or 1)]
            if settings.threads:
                arguments += ["-threads", str(settings.threads)]
            if start:
                first.write_text(
                    "start\n" + "".join(f"{row} {column_name(column)} {value} 0\n" for row, (column, value) in enumerate(start.items()))
                )
                arguments += ["-mipstart", str(first)]
            arguments += ["-solve", "-printingOptions", "all", "-solution", str(solution)]
            code, log = _run(arguments, watch, on_progress, form.offset)
            text = solution.read_text(errors="replace") if solution.exists() else ""
        try:
            return _result(form, text, log, watch, code)
        except (ValueError, IndexError):
            watch.on_event(failure("CBC", "its solution file cannot be parsed"))
            return SolverResult(Status.UNKNOWN, Stop.FINISHED)


def _executable() -> str | None:
    try:
        import cbcbox

        return str(cbcbox.cbc_bin_path())
    except ImportError:
        return shutil.which("cbc")


def _run(arguments: list[str], watch: Watch, on_progress: Progress, offset: float) -> tuple[int | None, list[str]]:
    """Run until it ends, reaches its time limit, or is asked to stop; lines of its log are reported as progress.

    Returns its exit code, None if it had to be killed, and its log.
    """
    lines: list[str] = []
    with subprocess.Popen(
        arguments,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        errors="replace",
        start_new_session=os.name == "posix",
    ) as child:

        def read() -> None:
            assert child.stdout is not None
            for line in child.stdout:
                lines.append(line)
                incumbent, bound = parse_progress(line)
                if incumbent is not None or bound is not None:
                    on_progress(None if incumbent is None else incumbent + offset, None if bound is None else bound + offset)

        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        asked = ended = False
        patient_until = time.monotonic() + watch.remaining + PATIENCE
        try:
            while child.poll() is None:
                with suppress(subprocess.TimeoutExpired):
                    child.wait(0.05)
                    break
                if time.monotonic() > patient_until:
                    ended = True
                    _kill(child)
                elif watch.interrupted() and not asked:
                    asked, patient_until = True, time.monotonic() + PATIENCE
                    child.send_signal(signal.SIGINT)
        except BaseException:
            _kill(child)
            raise
        reader.join()
    if ended:
        watch.on_event(Event("", message="CBC did not stop in time and was killed"))
    return None if ended else child.returncode, lines


def _kill(child: subprocess.Popen[str]) -> None:
    """Kill it with all its child processes: one that holds an end of the pipe would block us."""
    if os.name == "posix":
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
    else:
        child.kill()


def parse_progress(line: str) -> tuple[float | None, float | None]:
    """Incumbent and bound in a line of the log, if it has them; 1e50 means none."""
    for pattern in _PROGRESS:
        if match := pattern.search(line):
            incumbent, bound = (float(group) for group in match.groups())
            return (incumbent if abs(incumbent) < 1e40 else None), bound
    for pattern in _FOUND:
        if match := pattern.search(line):
            return float(match.group(1)), None
    return None, None


def _result(form: StandardForm, text: str, log: list[str], watch: Watch, code: int | None) -> SolverResult:
    headline, _, body = text.partition("\n")
    if not headline and code is not None and not watch.expired:
        last = next((f": {line.strip()[:200]}" for line in reversed(log) if line.strip()), "")
        ended = f"signal {-code}" if code < 0 else f"code {code}"
        watch.on_event(failure("CBC", f"it ended with {ended} without an answer{last}"))
        return SolverResult(Status.UNKNOWN, Stop.FINISHED)
    stop = Stop.INTERRUPTED if watch.interrupted() else Stop.TIME_LIMIT
    if headline.startswith(("Infeasible", "Integer infeasible")):
        if watch.expired:
            # Some builds report a model as infeasible if they had no time to solve it.
            return SolverResult(Status.UNKNOWN, stop)
        return SolverResult(Status.INFEASIBLE, Stop.FINISHED, bound=np.inf)
    is_mip = bool(form.integer.any())
    if headline.startswith("Optimal"):
        values = _values(form, body)
        cost = float(form.objective @ values) + form.offset
        bound = _last_bound(log, form.offset) if is_mip else cost
        return SolverResult(Status.OPTIMAL, Stop.FINISHED, values, cost if bound is None else min(bound, cost))
    bound = _last_bound(log, form.offset)
    proven = -np.inf if bound is None else bound
    if not headline.startswith("Stopped") or "no integer solution" in headline or not is_mip:
        return SolverResult(Status.UNKNOWN, stop, bound=proven)
    return SolverResult(Status.FEASIBLE, stop, _values(form, body), proven)


def _values(form: StandardForm, body: str) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Lines are: number, name, value, reduced cost; `**` marks a line beyond tolerance."""
    values = np.zeros(form.columns)
    for line in body.splitlines():
        words = line.replace("**", " ").split()
        if len(words) >= 3 and words[1].startswith("c"):
            values[int(words[1][1:])] = float(words[2])
    return values


def _last_bound(log: list[str], offset: float) -> float | None:
    for line in reversed(log):
        if match := _BOUND.search(line):
            return float(match.group(1)) + offset
    return None
