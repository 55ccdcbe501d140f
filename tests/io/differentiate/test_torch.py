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


@pytest.mark.parametrize("name", ["mlp", "small_resnet", "unet", "gpt", "lstm_cells", "lstm", "gru"])
def test_gradients_are_those_of_autograd(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert check(name, monkeypatch) == 0


@pytest.mark.slow
@pytest.mark.parametrize(("name", "tied"), [("hf_bert", 0), ("hf_gpt2", 1), ("hf_llama", 0), ("hf_vit", 0)])
def test_transformers_exported_as_the_docs_say(name: str, tied: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """GPT-2's first and last weights are one tensor with two names."""
    pytest.importorskip("transformers")
    assert check(name, monkeypatch) == tied


@pytest.mark.slow
@pytest.mark.parametrize(("name", "lost"), [("hf_bert", 2), ("hf_gpt2", 2)])
def test_exported_with_optimization_parameters_have_their_own_tensors_again(name: str, lost: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """All but those that the exporter computed with: embeddings of constant places, two in BERT, one in GPT-2, which has a tie."""
    pytest.importorskip("transformers")
    assert check(name, monkeypatch, optimize=True) == lost


def check(name: str, monkeypatch: pytest.MonkeyPatch, *, optimize: bool = False) -> int:
    """Both are held against autograd in float64: ours may be no further off than float32 makes autograd itself.

    Returns how many parameters have no gradient, of which there is a warning.
    """
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import torch_models

    case = torch_models.export(name, torch_models.MODELS[name], 1, optimize=optimize)
    graph = differentiate(case.model, TrainingOptions())
    onnx.checker.check_model(graph.model, full_check=True)
    session = onnxruntime.InferenceSession(graph.model.SerializeToString(), providers=["CPUExecutionProvider"])
    feeds = {**case.feeds(graph.label_input or ""), **{parameter.name: parameter.array() for parameter in graph.parameters}}
    gradients = dict(zip(graph.gradients, session.run(list(graph.gradients.values()), feeds), strict=True))
    found = {name.removesuffix(".T"): value.T if name.endswith(".T") else value for name, value in gradients.items()}
    assert bool(graph.warnings) == optimize
    assert set(found) <= set(case.exact)
    exact = {name: gradient for name, gradient in case.exact.items() if name in found}
    assert distance(found, exact) <= max(MOST_ERROR, 3 * distance(case.gradients, exact))
    return len(case.exact) - len(found)


def distance(found: Mapping[str, np.ndarray[Any, Any]], exact: Mapping[str, np.ndarray[Any, Any]]) -> float:
    """The largest of all parameters, relative to its length; one that is zero but for rounding has no length to go by."""
    lengths = {name: float(np.linalg.norm(gradient)) for name, gradient in exact.items()}
    least = 1e-3 * max(lengths.values())
    return max(float(np.linalg.norm(found[name] - gradient)) / max(lengths[name], least) for name, gradient in exact.items())
