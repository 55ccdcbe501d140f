"""RNN, LSTM and GRU against differences: directions, states, lengths, activations; and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from differences import check_node
from onnx import TensorProto, helper
from small_models import Net, tensor
from training_runs import check_by_differences

from checkmate.core.errors import InputError
from checkmate.io.onnx.differentiate.training_graph import differentiate
from checkmate.io.onnx.differentiate.training_options import TrainingGraph, TrainingOptions

RANDOM = np.random.default_rng(3)
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
STEPS, BATCH, INPUT, HIDDEN = 4, 3, 2, 3
Array = np.ndarray[Any, Any]


def normal(*shape: int) -> Array:
    return RANDOM.normal(size=shape) * 0.4


def cell(
    operator: str,
    *,
    direction: str = "forward",
    bias: bool = True,
    lengths: Array | None = None,
    first: bool = False,
    first_cell: bool = False,
    peepholes: bool = False,
    trained: tuple[int, ...] | None = None,
    batch_first: bool = False,
    exact: bool = False,
    outputs: int | None = None,
    **attributes: Any,
) -> TrainingGraph:
    gates, directions = GATES[operator], 2 if direction == "bidirectional" else 1
    state = (BATCH, directions, HIDDEN) if batch_first else (directions, BATCH, HIDDEN)
    inputs: list[Array | None] = [
        normal(BATCH, STEPS, INPUT) if batch_first else normal(STEPS, BATCH, INPUT),
        normal(directions, gates * HIDDEN, INPUT),
        normal(directions, gates * HIDDEN, HIDDEN),
        normal(directions, 2 * gates * HIDDEN) if bias else None,
        lengths,
        normal(*state) if first else None,
    ]
    if operator == "LSTM":
        inputs += [normal(*state) if first_cell else None, normal(directions, 3 * HIDDEN) if peepholes else None]
    while inputs[-1] is None:
        inputs.pop()
    made = outputs or (3 if operator == "LSTM" else 2)
    if batch_first:
        attributes["layout"] = 1
    if direction != "forward":
        attributes["direction"] = direction
    return check_node(operator, inputs, outputs=made, exact=exact, trained=trained, hidden_size=HIDDEN, **attributes)


@pytest.mark.parametrize("operator", GATES)
def test_a_cell_to_float64(operator: str) -> None:
    cell(operator, exact=True, first=True, **({"linear_before_reset": 1} if operator == "GRU" else {}))


@pytest.mark.parametrize("operator", GATES)
def test_the_batch_may_come_first(operator: str) -> None:
    cell(operator, exact=True, batch_first=True, first=True, first_cell=operator == "LSTM")


def test_peepholes_and_a_cell_state_to_float64() -> None:
    cell("LSTM", exact=True, first=True, first_cell=True, peepholes=True)


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("operator", GATES)
def test_directions(operator: str, direction: str) -> None:
    cell(operator, direction=direction)
    cell(operator, direction=direction, first=True, first_cell=operator == "LSTM", bias=False)


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("operator", GATES)
def test_sequences_of_different_lengths(operator: str, direction: str) -> None:
    lengths = np.asarray([4, 1, 3], np.int32)
    cell(operator, direction=direction, lengths=lengths)
    cell(operator, direction=direction, lengths=lengths, first=True, first_cell=operator == "LSTM")


def test_lengths_that_are_all_full_cost_nothing() -> None:
    full = cell("GRU", lengths=np.full(BATCH, STEPS, np.int32), linear_before_reset=1)
    assert "Less" not in {node.op_type for node in full.model.graph.node}


@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
def test_the_reset_gate_before_and_after_the_product(direction: str) -> None:
    cell("GRU", direction=direction, linear_before_reset=0, first=True)
    cell("GRU", direction=direction, linear_before_reset=1, first=True)


@pytest.mark.parametrize("direction", ["reverse", "bidirectional"])
def test_peepholes_with_lengths(direction: str) -> None:
    cell("LSTM", direction=direction, peepholes=True, first=True, first_cell=True, lengths=np.asarray([2, 4, 3], np.int32))


@pytest.mark.parametrize(
    ("names", "alphas", "betas"),
    [
        (["HardSigmoid", "Tanh", "Softsign"], [0.3], [0.4]),
        (["Sigmoid", "Affine", "ScaledTanh"], [0.7, 1.2], [0.1, 0.8]),
        (["Sigmoid", "Elu", "Tanh"], [0.6], []),
        (["Sigmoid", "Softplus", "Tanh"], [], []),
    ],
)
def test_activations(names: list[str], alphas: list[float], betas: list[float]) -> None:
    given = {name: values for name, values in (("activation_alpha", alphas), ("activation_beta", betas)) if values}
    cell("LSTM", activations=names, **given)


def test_activations_with_a_kink() -> None:
    cell("RNN", direction="bidirectional", activations=["Relu", "LeakyRelu"], activation_alpha=[0.1])


def test_each_output_by_itself() -> None:
    """Only the last state, or only the last cell state, is used: the gradient begins there."""
    for output in range(3):
        names = ["", "", ""]
        names[output] = "y"
        net = Net()
        inputs = ["x", net.weight("w", 1, 4 * HIDDEN, INPUT), net.weight("r", 1, 4 * HIDDEN, HIDDEN), net.weight("b", 1, 8 * HIDDEN)]
        net.nodes.append(helper.make_node("LSTM", inputs, names, name="cell", hidden_size=HIDDEN))
        net.add("ReduceSum", ["y"], "total", keepdims=0)
        model = net.model([tensor("x", STEPS, BATCH, INPUT)], [tensor("total")])
        graph = differentiate(model, TrainingOptions(loss=None, loss_output="total"))
        check_by_differences(graph, {"x": normal(STEPS, BATCH, INPUT).astype(np.float32)})


def recurrent_model(**attributes: Any) -> Net:
    net = Net()
    inputs = ["x", net.weight("w", 2, 4 * HIDDEN, INPUT), net.weight("r", 2, 4 * HIDDEN, HIDDEN), net.weight("b", 2, 8 * HIDDEN)]
    net.nodes.append(helper.make_node("LSTM", inputs, ["h"], name="cell", direction="bidirectional", hidden_size=HIDDEN, **attributes))
    net.add("Transpose", ["h"], "t", perm=[0, 2, 1, 3])
    net.add("Reshape", ["t", net.whole("shape", 0, 0, 2 * HIDDEN)], "flat")
    net.add("MatMul", ["flat", net.weight("v", 2 * HIDDEN, 5)], "y")
    return net


def test_a_free_batch_dimension_stays_free() -> None:
    model = recurrent_model().model([tensor("x", STEPS, "batch", INPUT)], [tensor("y", STEPS, "batch", 5)])
    graph = differentiate(model, TrainingOptions(loss="mse"))
    for batch in (1, 3):
        data = {"x": normal(STEPS, batch, INPUT).astype(np.float32), "targets": np.zeros((STEPS, batch, 5), np.float32)}
        check_by_differences(graph, data)


def test_a_free_number_of_steps_is_refused_with_what_to_do() -> None:
    model = recurrent_model().model([tensor("x", "time", 2, INPUT)], [tensor("y", "time", 2, 5)])
    with pytest.raises(InputError, match=r"'cell' \(LSTM\).*needs the size 'time' of 'x' as a number: fix it with"):
        differentiate(model, TrainingOptions(loss="mse"))


def test_the_lengths_may_be_an_input() -> None:
    net = Net()
    inputs = ["x", net.weight("w", 1, 3 * HIDDEN, INPUT), net.weight("r", 1, 3 * HIDDEN, HIDDEN), "", "lengths"]
    net.nodes.append(helper.make_node("GRU", inputs, ["", "y"], name="cell", hidden_size=HIDDEN))
    model = net.model([tensor("x", STEPS, 2, INPUT), tensor("lengths", 2, element=TensorProto.INT32)], [tensor("y", 1, 2, HIDDEN)])
    graph = differentiate(model, TrainingOptions(loss="mse"))
    data = {"x": normal(STEPS, 2, INPUT).astype(np.float32), "targets": np.zeros((1, 2, HIDDEN), np.float32)}
    for lengths in ([4, 4], [1, 3]):
        check_by_differences(graph, {**data, "lengths": np.asarray(lengths, np.int32)})


@pytest.mark.parametrize(
    ("attributes", "words"),
    [
        ({"clip": 3.0}, "it clips its gates"),
        ({"input_forget": 1}, "couples its input and forget gates"),
        ({"activations": ["ThresholdedRelu", "Tanh", "Tanh"] * 2}, "its activation function ThresholdedRelu has no gradient"),
        ({"activations": ["Sigmoid", "Tanh", "Tanh"]}, "it has 3 activation functions instead of 6"),
    ],
)
def test_what_is_refused(attributes: dict[str, Any], words: str) -> None:
    model = recurrent_model(**attributes).model([tensor("x", STEPS, 2, INPUT)], [tensor("y", STEPS, 2, 5)])
    with pytest.raises(InputError, match=words):
        differentiate(model, TrainingOptions(loss="mse"))
