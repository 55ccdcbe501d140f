"""Random graphs: values read several times or never, parameters used twice or side by side, sums of gradients in any order."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from differences import check_nodes, run_reference
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper
from small_models import Net, tensor

from checkmate.core.errors import InputError
from checkmate.io.onnx.differentiate.training_graph import differentiate
from checkmate.io.onnx.differentiate.training_options import TrainingOptions

BINARY = ("Add", "Sub", "Mul", "MatMul")
UNARY = ("Tanh", "Sigmoid", "Identity", "Neg", "Transpose", "Softmax")


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[onnx.NodeProto], list[str]]:
    """Nodes over 2 x 2 matrices, of which some may lead nowhere, and the values that are summed up."""
    values = ["a", "b", "c"]
    nodes = []
    for number in range(draw(st.integers(1, 10))):
        operator = draw(st.sampled_from(BINARY + UNARY))
        inputs = [draw(st.sampled_from(values)) for _ in range(2 if operator in BINARY else 1)]
        nodes.append(helper.make_node(operator, inputs, [f"v{number}"], name=f"n{number}"))
        values.append(f"v{number}")
    made = draw(st.lists(st.sampled_from(values[3:]), min_size=1, max_size=3, unique=True))
    return nodes, made


@settings(max_examples=60, deadline=None, derandomize=True)
@given(graphs())
def test_gradients_add_up_over_all_ways(case: tuple[list[onnx.NodeProto], list[str]]) -> None:
    nodes, made = case
    reached = set(made)
    for node in reversed(nodes):
        if not reached.isdisjoint(node.output):
            reached.update(node.input)
    random = np.random.default_rng(1)
    stored = {name: random.normal(size=(2, 2)) for name in sorted(reached & {"a", "b", "c"})}
    alive = [node for node in nodes if all(name in reached or name in stored for name in node.input)]
    check_nodes(alive, stored, made, list(stored))


def test_parameters_side_by_side_have_gradients_of_their_own() -> None:
    """The same tensor is the gradient of both: each output still has its own name."""
    net = Net(dtype=np.float64)
    net.add("Add", [net.weight("first", 3), net.weight("second", 3)], "sum")
    net.add("ReduceSum", ["sum"], "total", keepdims=0)
    graph = differentiate(net.model([], [onnx.ValueInfoProto(name="total")]), TrainingOptions(loss=None, loss_output="total"))
    feeds = {parameter.name: parameter.array() for parameter in graph.parameters}
    results = run_reference(graph.model, [graph.gradients["first"], graph.gradients["second"]], feeds)
    assert graph.gradients == {"first": "grad/first", "second": "grad/second"}
    assert all((result == 1).all() for result in results)


def test_a_parameter_may_be_the_loss() -> None:
    net = Net(dtype=np.float64)
    net.add("Identity", [net.weight("w", 1)], "total")
    options = TrainingOptions(loss=None, loss_output="total", train=("w",))
    graph = differentiate(net.model([], [onnx.ValueInfoProto(name="total")]), options)
    assert run_reference(graph.model, ["grad/w"], {"w": np.zeros(1)})[0].tolist() == [1.0]


def test_names_that_are_taken_are_left_alone() -> None:
    """A model that calls its own values `loss`, `labels` or `grad/w` keeps them."""
    net = Net()
    net.add("MatMul", ["labels", net.weight("w", 3, 4)], "loss")
    net.add("Tanh", ["loss"], "grad/w")
    graph = differentiate(net.model([tensor("labels", "N", 3)], [tensor("grad/w", "N", 4)]), TrainingOptions())
    onnx.checker.check_model(graph.model, full_check=True)
    names = [name for node in graph.model.graph.node for name in node.output]
    assert len(names) == len(set(names))
    assert {"loss", "grad/w"} <= set(names)
    assert graph.loss not in ("loss", "grad/w")
    assert graph.label_input != "labels"
    assert graph.gradients["w"] != "grad/w"


def test_nodes_may_come_in_any_order() -> None:
    net = Net()
    net.add("MatMul", ["x", net.weight("w", 3, 4)], "a")
    net.add("Tanh", ["a"], "y")
    model = net.model([tensor("x", "N", 3)], [tensor("y", "N", 4)])
    model.graph.node.reverse()
    assert set(differentiate(model, TrainingOptions(loss="mse")).gradients) == {"w"}
    model.graph.node[0].input[0] = "nothing"
    with pytest.raises(InputError, match="'nothing' is used, but no node makes it"):
        differentiate(model, TrainingOptions(loss="mse"))
