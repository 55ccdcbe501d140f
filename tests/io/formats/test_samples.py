"""The bundled samples: right gradients, reproducible files, and activations that are worth recomputing."""

from __future__ import annotations

import math
from importlib.resources import files
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

from checkmate.io.onnx.read.reader import read_onnx
from checkmate.sample_graphs.make import MODELS, sample_files, unit_chain
from checkmate.sample_graphs.networks import TINY

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


@pytest.mark.parametrize("file_order", [False, True])
@pytest.mark.parametrize("name", TINY)
def test_onnxruntime_agrees_with_the_reference(name: str, file_order: bool) -> None:
    model = TINY[name]()
    onnx.checker.check_model(model, full_check=True)
    feeds = random_feeds(model)
    options = onnxruntime.SessionOptions()
    if file_order:
        options.execution_order = onnxruntime.ExecutionOrder.PRIORITY_BASED
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    for found, expected in zip(session.run(None, feeds), ReferenceEvaluator(model).run(None, feeds), strict=True):
        np.testing.assert_allclose(found, expected, rtol=2e-4, atol=2e-5)


def test_the_script_makes_the_bundled_files() -> None:
    """Byte for byte, so that nobody edits a sample by hand."""
    made = sample_files()
    bundled = {entry.name: entry for entry in files("checkmate.sample_graphs").iterdir() if entry.name.endswith((".onnx", ".json"))}
    assert set(made) == set(bundled) == {f"{name}.{format}" for name in TINY for format in ("json", "onnx")} | {"forward.onnx"}
    for name, data in made.items():
        assert bundled[name].read_bytes() == data, f"{name} is not what python -m checkmate.sample_graphs.make writes"
        assert len(data) < 200_000


@pytest.mark.parametrize("name", TINY)
def test_onnx_samples_are_clean_and_activations_fill_the_memory(name: str) -> None:
    model = MODELS[name]()
    onnx.checker.check_model(model, full_check=True)
    assert 60 <= len(model.graph.node) <= 300
    described = {info.name for info in (*model.graph.value_info, *model.graph.output)}
    assert {output for node in model.graph.node for output in node.output} == described
    graph = read_onnx(model.SerializeToString(), name=name).graph
    kept = sum(graph.values[value].bytes for operation in graph.operations if not operation.backward for value in operation.outputs)
    assert 10e6 < kept < 100e6
    assert kept > 5 * graph.fixed_bytes


def test_the_chain_is_the_textbook_case() -> None:
    graph = unit_chain(16)
    edges = {(producer, consumer) for consumer, operation in enumerate(graph.operations) for producer in operation.inputs}
    assert edges == {(i, i + 1) for i in range(32)} | {(i, 32 - i) for i in range(16)}
    assert {(operation.work.cost, operation.workspace) for operation in graph.operations} == {(1.0, 0)}
    assert {value.bytes for value in graph.values} == {1}
    assert (graph.outputs, graph.fixed_bytes) == ((32,), 0)
