"""Models exported from torch: our gradients beside autograd's. Needs the extra `torch`, and runs wherever that is installed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from places import BENCHMARKS

from checkmate.io.onnx.differentiate.training_graph import differentiate
from checkmate.io.onnx.differentiate.training_options import TrainingOptions

pytest.importorskip("torch")
pytest.importorskip("onnxscript")

MOST_ERROR = 1e-5
"""Of float32, after some dozens of layers."""


@pytest.mark.parametrize("name", ["mlp", "small_resnet", "unet", "gpt"])
def test_gradients_are_those_of_autograd(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both are held against autograd in float64: ours may be no further off than float32 makes autograd itself."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import torch_models

    case = torch_models.export(name, torch_models.MODELS[name], 1)
    graph = differentiate(case.model, TrainingOptions())
    onnx.checker.check_model(graph.model, full_check=True)
    assert set(graph.gradients) == set(case.exact)
    session = onnxruntime.InferenceSession(graph.model.SerializeToString(), providers=["CPUExecutionProvider"])
    feeds = {**case.feeds(graph.label_input or ""), **{parameter.name: parameter.array() for parameter in graph.parameters}}
    found = dict(zip(graph.gradients, session.run(list(graph.gradients.values()), feeds), strict=True))
    assert distance(found, case.exact) <= max(MOST_ERROR, 3 * distance(case.gradients, case.exact))


def distance(found: Mapping[str, np.ndarray[Any, Any]], exact: Mapping[str, np.ndarray[Any, Any]]) -> float:
    """The largest of all parameters, relative to its length; one that is zero but for rounding has no length to go by."""
    lengths = {name: float(np.linalg.norm(gradient)) for name, gradient in exact.items()}
    least = 1e-3 * max(lengths.values())
    return max(float(np.linalg.norm(found[name] - gradient)) / max(lengths[name], least) for name, gradient in exact.items())
