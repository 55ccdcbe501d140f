"""The child process: open a model, run it, and write a report. Started by `child.run_job`."""

from __future__ import annotations

import ctypes
import json
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import astuple, replace
from pathlib import Path
from typing import Any

from ..child_process import REQUEST, RESULT
from ..onnx.read.metadata import read_metadata
from .child import Cap, Failure, Job, runs_out_of_memory
from .limits import capped_address_space, give_back_freed_memory, reset_resident_peak, resident_bytes, resident_peak
from .providers import CPU
from .session import exact_options, one_block, predicted_block
from .tensor_files import BFLOAT16, Tensor, read_tensor
from .trace import least_seconds, parse_trace, parse_workspaces

_STATISTICS = "session.collect_node_memory_stats_to_file"


class NoProviderError(Exception):
    """The provider is not available, or found no device."""


def main(folder: Path) -> None:
    folder = folder.resolve()
    job = Job.from_fields(json.loads((folder / REQUEST).read_text()))
    job = replace(job, model=str(Path(job.model).resolve()))
    try:
        result = perform(job, folder)
    except NoProviderError as error:
        result = {"failure": Failure.UNAVAILABLE.value, "message": str(error)}
    except MemoryError:
        result = {"failure": Failure.OUT_OF_MEMORY.value, "message": "MemoryError"}
    except Exception as error:
        text = " ".join(str(error).split())
        failure = Failure.OUT_OF_MEMORY if runs_out_of_memory(text) else Failure.ERROR
        result = {"failure": failure.value, "message": text[:500] or type(error).__name__}
    (folder / RESULT).write_text(json.dumps(result))


def perform(job: Job, folder: Path) -> dict[str, Any]:
    if job.resident or job.cap is Cap.ADDRESS_SPACE:
        give_back_freed_memory()
    import onnxruntime

    _require_provider(onnxruntime, job.provider)
    result: dict[str, Any] = {"version": onnxruntime.__version__, "threads": job.threads or os.cpu_count() or 1}
    reset_resident_peak()
    before = resident_bytes()
    feeds = {tensor.name: _value(onnxruntime, tensor) for tensor in job.inputs}
    if job.growth:
        return result | _growing(onnxruntime, job, feeds, before)
    for number in range(job.rounds):
        result |= _traced(onnxruntime, job, feeds, folder, number, result.get("least_seconds", {}))
    if job.timed_runs or job.keep_outputs or job.resident or job.cap is not None:
        result |= _plainly(onnxruntime, job, feeds, folder)
    return result


def _require_provider(onnxruntime: Any, provider: str) -> None:
    if provider not in onnxruntime.get_available_providers():
        raise NoProviderError(f"this onnxruntime {onnxruntime.__version__} has no {provider}")


def _session(onnxruntime: Any, job: Job, settings: Mapping[str, str], profile: Path | None = None) -> Any:
    options = exact_options(onnxruntime) if job.exact else onnxruntime.SessionOptions()
    options.log_severity_level = 4
    if job.threads:
        options.intra_op_num_threads = job.threads
    if job.resident or job.cap is Cap.ADDRESS_SPACE:
        options.enable_cpu_mem_arena = False
    for key, value in settings.items():
        options.add_session_config_entry(key, value)
    if profile is not None:
        options.enable_profiling = True
        options.profile_file_prefix = str(profile)
    if job.weights:
        values = [_value(onnxruntime, tensor) for tensor in job.weights]
        options.add_external_initializers([tensor.name for tensor in job.weights], values)
    providers = [job.provider] if job.provider == CPU else [job.provider, CPU]
    model = _named(job.model) if job.name_nodes else job.model
    with _arena(onnxruntime, job, options):
        session = onnxruntime.InferenceSession(model, options, providers=providers)
    if session.get_providers()[0] != job.provider:
        raise NoProviderError(f"{job.provider} found no device to run on")
    return session


def _arena(onnxruntime: Any, job: Job, options: Any) -> AbstractContextManager[None]:
    """As `checkmate.session` does: the block that was predicted, if the model says so."""
    if job.cap is Cap.ARENA:
        return one_block(onnxruntime, options, job.cap_bytes, limit=job.cap_bytes)
    if not job.exact or job.provider != CPU or not options.enable_cpu_mem_arena:
        return nullcontext()
    return predicted_block(onnxruntime, options, read_metadata(job.model))


def _growing(onnxruntime: Any, job: Job, feeds: Mapping[str, Any], before: int | None) -> dict[str, Any]:
    """What the process takes at most: up to the first run, and up to the last."""
    session = _session(onnxruntime, job, {})
    names = [output.name for output in session.get_outputs()]
    peaks: list[int] = []
    for _ in range(job.growth):
        session.run_with_ort_values(names, dict(feeds))
        peak = resident_peak()
        if peak is None or before is None:
            return {}
        peaks.append(peak - before)
    return {"growth": [peaks[0], peaks[-1]]}


