"""The table of what onnxruntime computes in place, against onnxruntime: every operator in it, and the conditions around it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from exactness import random_feeds, run
from onnx import NodeProto, TypeProto, helper, parser

from checkmate.core.model.graph import Graph
from checkmate.io.onnx.proto.tensor_types import tensor_type
from checkmate.io.onnx.read.in_place import in_place_pairs, updates_in_place, written_over_fixed_memory
from checkmate.io.onnx.read.reader import OnnxModel, read_onnx
from checkmate.io.onnxruntime.predict import predict


def parsed(body: str, opset: int = 17) -> OnnxModel:
    return read_onnx(parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]>\n{body}').SerializeToString(), name="test")


def assert_exact(model: OnnxModel, folder: Path) -> None:
    ran = run(model.proto, random_feeds(model), folder, exact=True)
    assert [(node.name, node.live_bytes) for node in predict(model).nodes] == list(zip(ran.names, ran.live, strict=True))


OVERWRITING = {
    **{name: f"{name}(a)" for name in ("Celu", "Elu", "HardSigmoid", "LeakyRelu", "Relu", "Selu", "Shrink", "Sigmoid", "Softplus")},
    **{name: f"{name}(a)" for name in ("Softsign", "Tanh", "ThresholdedRelu", "Softmax", "LogSoftmax", "Trilu")},
    "Clip": "Clip(a, low)",
    "Cast": "Cast<to = 6>(a)",
    "ScatterElements": "ScatterElements<axis = 1>(a, i, u)",
}
APART = {
    **{name: f"{name}(a)" for name in ("Abs", "Exp", "Neg", "Sqrt", "Erf", "Floor")},
    **{name: f"{name}(a, a)" for name in ("Add", "Mul", "Max")},
    **{name: f"{name}(a, x)" for name in ("Sub", "Div", "PRelu")},
    "Where": "Where(n, a, x)",
}


def overwrites(body: str, folder: Path, kind: str = "float") -> bool:
    """Whether onnxruntime takes no memory for b; the prediction must say the same."""
    text = f"""g ({kind}[8,8] x, int64[8,2] i, {kind}[8,2] u, bool[8,8] n) => (float[8,8] z) <{kind} low = {{0.1}}> {{
        [a] a = Neg(x) [b] b = {body} [c] z = Cast<to = 1>(b)
    }}"""
    model = parsed(text)
    graph = model.graph
    assert_exact_with_indices(model, folder)
    return bool(graph.operations[1].in_place)


def assert_exact_with_indices(model: OnnxModel, folder: Path) -> None:
    feeds = dict(random_feeds(model))
    if "i" in feeds:
        feeds["i"] = np.zeros((8, 2), np.int64)
    ran = run(model.proto, feeds, folder, exact=True)
    assert [(node.name, node.live_bytes) for node in predict(model).nodes] == list(zip(ran.names, ran.live, strict=True))


@pytest.mark.parametrize("name", OVERWRITING)
def test_what_overwrites(name: str, tmp_path: Path) -> None:
    assert overwrites(OVERWRITING[name], tmp_path)


@pytest.mark.parametrize("name", APART)
def test_what_does_not(name: str, tmp_path: Path) -> None:
    assert not overwrites(APART[name], tmp_path)


def test_softmax_of_double_does_not(tmp_path: Path) -> None:
    assert not overwrites("Softmax(a)", tmp_path, "double")
    assert overwrites("Relu(a)", tmp_path, "double")


TRAINING = """g (float[4,8] x, float[8] s, float[8] m, float[8] v) => (float[4,8] z{outputs}) {{
    [k] k = Neg(m) [l] l = Exp(v)
    [n] y, m1, v1 = BatchNormalization<training_mode = {mode}>(x, s, s, {inputs})
    [z] z = Add(y, {read})
}}"""


def normalized(mode: int = 1, inputs: str = "m, v", read: str = "m1", outputs: str = "") -> OnnxModel:
    return parsed(TRAINING.format(mode=mode, inputs=inputs, read=read, outputs=outputs))


def sizes(graph: Graph) -> dict[str, int]:
    return {value.name: value.bytes for value in graph.values}


def test_training_statistics_over_fed_ones_take_nothing(tmp_path: Path) -> None:
    model = normalized()
    found = sizes(model.graph)
    assert (found["y"], found["m1"], found["v1"]) == (128, 0, 0)
    assert_exact(model, tmp_path)


def test_training_statistics_over_computed_ones_overwrite_them(tmp_path: Path) -> None:
    model = normalized(inputs="k, l")
    operation = next(operation for operation in model.graph.operations if operation.name == "n")
    names = [value.name for value in model.graph.values]
    assert [(names[source], names[target]) for source, target in operation.in_place] == [("k", "m1"), ("l", "v1")]
    assert sizes(model.graph)["m1"] == 32
    assert_exact(model, tmp_path)


def test_one_of_each(tmp_path: Path) -> None:
    model = normalized(inputs="k, v")
    operation = next(operation for operation in model.graph.operations if operation.name == "n")
    assert len(operation.in_place) == 1
    assert (sizes(model.graph)["m1"], sizes(model.graph)["v1"]) == (32, 0)
    assert_exact(model, tmp_path)


def test_statistics_that_are_graph_outputs_have_memory_of_their_own(tmp_path: Path) -> None:
    model = normalized(outputs=", float[8] m1")
    assert (sizes(model.graph)["m1"], sizes(model.graph)["v1"]) == (32, 0)
    assert_exact(model, tmp_path)


def batch_normalization(mode: int | None = 1, inputs: int = 5, outputs: int = 3, domain: str = "") -> NodeProto:
    attributes = {} if mode is None else {"training_mode": mode}
    names = ["x", "s", "b", "m", "v"][:inputs]
    return helper.make_node("BatchNormalization", names, ["y", "m1", "v1"][:outputs], domain=domain, **attributes)


def test_only_in_training_mode_and_with_all_five_inputs() -> None:
    assert updates_in_place(batch_normalization())
    assert not updates_in_place(batch_normalization(0))
    assert not updates_in_place(batch_normalization(None))
    assert not updates_in_place(batch_normalization(inputs=4))
    assert not updates_in_place(helper.make_node("LayerNormalization", ["x"] * 5, ["y"], training_mode=1))


def test_which_statistics_need_no_memory() -> None:
    node = batch_normalization()
    assert written_over_fixed_memory(node, (), ()) == {"m1", "v1"}
    assert written_over_fixed_memory(node, ("m",), ()) == {"v1"}
    assert written_over_fixed_memory(node, (), ("v1",)) == {"m1"}
    assert written_over_fixed_memory(batch_normalization(outputs=1), (), ()) == frozenset()
    assert written_over_fixed_memory(batch_normalization(0), (), ()) == frozenset()
    assert written_over_fixed_memory(batch_normalization(domain="other"), (), ()) == frozenset()


def typed(**types: TypeProto) -> dict[str, TypeProto]:
    return types


def named(*dimensions: int | str | None) -> TypeProto:
    type_ = tensor_type(1, ())
    for dimension in dimensions:
        added = type_.tensor_type.shape.dim.add()
        if isinstance(dimension, int):
            added.dim_value = dimension
        elif dimension:
            added.dim_param = dimension
    return type_


RELU = helper.make_node("Relu", ["a"], ["b"])


def pairs(before: TypeProto | None, after: TypeProto | None, node: NodeProto = RELU, made: tuple[str, ...] = ("a",)) -> int:
    types = {"a": before, "b": after}
    return len(in_place_pairs(node, made, types.get))


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [
        (named(4, 8), named(4, 8), True),
        (named(4, 8), named(8, 4), False),
        (named(4, 8), named(4), False),
        (named("n", 8), named("n", 8), True),
        (named("n", 8), named("m", 8), False),
        (named(None, 8), named(None, 8), False),
        (named("n", 8), named(4, 8), False),
        (named(), named(), True),
        (tensor_type(1, (4,)), tensor_type(6, (4,)), True),
        (tensor_type(1, (4,)), tensor_type(11, (4,)), False),
        (tensor_type(1, (4,)), TypeProto(), False),
        (TypeProto(), tensor_type(1, (4,)), False),
        (None, tensor_type(1, (4,)), False),
        (tensor_type(1, (4,)), None, False),
        (tensor_type(0, (4,)), tensor_type(0, (4,)), False),
    ],
)
def test_shapes_must_be_known_to_be_equal(before: TypeProto | None, after: TypeProto | None, same: bool) -> None:
    assert pairs(before, after) == same


def test_a_rank_that_is_not_known_is_not_the_same() -> None:
    bare = TypeProto()
    bare.tensor_type.elem_type = 1
    assert pairs(bare, named(4)) == pairs(named(4), bare) == pairs(bare, bare) == 0


def test_only_what_was_computed_and_is_read_once() -> None:
    shape = named(4)
    assert pairs(shape, shape) == 1
    assert pairs(shape, shape, made=()) == 0
    assert pairs(shape, shape, helper.make_node("Clip", ["a", "a"], ["b"])) == 0
    assert pairs(shape, shape, helper.make_node("Clip", ["a", "low"], ["b"])) == 1
    assert pairs(shape, shape, helper.make_node("Relu", ["a"], ["b"], domain="other")) == 0
    assert pairs(shape, shape, helper.make_node("Relu", ["a"], ["b"], domain="ai.onnx")) == 1
    assert pairs(shape, shape, helper.make_node("Relu", ["a"], [""])) == 0
    assert pairs(shape, shape, helper.make_node("Relu", ["a"], [])) == 0
    assert pairs(shape, shape, helper.make_node("Relu", [], ["b"])) == 0
    assert pairs(shape, shape, helper.make_node("Exp", ["a"], ["b"])) == 0
    assert pairs(shape, shape, helper.make_node("Softmax", ["a"], ["b"])) == 1
    double = tensor_type(11, (4,))
    assert pairs(double, double, helper.make_node("Softmax", ["a"], ["b"])) == 0
    assert pairs(double, double) == 1
