"""Measure what each operation of a model costs on this machine: seconds and workspace."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import ceil
from pathlib import Path

from ...core.errors import CheckmateError, InputError, LimitError, UnavailableError
from ..formats.costs_json import CostsFile
from ..onnx.proto.external import model_bytes
from ..onnx.read.reader import OnnxModel
from .child import Failure, Job, Report, run_job
from .inputs import feeds_for, weights_for
from .nodes import FileNode, file_nodes, is_from_file
from .pieces import cut, piece_of
from .predict import predict
from .providers import PROVIDERS
from .session import load_onnxruntime
from .tensor_files import write_tensors
from .trace import Run

WARM_UP = 2
_MOST_EVENTS = 40_000
"""The number of traced nodes after which the profiler's file, over a kilobyte per node, is read and removed."""
_SHARE_OF_FREE_MEMORY = 0.6
_LEAST_SECONDS = 0.5e-6
"""The profiler counts whole microseconds; an operation takes at least this."""


@dataclass(frozen=True, slots=True)
class ProfileOptions:
    """How to profile."""

    provider: str = "cpu"
    repeat: int = 20
    threads: int | None = None
    inputs: Path | None = None
    memory: int | None = None
    """Bytes a run may need; None: a share of the free memory."""
    seed: int = 0


@dataclass(frozen=True, slots=True)
class ProfileResult:
    costs: CostsFile
    version: str
    """Of the runtime."""
    threads: int
    pieces: int
    """The number of pieces the model was split into; 1 if it was not split."""
    workspace_measured: bool
    runtime: str = "onnxruntime"
    estimated: tuple[str, ...] = ()
    """Kinds of operations that could not be measured."""


def profile_model(
    model: OnnxModel, options: ProfileOptions, on_progress: Callable[[int, int], None] = lambda done, total: None
) -> ProfileResult:
    """Costs by name of the operation. `on_progress` is called with the number of finished runs and of all runs."""
    require_provider(options.provider)
    limit = options.memory if options.memory is not None else _free_memory()
    if model.path is not None and (limit is None or predict(model).peak_bytes <= limit):
        return _whole(model, options, on_progress)
    if options.inputs is not None:
        raise InputError(f"{options.inputs}: a model that is profiled in pieces cannot use --inputs: leave it out, or raise --memory")
    return _in_pieces(model, options, limit if limit is not None else 2**62, on_progress)


def require_provider(provider: str) -> None:
    """Raise an error if the provider is not available, before anything runs."""
    available = load_onnxruntime().get_available_providers()
    if PROVIDERS[provider] not in available:
        there = [short for short, full in PROVIDERS.items() if full in available]
        package = "onnxruntime-gpu" if provider in ("cuda", "tensorrt") else f"an onnxruntime with {PROVIDERS[provider]}"
        raise UnavailableError(f"this onnxruntime cannot run on {provider}, only on {', '.join(there)}; install {package}")


def node_costs(nodes: Sequence[FileNode], least: Mapping[int, float], run: Run) -> dict[str, float]:
    """Seconds of each node of the file, by name; nodes that onnxruntime inserted (copies between devices, casts) are ignored."""
    return {nodes[node.index].name: max(least[node.index], _LEAST_SECONDS) for node in run if is_from_file(node.index, node.kind, nodes)}


def _whole(model: OnnxModel, options: ProfileOptions, on_progress: Callable[[int, int], None]) -> ProfileResult:
    nodes = file_nodes(model.proto)
    with tempfile.TemporaryDirectory(prefix="checkmate-") as name:
        folder = Path(name)
        job = replace(
            _job(options, len(nodes)),
            model=str(model.path),
            inputs=write_tensors(feeds_for(model, options.inputs, seed=options.seed), folder, "input"),
            weights=write_tensors(weights_for(model, seed=options.seed + 1), folder, "weight"),
        )
        report = run_job(job, folder, lambda done: on_progress(done, _runs(job)))
    if report.failure is not None:
        raise _failed(model, report)
    return _result(model, options, node_costs(nodes, report.least_seconds, report.run), report.workspaces, report, 1)


def _in_pieces(model: OnnxModel, options: ProfileOptions, limit: int, on_progress: Callable[[int, int], None]) -> ProfileResult:
    """One piece after the other; the files of each are removed before the next."""
    costs: dict[str, float] = {}
    workspaces: dict[str, int] | None = {}
    report = Report()
    runs = cut(model, limit)
    total = sum(_runs(_job(options, len(run))) for run in runs)
    before = 0
    for run in runs:
        job = _job(options, len(run))
        piece = piece_of(model, run, seed=options.seed)
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
    return _result(model, options, costs, workspaces, report, len(runs))


def _report_sum(on_progress: Callable[[int, int], None], before: int, total: int, done: int) -> None:
    on_progress(before + done, total)


def _job(options: ProfileOptions, nodes: int) -> Job:
    """Several sessions if the profiler's files would become large, but at least two, because memory layout differs between sessions."""
    most = max(1, _MOST_EVENTS // max(nodes, 1))
    rounds = max(2 if options.repeat > 1 else 1, ceil(options.repeat / most))
    return Job(
        model="",
        provider=PROVIDERS[options.provider],
        threads=options.threads,
        warm_up=WARM_UP,
        name_nodes=True,
        rounds=rounds,
        traced_runs=ceil(options.repeat / rounds),
    )


def _runs(job: Job) -> int:
    return job.rounds * (job.warm_up + job.traced_runs)


def _result(
    model: OnnxModel, options: ProfileOptions, costs: Mapping[str, float], workspaces: Mapping[str, int] | None, report: Report, pieces: int
) -> ProfileResult:
    for operation in model.graph.operations:
        if operation.name not in costs and not operation.view:
            raise InputError(
                f"onnxruntime ran no node for operation {operation.name!r} ({operation.kind}): it was expanded or fused with others; "
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
            f"onnxruntime {report.version}, {PROVIDERS[options.provider]}, {report.threads} threads, "
            f"shortest of {options.repeat} runs" + (f", in {pieces} pieces" if pieces > 1 else "")
        ),
    )
    return ProfileResult(file, report.version, report.threads, pieces, workspaces is not None)


def _failed(model: OnnxModel, report: Report) -> CheckmateError:
    what = f"{model.path or model.graph.name}: {report.message}"
    match report.failure:
        case Failure.UNAVAILABLE:
            return UnavailableError(report.message)
        case Failure.OUT_OF_MEMORY:
            return LimitError(f"memory ran out while profiling ({what}); set a smaller --memory to profile in pieces")
        case _:
            return InputError(f"onnxruntime cannot run the model: {what}")


def _free_memory() -> int | None:
    """A share of the free memory of the system; None if it is not known."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return None
    free = next((int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")), None)
    return None if free is None else int(_SHARE_OF_FREE_MEMORY * free)
