"""Run a model in a child process. If it crashes, aborts or runs out of memory, this is reported as a result, without a traceback."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from enum import Enum
from itertools import count
from pathlib import Path
from typing import Any

from ..child_process import Ended, run_child
from .providers import CPU
from .tensor_files import Tensor
from .trace import NodeRun

_OUT_OF_MEMORY = ("bad_alloc", "bfc_arena", "BFCArena", "Failed to allocate memory", "out of memory", "MemoryError", "ENOMEM")


class Cap(Enum):
    """How memory can be limited."""

    ARENA = "arena"
    """onnxruntime's own arena: exact, but fragmentation counts too."""
    ADDRESS_SPACE = "address space"
    """The operating system's limit on the process, with each tensor in its own pages. Linux only."""


@dataclass(frozen=True, slots=True)
class Job:
    """What a child does with one model."""

    model: str
    inputs: tuple[Tensor, ...] = ()
    weights: tuple[Tensor, ...] = ()
    """Contents for missing external data."""
    name_nodes: bool = False
    """Give every node a unique name, because onnxruntime reports workspaces by name only."""
    exact: bool = True
    """True: with the settings that keep order and memory; false: with the default settings."""
    provider: str = CPU
    threads: int | None = None
    warm_up: int = 0
    rounds: int = 0
    """Sessions whose runs are traced ..."""
    traced_runs: int = 0
    """... and the runs of each, besides the warm-up."""
    timed_runs: int = 0
    """Runs without the profiler, timed as a whole."""
    keep_outputs: bool = False
    resident: bool = False
    """Measure the memory of the process while it runs, with each tensor in its own pages."""
    growth: int = 0
    """Measure what the process takes, from before the inputs are loaded until this many runs are done."""
    cap: Cap | None = None
    cap_bytes: int = 0
    """For the arena: its size. For the address space: how much it may grow after model and inputs are loaded."""

    def fields(self) -> dict[str, Any]:
        return asdict(self) | {"cap": self.cap.value if self.cap else None}

    @staticmethod
    def from_fields(fields: Mapping[str, Any]) -> Job:
        tensors = {name: tuple(map(Tensor.from_fields, fields[name])) for name in ("inputs", "weights")}
        return Job(**{**fields, **tensors, "cap": Cap(fields["cap"]) if fields["cap"] else None})


class Failure(Enum):
    OUT_OF_MEMORY = "out of memory"
    CRASH = "crash"
    ERROR = "error"
    UNAVAILABLE = "unavailable"


@dataclass(frozen=True, slots=True)
class Report:
    """The result of a job."""

    failure: Failure | None = None
    message: str = ""
    version: str = ""
    """Of onnxruntime."""
    threads: int = 0
    outputs: tuple[Tensor, ...] = ()
    uncompared: tuple[str, ...] = ()
    """Outputs that are not tensors."""
    run: tuple[NodeRun, ...] = ()
    """The last traced run."""
    least_seconds: Mapping[int, float] = field(default_factory=dict)
    """The time of each node, by its index."""
    workspaces: Mapping[str, int] | None = None
    """By name of the node; None if this onnxruntime does not report them."""
    seconds: float | None = None
    """The shortest timed run."""
    resident_bytes: int | None = None
    """The peak growth of the memory of the process during the run."""
    growth: tuple[int, ...] = ()
    """The most that the process took for inputs, session and runs, after the first run and after the last."""

    @staticmethod
    def from_fields(fields: Mapping[str, Any]) -> Report:
        return Report(
            failure=Failure(fields["failure"]) if fields.get("failure") else None,
            message=fields.get("message", ""),
            version=fields.get("version", ""),
            threads=fields.get("threads", 0),
            outputs=tuple(map(Tensor.from_fields, fields.get("outputs", ()))),
            uncompared=tuple(fields.get("uncompared", ())),
            run=tuple(NodeRun(*node) for node in fields.get("run", ())),
            least_seconds={int(index): seconds for index, seconds in fields.get("least_seconds", {}).items()},
            workspaces=fields.get("workspaces"),
            seconds=fields.get("seconds"),
            resident_bytes=fields.get("resident_bytes"),
            growth=tuple(fields.get("growth", ())),
        )


def run_job(job: Job, folder: Path, on_progress: Callable[[int], None] = lambda done: None) -> Report:
    """Run the job in a child process; its files go into a new folder inside `folder`. `on_progress` is called after each run."""
    variables = dict(os.environ)
    if job.provider != CPU:
        variables["CUDA_LAUNCH_BLOCKING"] = "1"
    runs = count(1)
    place = Path(tempfile.mkdtemp(dir=folder))
    ended = run_child(f"{__package__}.job", job.fields(), place, lambda _: on_progress(next(runs)), variables)
    return crashed(ended) if ended.result is None else Report.from_fields(ended.result)


def crashed(ended: Ended) -> Report:
    """The report for a child that exited without a result."""
    if runs_out_of_memory(ended.complaints):
        return Report(Failure.OUT_OF_MEMORY, ended.last_line)
    if ended.code == -signal.SIGKILL:
        return Report(Failure.OUT_OF_MEMORY, "the process was killed, probably by the system because memory ran out")
    if ended.code < 0:
        return Report(Failure.CRASH, f"onnxruntime ended with signal {signal.Signals(-ended.code).name}: {ended.last_line}")
    return Report(Failure.CRASH, f"the process ended with code {ended.code}: {ended.last_line}")


def runs_out_of_memory(text: str) -> bool:
    return any(sign in text for sign in _OUT_OF_MEMORY)
