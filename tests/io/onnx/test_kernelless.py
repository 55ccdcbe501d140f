"""Operators that onnxruntime has no kernel for are expanded before anything is counted: then names, order and bytes are as predicted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from cli_runs import run as command
from exactness import Ran, random_feeds, run
from onnx import helper, parser

from checkmate.io.onnx.read.kernelless import WITHOUT_KERNEL, expand_functions
from checkmate.io.onnx.read.reader import OnnxModel, read_onnx
from checkmate.io.onnxruntime.predict import predict

LABELS = "[pick] t = ArgMax<axis = 1, keepdims = 0>(x)"
CASES = {
    "CastLike": (15, "double[1] y", "[n] b = CastLike(a, y) [turn] c = Neg(b) [back] z = Cast<to = 1>(c)"),
    "CenterCropPad": (18, "", "[n] b = CenterCropPad<axes = [0]>(a, six) [back] z = Exp(b)"),
    "GroupNormalization": (18, "float[2] s, float[2] h", "[n] z = GroupNormalization<num_groups = 2, epsilon = 0.01>(a, s, h)"),
    "GroupNormalization 21": (21, "float[4] s, float[4] h", "[n] z = GroupNormalization<num_groups = 2>(a, s, h)"),
    "HardSwish": (14, "", "[n] z = HardSwish(a)"),
    "Mish": (18, "", "[n] z = Mish(a)"),
    "NegativeLogLikelihoodLoss": (13, "", f"{LABELS} [n] z = NegativeLogLikelihoodLoss(a, t)"),
    "SoftmaxCrossEntropyLoss": (13, "", f'{LABELS} [n] z = SoftmaxCrossEntropyLoss<reduction = "sum">(a, t)'),
    "Swish": (24, "", "[n] z = Swish(a)"),
}


def model_of(name: str) -> onnx.ModelProto:
    opset, inputs, body = CASES[name]
    given = f", {inputs}" if inputs else ""
    model = parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : {opset}]>\n'
        f"g (float[8,4,6] x{given}) => (float z) <int64[1] six = {{6}}> {{ [first] a = Exp(x) {body} }}"
    )
    model.graph.output[0].type.tensor_type.ClearField("shape")
    return model


def assert_as_predicted(model: OnnxModel, ran: Ran) -> None:
    expected = predict(model).nodes
    assert [(node.name, node.live_bytes) for node in expected] == list(zip(ran.names, ran.live, strict=True))


@pytest.mark.parametrize("name", CASES)
def test_names_order_and_bytes_are_as_predicted(name: str, tmp_path: Path) -> None:
    proto = model_of(name)
    model = read_onnx(proto.SerializeToString(), name="test", threads=1)
    kinds = {node.op_type for node in model.proto.graph.node}
    assert not kinds & WITHOUT_KERNEL
    inside = [node.name for node in model.proto.graph.node if node.name.startswith("n/")]
    assert inside
    assert len(set(inside)) == len(inside)
    assert {"first"} <= {node.name for node in model.proto.graph.node}
    feeds = random_feeds(model)
    original, expanded = run(proto, feeds, tmp_path, exact=True), run(model.proto, feeds, tmp_path, exact=True)
    assert [one.tobytes() for one in expanded.outputs] == [one.tobytes() for one in original.outputs]
    assert_as_predicted(model, expanded)


def test_all_that_can_run_here_are_tried() -> None:
    newer_than_onnxruntime = {"CausalConvWithState", "LinearAttention", "SwiGLU"}
    assert {name.split()[0] for name in CASES} | newer_than_onnxruntime | {"Bernoulli"} == WITHOUT_KERNEL


def test_two_calls_in_a_row_keep_their_names() -> None:
    proto = parser.parse_model("""<ir_version: 8, opset_import: ["" : 18]>
    g (float[4] x, double[1] y) => (float[4] z) { [one] a = HardSwish(x) [two] b = CastLike(a, y) [three] c = CastLike(b, x)
        z = Mish(c) }""")
    names = [node.name for node in expand_functions(proto).graph.node]
    assert names == [
        *("one/HardSigmoid", "one/Mul", "two/Cast", "three/Cast", "Mish_3/Softplus", "Mish_3/Tanh", "Mish_3/Mul"),
    ]


def test_what_needs_no_expansion_is_the_same_object() -> None:
    proto = parser.parse_model('<ir_version: 8, opset_import: ["" : 18]> g (float[4] x) => (float[4] z) { z = Relu(x) }')
    assert expand_functions(proto) is proto
    assert read_onnx(proto).proto is proto


def test_an_operator_of_another_domain_is_left_alone() -> None:
    node = helper.make_node("HardSwish", ["x"], ["z"], domain="other")
    shape = [helper.make_tensor_value_info(name, 1, [4]) for name in ("x", "z")]
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("other", 1)]
    proto = helper.make_model(helper.make_graph([node], "g", shape[:1], shape[1:]), opset_imports=opsets, ir_version=8)
    assert expand_functions(proto) is proto


def test_what_cannot_be_expanded_stays() -> None:
    """The definition of CastLike depends on the type of its second input, which nothing tells here."""
    nodes = [helper.make_node("Mystery", ["x"], ["y"], domain="other"), helper.make_node("CastLike", ["x", "y"], ["z"], "like")]
    shapes = [helper.make_tensor_value_info("x", 1, [4]), helper.make_tensor_value_info("z", 11, [4])]
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("other", 1)]
    proto = helper.make_model(helper.make_graph(nodes, "g", shapes[:1], shapes[1:]), opset_imports=opsets, ir_version=8)
    assert [node.op_type for node in expand_functions(proto).graph.node] == ["Mystery", "CastLike"]


def test_weights_and_metadata_stay() -> None:
    proto = parser.parse_model("""<ir_version: 8, opset_import: ["" : 18], metadata_props: ["a": "b"]>
    g (float[4] x) => (float[4] z) <float[4] w = {1, 2, 3, 4}> { [m] a = Mul(x, w) [h] z = HardSwish(a) }""")
    made = expand_functions(proto)
    assert (made.graph.initializer, made.metadata_props) == (proto.graph.initializer, proto.metadata_props)
    assert [node.op_type for node in proto.graph.node] == ["Mul", "HardSwish"], "the original is not changed"


def test_solved_compiled_and_verified(tmp_path: Path) -> None:
    """Recomputations of the expanded nodes run: "8 of 14 recomputations ran" was the complaint."""
    layers = "".join(f"[c{i}] c{i} = CastLike(v{i - 1}, x) [h{i}] v{i} = HardSwish(c{i})\n" for i in range(1, 7))
    back = "".join(f"[g{i}] g{i} = Mul(g{i + 1}, v{i})\n" for i in range(6, 0, -1))
    text = f"g (float[64,64] x, float[64,64] v0, float[64,64] g7) => (float[64,64] z) {{ {layers}{back}[end] z = Neg(g1) }}"
    (tmp_path / "m.onnx").write_bytes(parser.parse_model(f'<ir_version: 8, opset_import: ["" : 18]>\n{text}').SerializeToString())
    solved = command(tmp_path, "solve", "m.onnx", "--budget", "75%", "--time-limit", "10s", "--gap", "20%", "--json")
    assert (solved.code, solved.json["recomputed"] > 0) == (0, True), solved.err
    verified = command(tmp_path, "verify", "m.onnx", "m.remat.onnx", "--repeat", "1", "--json")
    assert verified.code == 0, verified.out
    order = next(check for check in verified.json["checks"] if check["name"] == "order")
    assert order["recomputations"] == solved.json["recomputed"]
    assert command(tmp_path, "profile", "m.onnx", "-o", "costs.json", "--repeat", "2").code == 0


def test_bernoulli_is_expanded_and_its_draw_runs_once() -> None:
    proto = parser.parse_model('<ir_version: 8, opset_import: ["" : 15]> g (float[4] x) => (float[4] z) { [b] z = Bernoulli(x) }')
    operations = read_onnx(proto).graph.operations
    assert [(operation.name, operation.pinned) for operation in operations] == [
        ("b/RandomUniformLike", True),
        ("b/Greater", False),
        ("b/Cast", False),
    ]
    assert np.all([operation.kind not in WITHOUT_KERNEL for operation in operations])