def _named(path: str) -> bytes:
    """The model with the names of `operation_names`. External data of a model without a file is searched in the working directory."""
    from ..onnx.proto.model_file import load_model
    from ..onnx.proto.naming import operation_names
    from ..onnx.read.kernelless import expand_functions

    model = expand_functions(load_model(Path(path), path))
    for node, name in zip(model.graph.node, operation_names(model.graph.node), strict=True):
        node.name = name
    os.chdir(Path(path).parent)
    return bytes(model.SerializeToString())


def _value(onnxruntime: Any, tensor: Tensor) -> Any:
    array = read_tensor(tensor)
    if tensor.element == BFLOAT16:
        return onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(array, BFLOAT16)
    return onnxruntime.OrtValue.ortvalue_from_numpy(array)


def _traced(onnxruntime: Any, job: Job, feeds: Mapping[str, Any], folder: Path, number: int, least: Mapping[int, float]) -> dict[str, Any]:
    """One session with the profiler. Its files are large, so they are read and removed at once."""
    statistics = folder / f"statistics{number}.csv"
    session = _session(onnxruntime, job, {_STATISTICS: str(statistics)}, folder / f"profile{number}")
    names = [output.name for output in session.get_outputs()]
    for _ in range(job.warm_up + job.traced_runs):
        session.run_with_ort_values(names, dict(feeds))
        _tell_progress()
    file = Path(session.end_profiling())
    del session
    runs = parse_trace(json.loads(file.read_text()))[job.warm_up :]
    file.unlink()
    found = least_seconds(runs)
    return {
        "run": [list(astuple(node)) for node in runs[-1]] if runs else [],
        "least_seconds": {index: min(seconds, least.get(index, seconds)) for index, seconds in found.items()},
        "workspaces": parse_workspaces(statistics.read_text()) if statistics.exists() else None,
    }


def _plainly(onnxruntime: Any, job: Job, feeds: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Without the profiler: outputs, times, resident memory, a limit."""
    session = _session(onnxruntime, job, {})
    names = [output.name for output in session.get_outputs()]
    if job.cap is not None:
        with _limited(job):
            session.run_with_ort_values(names, dict(feeds))
        return {}
    result: dict[str, Any] = {}
    if job.keep_outputs:
        result |= _kept(names, session.run_with_ort_values(names, dict(feeds)), folder)
    if job.resident:
        session.run_with_ort_values(names, dict(feeds))
        before = resident_bytes()
        reset_resident_peak()
        session.run_with_ort_values(names, dict(feeds))
        peak = resident_peak()
        result["resident_bytes"] = peak - before if peak is not None and before is not None else None
    if job.timed_runs:
        for _ in range(job.warm_up):
            session.run_with_ort_values(names, dict(feeds))
        result["seconds"] = min(_seconds(session, names, feeds) for _ in range(job.timed_runs))
    return result


@contextmanager
def _limited(job: Job) -> Iterator[None]:
    if job.cap is Cap.ADDRESS_SPACE:
        with capped_address_space(job.cap_bytes):
            yield
    else:
        yield


def _seconds(session: Any, names: Sequence[str], feeds: Mapping[str, Any]) -> float:
    began = time.perf_counter()
    session.run_with_ort_values(names, dict(feeds))
    passed = time.perf_counter() - began
    _tell_progress()
    return passed


def _kept(names: Sequence[str], values: Sequence[Any], folder: Path) -> dict[str, Any]:
    """Every output as raw bytes."""
    outputs: list[dict[str, Any]] = []
    uncompared: list[str] = []
    for number, (name, value) in enumerate(zip(names, values, strict=True)):
        if not value.is_tensor() or value.data_type() == "tensor(string)":
            uncompared.append(name)
            continue
        path = folder / f"output{number}.bin"
        path.write_bytes(_bytes_of(value))
        outputs.append(Tensor(name, int(value.element_type()), tuple(value.shape()), str(path)).fields())
    return {"outputs": outputs, "uncompared": uncompared}


def _bytes_of(value: Any) -> bytes:
    if value.device_name() != "cpu":
        return bytes(value.numpy().tobytes())
    from ..onnx.proto.elements import tensor_bytes

    size = tensor_bytes(int(value.element_type()), value.shape())
    assert size is not None
    return ctypes.string_at(value.data_ptr(), size) if size else b""


def _tell_progress() -> None:
    """Print a line after each run, for the waiting process."""
    sys.stdout.write(".\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
