"""What exporters write and no gradient function sees: sequences of tensors, branches that are known, old operators in subgraphs."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from differences import check_nodes
from onnx import helper, numpy_helper, parser
from small_models import Net, tensor
from training_runs import check_by_differences

from checkmate.core.errors import InputError
from checkmate.io.onnx.differentiate.training_graph import differentiate
from checkmate.io.onnx.differentiate.training_options import TrainingGraph, TrainingOptions

RANDOM = np.random.default_rng(5)
Array = np.ndarray[Any, Any]


def kinds(graph: TrainingGraph) -> set[str]:
    return {node.op_type for node in graph.model.graph.node}


def take(part: int, name: str) -> onnx.NodeProto:
    return helper.make_node("SequenceAt", ["parts", f"i{part}"], [name], name=name)


PLACES: dict[str, Array] = {f"i{index}": np.asarray(index, np.int64) for index in (-1, 0, 1, 2)}


@pytest.mark.parametrize(
    ("split", "attributes"),
    [
        (np.asarray(2, np.int64), {"axis": 1}),
        (np.asarray([1, 2, 3], np.int64), {"axis": -1}),
        (np.asarray(4, np.int64), {"axis": 1}),
        (None, {"axis": 0, "keepdims": 0}),
        (None, {"axis": 0}),
    ],
)
def test_splitting_into_a_sequence_and_taking_parts_out_is_one_split(split: Array | None, attributes: dict[str, int]) -> None:
    nodes = [
        helper.make_node("Tanh", ["w"], ["h"], name="h"),
        helper.make_node("SplitToSequence", ["h"] if split is None else ["h", "split"], ["parts"], name="split", **attributes),
        *(take(0, "first"), take(-1, "last"), take(0, "first_again")),
        helper.make_node("Mul", ["first", "first_again"], ["square"], name="square"),
    ]
    constants = PLACES | ({} if split is None else {"split": split})
    graph = check_nodes(nodes, {"w": RANDOM.normal(size=(3, 6)), **constants}, ["square", "last"], ["w"])
    assert "Split" in kinds(graph)
    assert not any("Sequence" in kind for kind in kinds(graph))
    assert {"first", "last"} <= {name for node in graph.model.graph.node for name in node.output}, "values keep their names"


@pytest.mark.parametrize("new_axis", [0, 1])
def test_a_list_that_is_joined_is_a_concatenation(new_axis: int) -> None:
    nodes = [
        helper.make_node("SequenceConstruct", ["a", "b"], ["parts"], name="parts"),
        take(1, "second"),
        helper.make_node("ConcatFromSequence", ["parts"], ["joined"], name="joined", axis=0, new_axis=new_axis),
    ]
    stored = {"a": RANDOM.normal(size=(2, 3)), "b": RANDOM.normal(size=(2, 3)), **PLACES}
    graph = check_nodes(nodes, stored, ["second", "joined"], ["a", "b"])
    assert "Concat" in kinds(graph)


def test_a_sequence_whose_parts_are_not_known_is_refused_and_not_passed_over() -> None:
    net = Net()
    net.add("MatMul", ["x", net.weight("w", 3, 2)], "y")
    net.add("SplitToSequence", ["y"], "parts", axis=0)
    net.add("SequenceAt", ["parts", "place"], "z")
    model = net.model([tensor("x", 2, 3), tensor("place", element=onnx.TensorProto.INT64)], [tensor("z", 1, 2)])
    model.graph.value_info.append(tensor("z", 1, 2))
    with pytest.raises(InputError, match="operator SequenceAt of node 'z_node'"):
        differentiate(model, TrainingOptions(loss="mse"))


def test_a_range_whose_numbers_come_through_cast_like_has_a_known_size() -> None:
    """As `torch.arange` is exported; the file declares no types."""
    net = Net()
    net.add("CastLike", [net.keep("zero", np.float32(0)), net.keep("end", np.asarray(4, np.int64))], "start")
    net.add("CastLike", [net.keep("one", np.float32(1)), "end"], "step")
    net.add("Range", ["start", "end", "step"], "places")
    net.add("Gather", [net.weight("table", 8, 3), "places"], "rows")
    net.add("MatMul", ["x", "rows"], "y")
    graph = differentiate(net.model([tensor("x", 2, 4)], [onnx.ValueInfoProto(name="y")]), TrainingOptions(loss="mse"))
    check_by_differences(graph, {"x": np.ones((2, 4), np.float32), "targets": np.zeros((2, 3), np.float32)})


def branch(name: str, weight: float, operator: str = "Tanh") -> onnx.GraphProto:
    """Both branches use the same names inside, and one that the graph around them has too."""
    return helper.make_graph(
        [helper.make_node("Mul", ["y", "scale"], ["h"], name="y_node"), helper.make_node(operator, ["h"], ["out"])],
        name,
        [],
        [tensor("out", 2, 2)],
        [numpy_helper.from_array(np.full(2, weight, np.float32), "scale")],
    )


@pytest.mark.parametrize("condition", [True, False])
def test_the_branch_that_runs_is_differentiated_with_the_weights_inside_it(condition: bool) -> None:
    net = Net()
    net.add("MatMul", ["x", net.weight("w", 3, 2)], "y")
    net.keep("h", np.ones(2, np.float32))
    net.add("If", [net.keep("condition", np.asarray(condition))], "z", then_branch=branch("a", 2.0), else_branch=branch("b", 3.0, "Sin"))
    net.add("Add", ["z", "h"], "out")
    graph = differentiate(net.model([tensor("x", 2, 3)], [tensor("out", 2, 2)]), TrainingOptions(loss="mse"))
    stored = {parameter.name: parameter.array() for parameter in graph.parameters}
    assert stored["scale"].tolist() == ([2.0] * 2 if condition else [3.0] * 2)
    assert ("Tanh" if condition else "Sin") in kinds(graph)
    check_by_differences(graph, {"x": np.ones((2, 3), np.float32), "targets": np.zeros((2, 2), np.float32)})


def test_a_branch_that_passes_on_what_it_captures() -> None:
    same = helper.make_graph([], "same", [], [tensor("y", 2, 2)])
    net = Net()
    net.add("MatMul", ["x", net.weight("w", 3, 2)], "y")
    net.add("If", [net.keep("condition", np.asarray(True))], "z", then_branch=same, else_branch=branch("b", 3.0))
    graph = differentiate(net.model([tensor("x", 2, 3)], [tensor("z", 2, 2)]), TrainingOptions(loss="mse"))
    assert set(graph.gradients) == {"w"}


def test_a_branch_that_is_not_known_says_what_to_do() -> None:
    net = Net()
    net.add("MatMul", ["x", net.weight("w", 3, 2)], "y")
    net.add("If", ["rate"], "z", then_branch=branch("a", 2.0), else_branch=branch("b", 3.0))
    inputs = [tensor("x", 2, 3), tensor("rate", element=onnx.TensorProto.BOOL)]
    with pytest.raises(InputError, match=r"operator If of node 'z_node'.*store the inputs that it depends on"):
        differentiate(net.model(inputs, [tensor("z", 2, 2)]), TrainingOptions(loss="mse"))


def test_weights_that_are_only_in_branches_are_not_called_missing() -> None:
    net = Net()
    net.add("Identity", ["x"], "y")
    net.add("Not", ["rate"], "other")
    net.add("If", ["other"], "z", then_branch=branch("a", 2.0), else_branch=branch("b", 3.0))
    inputs = [tensor("x", 2, 2), tensor("rate", element=onnx.TensorProto.BOOL)]
    message = r"its 2 weights are used inside the subgraphs of If node 'z_node', whose condition depends on the input 'rate'"
    with pytest.raises(InputError, match=message):
        differentiate(net.model(inputs, [tensor("z", 2, 2)]), TrainingOptions(loss="mse"))


def test_weights_that_only_branches_read_are_not_called_missing() -> None:
    inner = helper.make_graph([helper.make_node("Mul", ["x", "w"], ["out"])], "inner", [], [tensor("out", 2, 2)])
    net = Net()
    net.weight("w", 2)
    net.add("If", ["rate"], "z", then_branch=inner, else_branch=inner)
    inputs = [tensor("x", 2, 2), tensor("rate", element=onnx.TensorProto.BOOL)]
    with pytest.raises(InputError, match=r"its 2 weights are used inside the subgraphs of If node 'z_node'"):
        differentiate(net.model(inputs, [tensor("z", 2, 2)]), TrainingOptions(loss="mse"))


SCAN = """<ir_version: 6, opset_import: ["" : 11]> g (float[3] x, float[5,3] steps) => (float[3] y, float[5,3] all)
    <float[3] w = {0.5, 0.25, 2.0}> {
    s = Mul(x, w)
    last, all = Scan<num_scan_inputs = 1, body = b (float[3] state, float[3] step) => (float[3] next, float[3] copy) {
        wide = Unsqueeze<axes = [0]>(step)
        flat = Squeeze<axes = [0]>(wide)
        next = Add(state, flat)
        copy = Identity(next) }>(START, steps)
    y = Mul(PICK, w) }"""


def test_an_old_scan_between_parameters_and_loss_is_refused_with_what_to_do() -> None:
    model = parser.parse_model(SCAN.replace("START", "s").replace("PICK", "last"))
    with pytest.raises(InputError, match=r"operator Scan of node 'Scan_1'.*export the model with the loop unrolled"):
        differentiate(model, TrainingOptions(loss="mse"))


def test_an_old_scan_beside_the_parameters_is_converted_to_the_new_opset() -> None:
    model = parser.parse_model(SCAN.replace("START", "x").replace("PICK", "last"))
    graph = differentiate(model, TrainingOptions(loss="mse"))
    data = {"x": np.ones(3, np.float32), "steps": np.ones((5, 3), np.float32), "targets": np.zeros(3, np.float32)}
    check_by_differences(graph, data)


def test_a_model_without_the_default_domain_is_no_bug() -> None:
    node = helper.make_node("Binarizer", ["x"], ["y"], domain="ai.onnx.ml", threshold=1.0)
    graph = helper.make_graph([node], "g", [tensor("x", 2)], [tensor("y", 2)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("ai.onnx.ml", 1)])
    with pytest.raises(InputError, match="no floating-point weight is stored in it"):
        differentiate(model, TrainingOptions(loss="mse"))
