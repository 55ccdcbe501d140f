"""HiGHS, the default solver: open source, through its wheel highspy, in its own process.

During presolve, cuts and crossover HiGHS ignores its time limit and requests to stop, for up to half a minute on large models. So this
module enforces the time limit: it does not wait for a late answer, and uses the best solution that HiGHS has reported.
"""

from __future__ import annotations

import queue
import time
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import UnavailableError
from ..events import Event, Watch
from ..milp.standard_form import StandardForm
from ..result import Status, Stop
from ..settings import Settings
from .base import Progress, SolverResult, failure, ignore, without_columns
from .process import SolverProcess, give_back, take

STOPS = {
    "kOptimal": Stop.FINISHED,
    "kInfeasible": Stop.FINISHED,
    "kObjectiveTarget": Stop.FINISHED,
    "kSolutionLimit": Stop.FINISHED,
    "kTimeLimit": Stop.TIME_LIMIT,
    "kInterrupt": Stop.INTERRUPTED,
}
"""HiGHS model status -> why it stopped."""
PATIENCE = 1.5
"""Seconds after the time limit, or after a request to stop, until the process is killed."""
_GLANCE = 0.05
"""Seconds between two checks of the clock."""
_TELLING = 0.5
"""Least number of seconds between two progress messages."""
_SWITCHED_OFF = 1 << 16
"""A rule of HiGHS' presolve, the enumeration of a row's solutions. The variables it fixes make another rule drop rows wrongly, so that
feasible programs are reported as infeasible (HiGHS 1.14 and 1.15, its issue 3216)."""
_WORKER = f"{__package__}.highs_worker"


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """The answer of HiGHS; if it was killed, what it had reported before."""

    word: str
    """HiGHS' own model status, such as `kOptimal`; empty if it never answered."""
    stop: Stop
    bound: float
    values: NDArray[np.float64] | None = None
    prices: NDArray[np.float64] | None = None
    """The dual values of the rows of an LP; they prove a bound even if they are not optimal."""
    found: tuple[NDArray[np.float64], ...] = ()
    """Solutions reported on the way, in order."""


class Highs:
    """HiGHS behind the common solver protocol."""

    name = "highs"

    def require(self) -> None:
        if find_spec("highspy") is None:
            raise UnavailableError("the solver HiGHS is missing: pip install highspy")

    def version(self) -> str:
        return metadata.version("highspy")

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
        return as_result(form, ask(form, mip_options(settings), watch, start, on_progress))


def mip_options(settings: Settings) -> dict[str, Any]:
    """HiGHS' options for an integer program."""
    options = {
        "mip_rel_gap": settings.gap,
        "mip_abs_gap": 1e-9,
        "mip_min_logging_interval": _TELLING,
        "random_seed": settings.seed,
        "threads": settings.threads or 0,
        "presolve": "choose" if settings.presolve else "off",
    }
    if settings.nodes is not None:
        options["mip_max_nodes"] = settings.nodes
    if settings.good_enough is not None:
        options["objective_target"] = settings.good_enough
    return options


def as_result(form: StandardForm, answer: Answer) -> SolverResult:
    """In our own words."""
    if answer.word == "kInfeasible":
        return SolverResult(Status.INFEASIBLE, Stop.FINISHED, bound=np.inf)
    if answer.word == "kOptimal":
        return SolverResult(Status.OPTIMAL, answer.stop, answer.values, answer.bound, answer.found)
    values = answer.values if form.integer.any() else None
    return SolverResult(Status.UNKNOWN if values is None else Status.FEASIBLE, answer.stop, values, answer.bound, answer.found)


def ask(
    form: StandardForm,
    options: Mapping[str, Any],
    watch: Watch,
    start: Mapping[int, float] | None = None,
    on_progress: Progress = ignore,
) -> Answer:
    """Send a model to a worker, with options by HiGHS' names, and wait for the answer until shortly after the time limit of the watch."""
    asked = Asked(form, {"time_limit": max(watch.remaining, 0.01), **options}, start)
    answer = asked.wait(watch, on_progress)
    assert answer is not None
    return answer


