"""Measure what each operation of a model costs on this machine: seconds, and bytes it takes only while it runs."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import ceil
from pathlib import Path

from ...core.errors import CheckmateError, InputError, LimitError, UnavailableError
from ..costs_json import CostsFile
from ..onnx.external import model_bytes
from ..onnx.predict import predict
from ..onnx.reader import OnnxModel
from .child import Failure, Job, Report, run_job
from .inputs import feeds_for, weights_for
from .nodes import FileNode, file_nodes, is_from_file
from .pieces import cut, piece_of
from .providers import PROVIDERS
from .session import load_onnxruntime
from .tensors import write_tensors
from .trace import Run

WARM_UP = 2
_MOST_EVENTS = 40_000
"""Nodes traced before the profiler's file, over a kilobyte each, is read and removed."""
_SHARE_OF_FREE_MEMORY = 0.6
_LEAST_SECONDS = 0.5e-6
"""The profiler counts whole microseconds; nothing runs in none."""


@dataclass(frozen=True, slots=True)
class ProfileWishes:
    """How to profile."""

    provider: str = "cpu"
    repeat: int = 20
    threads: int | None = None
    inputs: Path | None = None
    memory: int | None = None
    """Bytes a run may take; None takes a share of what is free."""
    seed: int = 0


@dataclass(frozen=True, slots=True)
class ProfileResult:
    costs: CostsFile
    version: str
    """Of onnxruntime."""
    threads: int
    pieces: int
    """How many parts the model was cut into; 1 is the whole."""
    workspace_measured: bool


def profile_model(
    model: OnnxModel, wishes: ProfileWishes, on_progress: Callable[[int, int], None] = lambda done, total: None
) -> ProfileResult:
    """Costs by name of the operation. `on_progress` hears how many runs of how many are done."""
    require_provider(wishes.provider)
    limit = wishes.memory if wishes.memory is not None else _free_memory()
    if model.path is not None and (limit is None or predict(model).peak_bytes <= limit):
        return _whole(model, wishes, on_progress)
    if wishes.inputs is not None:
        raise InputError(f"{wishes.inputs}: a model that is profiled in pieces takes no inputs: leave out --inputs or give more --memory")
    return _in_pieces(model, wishes, limit if limit is not None else 2**62, on_progress)


def require_provider(provider: str) -> None:
    """What is not there is said before anything runs."""
    available = load_onnxruntime().get_available_providers()
    if PROVIDERS[provider] not in available:
        there = [short for short, full in PROVIDERS.items() if full in available]
        package = "onnxruntime-gpu" if provider in ("cuda", "tensorrt") else f"an onnxruntime with {PROVIDERS[provider]}"
        raise UnavailableError(f"this onnxruntime cannot run on {provider}, only on {', '.join(there)}; install {package}")


def node_costs(nodes: Sequence[FileNode], least: Mapping[int, float], run: Run) -> dict[str, float]:
    """Seconds of each node of the file by name; what onnxruntime inserted (copies between devices, casts) is nobody's."""
    return {nodes[node.index].name: max(least[node.index], _LEAST_SECONDS) for node in run if is_from_file(node.index, node.kind, nodes)}


def _whole(model: OnnxModel, wishes: ProfileWishes, on_progress: Callable[[int, int], None]) -> ProfileResult:
    nodes = file_nodes(model.proto)
    with tempfile.TemporaryDirectory(prefix="checkmate-") as name:
        folder = Path(name)
        job = replace(
            _job(wishes, len(nodes)),
            model=str(model.path),
            inputs=write_tensors(feeds_for(model, wishes.inputs, seed=wishes.seed), folder, "input"),
            weights=write_tensors(weights_for(model, seed=wishes.seed + 1), folder, "weight"),
        )
        report = run_job(job, folder, lambda done: on_progress(done, _runs(job)))
    if report.failure is not None:
        raise _failed(model, report)
    return _result(model, wishes, node_costs(nodes, report.least_seconds, report.run), report.workspaces, report, 1)


