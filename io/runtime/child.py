"""Run a model in a process of its own. A crash, an abort or a lack of memory there is a result here, not a traceback."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

from .providers import CPU
from .tensors import Tensor
from .trace import NodeRun

REQUEST, RESULT = "request.json", "result.json"
_OUT_OF_MEMORY = ("bad_alloc", "bfc_arena", "BFCArena", "Failed to allocate memory", "out of memory", "MemoryError", "ENOMEM")


class Cap(Enum):
    """How memory can be limited."""

    ARENA = "arena"
    """onnxruntime's own arena: exact, but holes between its blocks count too."""
    ADDRESS_SPACE = "address space"
    """The operating system's limit on the process, every tensor in pages of its own. Linux only."""


@dataclass(frozen=True, slots=True)
class Job:
    """What a child is to do with one model."""

    model: str
    inputs: tuple[Tensor, ...] = ()
    weights: tuple[Tensor, ...] = ()
    """Contents for external data that is not there."""
    name_nodes: bool = False
    """Give every node a name of its own: onnxruntime tells workspaces by name only."""
    exact: bool = True
    """Under the settings where order and memory are those of the file; otherwise as a session opens by default."""
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
    """Measure the memory of the process while it runs."""
    cap: Cap | None = None
    cap_bytes: int = 0
    """For the arena: all it may hold. For the address space: what may be added to it once model and inputs are there."""

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
    """What became of a job."""

    failure: Failure | None = None
    message: str = ""
    version: str = ""
    """Of onnxruntime."""
    threads: int = 0
    outputs: tuple[Tensor, ...] = ()
    uncompared: tuple[str, ...] = ()
    """Outputs that are no tensors."""
    run: tuple[NodeRun, ...] = ()
    """The last traced run."""
    least_seconds: Mapping[int, float] = field(default_factory=dict)
    """Of each node, by its index."""
    workspaces: Mapping[str, int] | None = None
    """By name of the node; None if this onnxruntime does not measure them."""
    seconds: float | None = None
    """The shortest timed run."""
    resident_bytes: int | None = None
    """What running added to the memory of the process, at most."""

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
        )


def run_job(job: Job, folder: Path, on_progress: Callable[[int], None] = lambda done: None) -> Report:
    """Do the job in a child process; its files go into a new folder inside `folder`. `on_progress` hears of each run that is done."""
    place = Path(tempfile.mkdtemp(dir=folder))
    (place / REQUEST).write_text(json.dumps(job.fields()))
    variables = dict(os.environ)
    if job.provider != CPU:
        variables["CUDA_LAUNCH_BLOCKING"] = "1"
    with (place / "stderr").open("wb") as complaints:
        command = [sys.executable, "-P", "-m", f"{__package__}.job", str(place)]
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=complaints, env=variables)
        assert child.stdout is not None
        try:
            for done, _ in enumerate(child.stdout, start=1):
                on_progress(done)
            code = child.wait()
        except BaseException:
            child.kill()
            child.wait()
            raise
        finally:
            child.stdout.close()
    if code == 0 and (place / RESULT).exists():
        return Report.from_fields(json.loads((place / RESULT).read_text()))
    return crashed(code, (place / "stderr").read_text(errors="replace"))


def crashed(code: int, complaints: str) -> Report:
    """What the end of a child that left no result says."""
    lines = [line.strip() for line in complaints.splitlines() if line.strip()]
    last = lines[-1][:300] if lines else "it said nothing"
    if runs_out_of_memory(complaints):
        return Report(Failure.OUT_OF_MEMORY, last)
    if code == -signal.SIGKILL:
        return Report(Failure.OUT_OF_MEMORY, "the process was killed, as the system does when memory runs out")
    if code < 0:
        return Report(Failure.CRASH, f"onnxruntime ended with signal {signal.Signals(-code).name}: {last}")
    return Report(Failure.CRASH, f"the process ended with code {code}: {last}")


def runs_out_of_memory(text: str) -> bool:
    return any(sign in text for sign in _OUT_OF_MEMORY)
