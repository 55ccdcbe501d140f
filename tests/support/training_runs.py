"""Training graphs run in onnxruntime, and their gradients held to differences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

from checkmate.io.onnx.differentiate.training_options import TrainingGraph

Array = np.ndarray[Any, Any]


def session(model: onnx.ModelProto) -> onnxruntime.InferenceSession:
    onnx.checker.check_model(model, full_check=True)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def run(graph: TrainingGraph, feeds: Mapping[str, Array]) -> dict[str, Array]:
    names = [value.name for value in graph.model.graph.output]
    return dict(zip(names, map(np.asarray, session(graph.model).run(names, dict(feeds))), strict=True))


def parameters(graph: TrainingGraph) -> dict[str, Array]:
    return {parameter.name: parameter.array() for parameter in graph.parameters}


def check_by_differences(graph: TrainingGraph, data: Mapping[str, Array], step: float = 1e-2, tolerance: float = 5e-3) -> dict[str, Array]:
    """Along one random direction of all parameters at once, and of each alone."""
    random = np.random.default_rng(2)
    runner = session(graph.model)
    feeds = {**data, **parameters(graph), **graph.state}
    results = run(graph, feeds)
    for name, output in graph.gradients.items():
        gradient = results[output]
        assert gradient.shape == feeds[name].shape
        direction = random.choice([-1.0, 1.0], gradient.shape).astype(gradient.dtype)
        ahead, behind = (runner.run([graph.loss], {**feeds, name: feeds[name] + sign * step * direction})[0] for sign in (1, -1))
        found, expected = float(ahead - behind) / (2 * step), float((gradient * direction).sum())
        assert found == pytest.approx(expected, abs=tolerance * max(1.0, float(np.abs(gradient).sum()))), name
    return results
