"""Another batch size than the one in the file, wherever that stands: a batch of copies has the loss and gradients of the original."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from small_models import Net, tensor
from training_runs import parameters, run

from checkmate.core.errors import InputError
from checkmate.io.onnx.differentiate.training_graph import differentiate
from checkmate.io.onnx.differentiate.training_options import TrainingOptions

OLD, COPIES = 2, 3
RANDOM = np.random.default_rng(4)


def constant(net: Net, name: str, *values: int) -> str:
    """As torch writes a shape: numbers in Constant nodes, put together."""
    parts = [f"{name}_{index}" for index in range(len(values))]
    for part, value in zip(parts, values, strict=True):
        net.nodes.append(helper.make_node("Constant", [], [part], value_ints=[value]))
    return net.add("Concat", parts, name, axis=0)


def reshapes(net: Net) -> str:
    """Batch and length in one axis and apart again, the batch in the middle, and a size that is left open elsewhere."""
    net.add("Reshape", ["x", constant(net, "flat_shape", OLD * 3, 4)], "flat")
    net.add("MatMul", ["flat", net.weight("w", 4, 4)], "product")
    net.add("Reshape", ["product", constant(net, "parted_shape", OLD, 3, 2, 2)], "parted")
    net.add("Transpose", ["parted"], "moved", perm=[1, 2, 0, 3])
    net.add("Reshape", ["moved", net.whole("middle_shape", -1, OLD, 2)], "middle")
    net.add("Transpose", ["middle"], "back", perm=[1, 0, 2])
    return net.add("Reshape", ["back", net.whole("last_shape", OLD, -1)], "y")


def masks(net: Net) -> str:
    """A mask that is expanded to the batch, one that is stored for each element of it, and one that is made of numbers."""
    net.add("Expand", [net.keep("ones", np.ones((1, 1), np.float32)), constant(net, "mask_shape", OLD, 1)], "mask")
    net.add("Unsqueeze", ["mask", net.whole("axis", 1)], "wide")
    net.add("Mul", ["x", "wide"], "masked")
    stored = np.repeat(np.arange(3, dtype=np.float32).reshape(1, 3, 1), OLD, 0)
    net.add("Add", ["masked", net.keep("stored", stored)], "shifted")
    net.add("ConstantOfShape", [net.whole("zeros_shape", OLD, 3, 4)], "zeros", value=helper.make_tensor("v", TensorProto.FLOAT, [1], [0.5]))
    net.add("Sub", ["shifted", "zeros"], "lower")
    return net.add("MatMul", ["lower", net.weight("w", 4, 5)], "y")


def indices(net: Net) -> str:
    """The places of each element of the batch, counted by Range; the table that they select from has the size too."""
    net.add("Range", [net.keep("zero", np.asarray(0)), net.keep("end", np.asarray(OLD)), net.keep("one", np.asarray(1))], "places")
    net.add("Unsqueeze", ["places", net.whole("last", 1)], "index")
    net.add("Expand", [net.keep("half", np.full((1, 4), 0.5, np.float32)), constant(net, "table_shape", OLD, 4)], "table")
    net.add("GatherND", ["table", "index"], "rows")
    net.add("Unsqueeze", ["rows", net.whole("middle", 1)], "bias")
    net.add("Add", ["x", "bias"], "sum")
    return net.add("MatMul", ["sum", net.weight("w", 4, 5)], "y")


def cells(net: Net) -> str:
    """The first states of a cell, whose sizes onnx does not check; there are as many directions as elements in the batch."""
    net.add("Transpose", ["x"], "time_first", perm=[1, 0, 2])
    net.add("Expand", [net.keep("nothing", np.zeros((1, 1, 1), np.float32)), constant(net, "state_shape", 2, OLD, 3)], "first")
    inputs = ["time_first", net.weight("w", 2, 9, 4), net.weight("r", 2, 9, 3), "", "", "first"]
    net.nodes.append(helper.make_node("GRU", inputs, ["h"], name="cell", hidden_size=3, direction="bidirectional"))
    net.add("Transpose", ["h"], "batch_first", perm=[2, 0, 1, 3])
    return net.add("Reshape", ["batch_first", constant(net, "out_shape", OLD, 3, 6)], "y")


def model(build: Callable[[Net], str], inputs: Sequence[onnx.ValueInfoProto] = (tensor("x", OLD, 3, 4),)) -> onnx.ModelProto:
    net = Net()
    return net.model(list(inputs), [onnx.ValueInfoProto(name=build(net))])


@pytest.mark.parametrize("build", [reshapes, masks, indices, cells])
def test_a_batch_of_copies_has_the_same_loss_and_gradients(build: Callable[[Net], str]) -> None:
    results: list[dict[str, Any]] = []
    data, targets = RANDOM.normal(size=(OLD, 3, 4)).astype(np.float32), None
    for copies in (1, COPIES):
        graph = differentiate(model(build), TrainingOptions(loss="mse", train=("w",), batch_size=OLD * copies))
        shape = next(value for value in graph.model.graph.input if value.name == "targets").type.tensor_type.shape
        if targets is None:
            targets = RANDOM.normal(size=[dim.dim_value for dim in shape.dim]).astype(np.float32)
        feeds = {"x": np.concatenate([data] * copies), "targets": np.concatenate([targets] * copies)}
        results.append(run(graph, {**feeds, **parameters(graph)}))
    assert float(results[1]["loss"]) == pytest.approx(float(results[0]["loss"]), rel=1e-5)
    np.testing.assert_allclose(results[1]["grad/w"], results[0]["grad/w"], rtol=1e-4, atol=1e-6)


def test_a_size_that_is_no_constant_is_refused_with_what_to_do() -> None:
    def build(net: Net) -> str:
        net.add("Add", ["x", net.weight("own", OLD, 3, 4)], "sum")
        return net.add("MatMul", ["sum", net.weight("w", 4, 5)], "y")

    with pytest.raises(InputError, match=r"--batch-size 6: the model is made for a batch of 2 .*export it with a free batch dimension"):
        differentiate(model(build), TrainingOptions(loss="mse", batch_size=6))
