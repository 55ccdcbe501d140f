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
    """Measure seconds and workspace of every operation of an ONNX model; pass `.costs` of the result to `solve(costs=...)`.

    Inputs are generated unless they are in an `.npz` file. A model that is too large for `memory` bytes is profiled in pieces.
    """
    from ..io.onnxruntime.measure import ProfileOptions, profile_model

    loaded = as_graph(graph)
    if loaded.onnx is None:
        raise InputError(f"{loaded.source or loaded.name}: only ONNX models can be profiled; write the costs of a JSON graph into its file")
    model = replace(loaded.onnx, path=None) if loaded.training is not None else loaded.onnx
    options = ProfileOptions(provider, repeat, threads, None if inputs is None else Path(inputs), memory)
    return profile_model(model, options, on_progress)


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
