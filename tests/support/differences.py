"""Gradients against differences: in float64 through onnx's reference implementation, or, for the few operators that one gets wrong
(ConvTranspose with groups, LRN, MaxPool's indices) or rounds (Erf), in float32 through onnxruntime with larger steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from checkmate.io.onnx.differentiate.training_graph import differentiate
from checkmate.io.onnx.differentiate.training_options import TrainingGraph, TrainingOptions

Array = npt.NDArray[Any]

EXACT = (np.float64, 1e-5, 1e-6)
ROUNDED = (np.float32, 1e-2, 2e-3)
"""Type, step and tolerance."""
DEFAULT_OPSET = 21
NEWEST_IR = 10


def forward_model(
    nodes: Sequence[onnx.NodeProto],
    parameters: Mapping[str, Array],
    outputs: Sequence[str],
    *,
    constants: Mapping[str, Array] | None = None,
    opset: int = DEFAULT_OPSET,
) -> onnx.ModelProto:
    """A model without inputs: everything is stored, so everything of float type is a parameter."""
    stored = {**parameters, **(constants or {})}
    graph = helper.make_graph(
        list(nodes),
        "tested",
        [],
        [onnx.ValueInfoProto(name=name) for name in outputs],
        [numpy_helper.from_array(np.asarray(numbers), name) for name, numbers in stored.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=NEWEST_IR)


def check_node(
    operator: str,
    inputs: Sequence[Array | None],
    *,
    trained: Sequence[int] | None = None,
    outputs: int = 1,
    opset: int = DEFAULT_OPSET,
    exact: bool = True,
    **attributes: Any,
) -> TrainingGraph:
    """Check one node by all its float inputs, or those in `trained`; None is an input left out."""
    names = [f"in{index}" if numbers is not None else "" for index, numbers in enumerate(inputs)]
    made = [f"out{index}" for index in range(outputs)]
    node = helper.make_node(operator, names, made, name="node", **attributes)
    stored = {name: np.asarray(numbers) for name, numbers in zip(names, inputs, strict=True) if numbers is not None}
    wanted = [
        name
        for index, name in enumerate(names)
        if name and np.issubdtype(stored[name].dtype, np.floating) and (trained is None or index in trained)
    ]
    return check_nodes([node], stored, made, wanted, opset=opset, exact=exact)


def check_nodes(
    nodes: Sequence[onnx.NodeProto],
    stored: Mapping[str, Array],
    made: Sequence[str],
    wanted: Sequence[str],
    *,
    opset: int = DEFAULT_OPSET,
    exact: bool = True,
    options: Mapping[str, Any] | None = None,
) -> TrainingGraph:
    """Differentiate a weighted sum of all that is made, and compare with differences along random directions."""
    random = np.random.default_rng(7)
    dtype, step, tolerance = EXACT if exact else ROUNDED
    run = run_reference if exact else run_onnxruntime
    stored = {name: numbers.astype(dtype) if numbers.dtype == np.float64 else numbers for name, numbers in stored.items()}
    plain = forward_model(nodes, stored, made, opset=opset)
    values = zip(made, run(plain, made, {}), strict=True)
    weights = {name: np.asarray(random.uniform(0.5, 1.5, np.shape(value)), dtype) for name, value in values if value.dtype == dtype}
    model, loss = _with_loss(plain, weights, opset)
    graph = differentiate(model, TrainingOptions(loss=None, loss_output=loss, train=tuple(wanted), **(options or {})))
    onnx.checker.check_model(graph.model, full_check=True)
    assert not graph.without_gradient
    feeds = {parameter.name: parameter.array() for parameter in graph.parameters}
    results = run(graph.model, [graph.loss, *(graph.gradients[name] for name in wanted)], feeds)
    for name, gradient in zip(wanted, results[1:], strict=True):
        assert gradient.shape == np.shape(stored[name])
        for _ in range(2):
            direction = np.asarray(random.choice([-1.0, 1.0], gradient.shape) * random.uniform(0.5, 1.5, gradient.shape), dtype)
            ahead, behind = (
                run(graph.model, [graph.loss], {**feeds, name: np.asarray(stored[name] + dtype(sign * step) * direction)})[0]
                for sign in (1, -1)
            )
            difference = float(ahead - behind) / (2 * step)
            expected = float((gradient * direction).sum())
            scale = max(1.0, abs(expected), float(np.abs(gradient).sum()))
            assert abs(difference - expected) <= tolerance * scale, f"{name}: {expected} by gradient, {difference} by difference"
    return graph


def run_onnxruntime(model: onnx.ModelProto, names: Sequence[str], feeds: Mapping[str, Array]) -> list[Array]:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    typed = model if all(value.HasField("type") for value in model.graph.output) else onnx.shape_inference.infer_shapes(model)
    session = onnxruntime.InferenceSession(typed.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return [np.asarray(value) for value in session.run(list(names), dict(feeds))]


def run_reference(model: onnx.ModelProto, names: Sequence[str], feeds: Mapping[str, Array]) -> list[Array]:
    with np.errstate(all="ignore"):
        return [np.asarray(value) for value in ReferenceEvaluator(model).run(list(names), dict(feeds))]  # type: ignore[arg-type]


def _with_loss(plain: onnx.ModelProto, weights: Mapping[str, Array], opset: int) -> tuple[onnx.ModelProto, str]:
    model = onnx.ModelProto()
    model.CopyFrom(plain)
    parts = []
    for name, numbers in weights.items():
        model.graph.initializer.append(numpy_helper.from_array(numbers, f"{name}/weights"))
        model.graph.node.append(helper.make_node("Mul", [name, f"{name}/weights"], [f"{name}/weighted"]))
        model.graph.node.append(helper.make_node("ReduceSum", [f"{name}/weighted"], [f"{name}/sum"], keepdims=0))
        parts.append(f"{name}/sum")
    model.graph.node.append(helper.make_node("Sum", parts, ["the_loss"]))
    del model.graph.output[:]
    model.graph.output.append(onnx.ValueInfoProto(name="the_loss"))
    return model, "the_loss"