def _in_pieces(model: OnnxModel, wishes: ProfileWishes, limit: int, on_progress: Callable[[int, int], None]) -> ProfileResult:
    """One piece after the other, each with files of its own that are gone before the next."""
    costs: dict[str, float] = {}
    workspaces: dict[str, int] | None = {}
    report = Report()
    runs = cut(model, limit)
    total = sum(_runs(_job(wishes, len(run))) for run in runs)
    before = 0
    for run in runs:
        job = _job(wishes, len(run))
        piece = piece_of(model, run, seed=wishes.seed)
        with tempfile.TemporaryDirectory(prefix="checkmate-") as name:
            folder = Path(name)
            file = folder / "piece.onnx"
            file.write_bytes(model_bytes(piece.model))
            inputs = write_tensors(piece.inputs, folder, "input")
            weights = write_tensors(piece.weights, folder, "weight")
            job = replace(job, model=str(file), inputs=inputs, weights=weights)
            report = run_job(job, folder, partial(_report_sum, on_progress, before, total))
        if report.failure is not None:
            raise _failed(model, report)
        costs |= node_costs(file_nodes(piece.model), report.least_seconds, report.run)
        workspaces = None if workspaces is None or report.workspaces is None else workspaces | dict(report.workspaces)
        before += _runs(job)
    return _result(model, wishes, costs, workspaces, report, len(runs))


def _report_sum(on_progress: Callable[[int, int], None], before: int, total: int, done: int) -> None:
    on_progress(before + done, total)


def _job(wishes: ProfileWishes, nodes: int) -> Job:
    """Several sessions if the profiler's files would grow large, and two in any case: memory lies differently in each."""
    most = max(1, _MOST_EVENTS // max(nodes, 1))
    rounds = max(2 if wishes.repeat > 1 else 1, ceil(wishes.repeat / most))
    return Job(
        model="",
        provider=PROVIDERS[wishes.provider],
        threads=wishes.threads,
        warm_up=WARM_UP,
        name_nodes=True,
        rounds=rounds,
        traced_runs=ceil(wishes.repeat / rounds),
    )


def _runs(job: Job) -> int:
    return job.rounds * (job.warm_up + job.traced_runs)


def _result(
    model: OnnxModel, wishes: ProfileWishes, costs: Mapping[str, float], workspaces: Mapping[str, int] | None, report: Report, pieces: int
) -> ProfileResult:
    for operation in model.graph.operations:
        if operation.name not in costs and not operation.view:
            raise InputError(
                f"onnxruntime ran no node for operation {operation.name!r} ({operation.kind}): it was split up or fused with others; "
                "inline functions first (onnx.inliner), and profile with --provider cpu or cuda"
            )
    priced = {operation.name for operation in model.graph.operations if not operation.view}
    found = workspaces or {}
    file = CostsFile(
        where="profile",
        unit="s",
        costs={name: seconds for name, seconds in costs.items() if name in priced},
        workspace={name: size for name, size in found.items() if size and name in priced},
        comment=(
            f"onnxruntime {report.version}, {PROVIDERS[wishes.provider]}, {report.threads} threads, "
            f"shortest of {wishes.repeat} runs" + (f", in {pieces} pieces" if pieces > 1 else "")
        ),
    )
    return ProfileResult(file, report.version, report.threads, pieces, workspaces is not None)


def _failed(model: OnnxModel, report: Report) -> CheckmateError:
    what = f"{model.path or model.graph.name}: {report.message}"
    match report.failure:
        case Failure.UNAVAILABLE:
            return UnavailableError(report.message)
        case Failure.OUT_OF_MEMORY:
            return LimitError(f"memory ran out while profiling; give a smaller --memory to profile in pieces ({what})")
        case _:
            return InputError(f"onnxruntime cannot run the model: {what}")


def _free_memory() -> int | None:
    """A share of what the system has to give; None where it does not say."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return None
    free = next((int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")), None)
    return None if free is None else int(_SHARE_OF_FREE_MEMORY * free)
