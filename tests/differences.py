"""Gradients against differences, in float64 through onnx's reference implementation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from checkmate.io.onnx.differentiate.options import TrainingGraph, TrainingOptions
from checkmate.io.onnx.differentiate.training import differentiate

Array = npt.NDArray[Any]

STEP = 1e-5
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
    tolerance: float = 1e-6,
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
    return check_nodes([node], stored, made, wanted, opset=opset, tolerance=tolerance)


def check_nodes(
    nodes: Sequence[onnx.NodeProto],
    stored: Mapping[str, Array],
    made: Sequence[str],
    wanted: Sequence[str],
    *,
    opset: int = DEFAULT_OPSET,
    tolerance: float = 1e-6,
    options: Mapping[str, Any] | None = None,
) -> TrainingGraph:
    """Differentiate a weighted sum of all that is made, and compare with differences along random directions."""
    random = np.random.default_rng(7)
    plain = forward_model(nodes, stored, made, opset=opset)
    weights = {name: random.uniform(0.5, 1.5, np.shape(value)) for name, value in zip(made, run(plain, made, {}), strict=True)}
    model, loss = _with_loss(plain, weights, opset)
    graph = differentiate(model, TrainingOptions(loss=None, loss_output=loss, train=tuple(wanted), **(options or {})))
    onnx.checker.check_model(graph.model, full_check=True)
    assert not graph.without_gradient
    feeds = {parameter.name: parameter.array() for parameter in graph.parameters}
    results = run(graph.model, [graph.loss, *(graph.gradients[name] for name in wanted)], feeds)
    for name, gradient in zip(wanted, results[1:], strict=True):
        assert gradient.shape == np.shape(stored[name])
        for _ in range(2):
            direction = random.choice([-1.0, 1.0], np.shape(stored[name])) * random.uniform(0.5, 1.5, np.shape(stored[name]))
            ahead, behind = (run(graph.model, [graph.loss], {**feeds, name: stored[name] + sign * STEP * direction})[0] for sign in (1, -1))
            difference = float(ahead - behind) / (2 * STEP)
            expected = float((gradient * direction).sum())
            scale = max(1.0, abs(expected), float(np.abs(gradient).sum()))
            assert abs(difference - expected) <= tolerance * scale, f"{name}: {expected} by gradient, {difference} by difference"
    return graph


def run(model: onnx.ModelProto, names: Sequence[str], feeds: Mapping[str, Array]) -> list[Array]:
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
