"""The bundled samples: right gradients, reproducible files, and activations that are worth recomputing."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from checkmate.sample_graphs.networks import TINY
from numpy.typing import NDArray
from onnx import TensorProto, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

Feeds = dict[str, NDArray[Any]]


class Erf(OpRun):  # type: ignore[misc]
    """The reference's own rounds to single precision."""

    op_domain = ""

    def _run(self, x: NDArray[np.float64]) -> tuple[NDArray[np.float64]]:
        return (np.vectorize(math.erf)(x),)


def in_double(model: onnx.ModelProto) -> onnx.ModelProto:
    """The same graph in double precision, where differences of losses mean something."""
    double = onnx.ModelProto()
    double.CopyFrom(model)
    for info in (*double.graph.input, *double.graph.output, *double.graph.value_info):
        if info.type.tensor_type.elem_type == TensorProto.FLOAT:
            info.type.tensor_type.elem_type = TensorProto.DOUBLE
    for constant in double.graph.initializer:
        if constant.data_type == TensorProto.FLOAT:
            constant.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(constant).astype(np.float64), constant.name))
    for node in double.graph.node:
        if node.op_type == "Cast":
            node.attribute[0].i = TensorProto.DOUBLE
        if node.op_type == "ConstantOfShape":
            node.attribute.append(onnx.helper.make_attribute("value", numpy_helper.from_array(np.zeros(1))))
    return double


def random_feeds(model: onnx.ModelProto, seed: int = 0) -> Feeds:
    random = np.random.default_rng(seed)
    feeds: Feeds = {}
    for info in model.graph.input:
        kind = info.type.tensor_type
        shape = [dimension.dim_value for dimension in kind.shape.dim]
        if kind.elem_type == TensorProto.INT64:
            feeds[info.name] = random.integers(0, 3, shape)
        else:
            feeds[info.name] = random.normal(0.0, 0.7, shape).astype(onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type))
    return feeds


@pytest.mark.parametrize("name", TINY)
def test_gradients_are_slopes_of_the_loss(name: str) -> None:
    model = in_double(TINY[name]())
    feeds = random_feeds(model)
    outputs = [info.name for info in model.graph.output]
    evaluator = ReferenceEvaluator(model, new_ops=[Erf])
    gradients = dict(zip(outputs, evaluator.run(None, feeds), strict=True))
    parameters = [output.removeprefix("grad/") for output in outputs[1:]]
    assert outputs[0] == "loss"
    assert set(parameters) == set(feeds) - {"images", "labels", "tokens", "target"}
    random = np.random.default_rng(1)
    for parameter in parameters:
        step = 1e-6 * random.normal(size=feeds[parameter].shape)
        above, below = (evaluator.run(["loss"], {**feeds, parameter: feeds[parameter] + move})[0] for move in (step, -step))
        gradient = gradients[f"grad/{parameter}"]
        assert gradient.shape == step.shape
        assert (above - below) / 2 == pytest.approx(np.sum(gradient * step), rel=1e-5, abs=1e-14), parameter


@pytest.mark.parametrize("name", TINY)
def test_onnxruntime_agrees_with_the_reference(name: str) -> None:
    model = TINY[name]()
    feeds = random_feeds(model)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    for found, expected in zip(session.run(None, feeds), ReferenceEvaluator(model).run(None, feeds), strict=True):
        np.testing.assert_allclose(found, expected, rtol=2e-4, atol=2e-5)