class Asked:
    """A model in a worker. `wait` returns the answer, or None at a pause: HiGHS goes on when `wait` is called again."""

    def __init__(
        self, form: StandardForm, options: Mapping[str, Any], start: Mapping[int, float] | None = None, pause_every: int | None = None
    ) -> None:
        self.found: list[NDArray[np.float64]] = []
        """Solutions reported so far, in order."""
        self.bound = -np.inf
        self._paused = False
        self._worker: SolverProcess | None = take(_WORKER)
        settings = {"output_flag": False, "presolve_rule_off": _SWITCHED_OFF, **options}
        fields: dict[str, Any] = {"kind": "solve", "options": settings, "offset": form.offset, "pause_every": pause_every}
        self._worker.send(fields, _arrays(form, start))

    def wait(self, watch: Watch, on_progress: Progress = ignore) -> Answer | None:
        assert self._worker is not None
        try:
            answer = self._listen(self._worker, watch, on_progress)
        except BaseException:
            self.close()
            raise
        if answer is None:
            return None
        if answer.word:
            give_back(self._worker, _WORKER)
            self._worker = None
        else:
            self.close()
        if answer.word not in ("", *STOPS):
            _complain(watch, f"it stopped with {answer.word[1:]}")
        return answer

    def close(self) -> None:
        """Give up what has not been answered."""
        if self._worker is not None:
            self._worker.end()
            self._worker = None

    def _listen(self, worker: SolverProcess, watch: Watch, on_progress: Progress) -> Answer | None:
        patient_until = time.monotonic() + watch.remaining + PATIENCE
        stopping = False
        if self._paused:
            self._paused = False
            worker.send({"kind": "go on"})
        while True:
            if not stopping and watch.interrupted():
                stopping = True
                patient_until = min(patient_until, time.monotonic() + PATIENCE)
                worker.send({"kind": "stop"})
            if time.monotonic() > patient_until:
                watch.on_event(Event("", message="HiGHS did not stop in time and was killed"))
                return self._so_far(Stop.INTERRUPTED if stopping else Stop.TIME_LIMIT)
            try:
                message = worker.messages.get(timeout=_GLANCE)
            except queue.Empty:
                continue
            if message is None:
                _complain(watch, worker.how_it_ended())
                return self._so_far(Stop.FINISHED)
            fields, arrays = message
            match fields["kind"]:
                case "progress" | "pause" as kind:
                    self._hear(fields, arrays, on_progress)
                    if kind == "pause" and not stopping:
                        self._paused = True
                        return None
                case "failure":
                    _complain(watch, fields["reason"])
                    return self._so_far(Stop.FINISHED)
                case _:
                    word = fields["status"]
                    stop = STOPS.get(word, Stop.FINISHED)
                    return Answer(word, stop, fields["bound"], arrays.get("values"), arrays.get("prices"), tuple(self.found))

    def _hear(self, fields: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], on_progress: Progress) -> None:
        if "values" in arrays:
            self.found.append(arrays["values"])
        if fields["bound"] is not None:
            self.bound = max(self.bound, fields["bound"])
        on_progress(fields["best"], fields["bound"])

    def _so_far(self, stop: Stop) -> Answer:
        return Answer("", stop, self.bound, self.found[-1] if self.found else None, found=tuple(self.found))


def _arrays(form: StandardForm, start: Mapping[int, float] | None) -> dict[str, NDArray[Any]]:
    arrays: dict[str, NDArray[Any]] = {
        "objective": form.objective,
        "column_lower": form.column_lower,
        "column_upper": form.column_upper,
        "row_lower": form.row_lower,
        "row_upper": form.row_upper,
        "integer": form.integer,
        "starts": form.matrix.indptr.astype(np.int32),
        "indices": form.matrix.indices.astype(np.int32),
        "entries": form.matrix.data.astype(np.float64),
    }
    if start:
        arrays["start_columns"] = np.fromiter(start, np.int32, len(start))
        arrays["start_values"] = np.fromiter(start.values(), np.float64, len(start))
    return arrays


def _complain(watch: Watch, reason: str) -> None:
    watch.on_event(failure("HiGHS", reason))
