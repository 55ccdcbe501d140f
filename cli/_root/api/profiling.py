"""Measure what the operations of a model cost on this machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.errors import InputError
from .graph import LoadedGraph, as_graph

if TYPE_CHECKING:
    from ..io.onnxruntime.measure import ProfileResult
    from ..io.torch.files.program_graph import TorchProgram


def profile(
    graph: LoadedGraph | Any,
    *,
    provider: str = "cpu",
    repeat: int = 20,
    threads: int | None = None,
    inputs: str | PathLike[str] | None = None,
    memory: int | None = None,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> ProfileResult:
    """Measure seconds and workspace of every operation of a model; pass `.costs` of the result to `solve(costs=...)`.

    Inputs are generated unless they are in an `.npz` file. An ONNX model that is too large for `memory` bytes is profiled in pieces; of a
    PyTorch program, each distinct operation is measured by itself, on made-up inputs.
    """
    from ..io.onnxruntime.measure import ProfileOptions, profile_model

    loaded = as_graph(graph)
    if loaded.torch is not None:
        if inputs is not None or memory is not None:
            raise InputError(
                "--inputs and --memory are for ONNX models; operations of a PyTorch program are measured one by one: leave them out"
            )
        return _profile_program(loaded.torch, provider, repeat, threads, on_progress)
    if loaded.onnx is None:
        raise InputError(f"{loaded.source or loaded.name}: only models can be profiled; write the costs of a JSON graph into its file")
    model = replace(loaded.onnx, path=None) if loaded.training is not None else loaded.onnx
    options = ProfileOptions(provider, repeat, threads, None if inputs is None else Path(inputs), memory)
    return profile_model(model, options, on_progress)


def _profile_program(
    program: TorchProgram, provider: str, repeat: int, threads: int | None, on_progress: Callable[[int, int], None]
) -> ProfileResult:
    from ..io.formats.costs_json import parse_costs
    from ..io.onnxruntime.measure import ProfileResult
    from ..io.torch.files.isolated import run_isolated
    from ..io.torch.files.program_verification import training_fields

    device = program.traced.device.type
    if provider != device:
        raise InputError(
            f"the program was exported for {device}, so it cannot be measured with --provider {provider}; export it on that device"
        )
    if program.archive.path is None:
        raise InputError("a program from standard input cannot be run: give a file")

    def progress(line: str) -> None:
        done, _, total = line.partition(" ")
        on_progress(int(done), int(total))

    request = {
        "model": str(program.archive.path),
        "dims": dict(program.sizes),
        "batch_size": None,
        "training": training_fields(program),
        "repeat": repeat,
        "threads": threads,
    }
    report = run_isolated("profile", request, progress)
    costs = parse_costs(report["costs"], "measured")
    return ProfileResult(costs, report["version"], report["threads"], 1, True, "torch", tuple(report["estimated"]))


def costs_text(result: ProfileResult) -> str:
    """The costs file."""
    from ..io.formats.costs_json import render_costs
    from ..io.formats.json_text import json_text

    return json_text(render_costs(result.costs))


def save_costs(result: ProfileResult, path: str | PathLike[str]) -> Path:
    """Write the costs file, completely or not at all."""
    from ..io.formats.atomic import atomic_write

    atomic_write(Path(path), costs_text(result).encode("utf-8", "backslashreplace"))
    return Path(path)
