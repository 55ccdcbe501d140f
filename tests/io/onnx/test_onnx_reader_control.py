"""Nodes that hold nodes: functions, If, Loop, Scan; and operations that must not run twice."""

from __future__ import annotations

import pytest
from onnx import parser

from checkmate.core.errors import InputError
from checkmate.core.model.graph import Operation
from checkmate.io.onnx.read.reader import OnnxModel, read_onnx

HEADER = '<ir_version: 10, opset_import: ["" : 18, "local" : 1]>'


def read(text: str, functions: str = "", **options: object) -> OnnxModel:
    return read_onnx(parser.parse_model(f"{HEADER} g {text} {functions}").SerializeToString(), **options)  # type: ignore[arg-type]


def function(text: str, opset: int = 18) -> str:
    return f'<domain: "local", opset_import: ["" : {opset}, "local" : 1]> {text}'


def operation(model: OnnxModel, name: str) -> Operation:
    return next(operation for operation in model.graph.operations if operation.name == name)


def sizes(model: OnnxModel) -> dict[str, int]:
    return {value.name: value.bytes for value in model.graph.values}


def inputs(model: OnnxModel, name: str) -> list[str]:
    return [model.graph.values[value].name for value in operation(model, name).inputs]


def test_a_call_of_a_function_is_one_operation_with_the_work_of_its_body() -> None:
    model = read(
        "(float[N,8] x) => (y) { h = Relu(x) [call] y = local.Twice(h) }",
        function("Twice (a) => (c) { b = Add(a, a) t = Transpose<perm = [0, 1]>(b) c = Mul(t, a) }"),
        batch_size=4,
    )
    call = operation(model, "call")
    assert call.kind == "local.Twice"
    assert call.work.flops == 32 + 32
    assert call.work.moved_bytes == 128 + 128
    assert sizes(model) == {"h": 128, "y": 128}


def test_the_memory_a_function_takes_inside_is_workspace() -> None:
    """b and c are there together, and nothing else but the output while c is read; d, the output, is counted outside."""
    model = read(
        "(float[1000] x) => (y) { [call] y = local.F(x) }",
        function("F (a) => (d) { b = Relu(a) c = Concat<axis = 0>(b, b) e = ReduceSum<keepdims = 1>(c) d = Add(e, a) }"),
    )
    assert operation(model, "call").workspace == 4000 + 8000 - 4000
    assert sizes(model) == {"y": 4000}


def test_a_view_inside_a_function_takes_no_workspace() -> None:
    model = read("(float[10] x) => (y) { [call] y = local.F(x) }", function("F (a) => (c) { b = Identity(a) c = Relu(b) }"))
    assert operation(model, "call").workspace == 0


def test_attributes_and_optional_inputs_of_a_function() -> None:
    body = function(
        "F <axis, to: int = 10> (a, b) => (d, m) { c = Concat<axis: int = @axis>(a, a) d = Cast<to: int = @to>(c) m = Clip(a, , b) }"
    )
    model = read("(float[3,4] x) => (y) { [call] y, m = local.F<axis = 1>(x) }", body)
    assert sizes(model) == {"y": 3 * 8 * 2, "m": 48}
    other = read("(float[3,4] x) => (y) { [call] y = local.F<axis = 0, to = 11>(x, x) }", body)
    assert sizes(other) == {"y": 6 * 4 * 8}


def test_functions_call_functions_and_hand_shapes_on() -> None:
    model = read(
        "(float[2,6] x) => (y) <int64[2] s = {3, 4}> { [call] y = local.Outer(x, s) }",
        function("Outer (a, to) => (b) { b = local.Inner(a, to) }")
        + function(
            "Inner (a, to) => (c) { b = Reshape(a, to) c = MatMul(b, w) w = ConstantOfShape(k) k = Constant<value_ints = [4, 5]>() }"
        ),
    )
    assert sizes(model) == {"y": 60}
    assert operation(model, "call").work.flops == 2 * 3 * 4 * 5
    assert model.graph.fixed["constants"] == 16


def test_a_function_nothing_is_known_about_inside_has_bytes_only() -> None:
    model = read("(float[4] x) => (float[2] y) { [call] y = local.F(x) }", function("F (a) => (b) { b = Thing(a) }"))
    assert operation(model, "call").work.flops is None
    assert operation(model, "call").work.moved_bytes == 24
    with pytest.raises(
        InputError, match=r"'y', made by node 'call' \(local.F\), is unknown: the size of tensor 'b', made by node 'Thing_0'"
    ):
        read("(float[4] x) => (y) { [call] y = local.F(x) }", function("F (a) => (b) { b = Thing(a) }"))


def test_unknown_sizes_inside_do_not_matter_if_the_output_is_known() -> None:
    model = read(
        "(float[4] x) => (y) { [call] y = local.F(x) }",
        function("F (a) => (d) { b = NonZero(a) c = Cast<to = 1>(b) d = ReduceSum<keepdims = 0>(c) }"),
    )
    assert sizes(model) == {"y": 4}


def test_functions_that_never_end_are_refused() -> None:
    with pytest.raises(InputError, match=r"function '[FG]' calls itself"):
        read(
            "(float[4] x) => (y) { y = local.F(x) }",
            function("F (a) => (b) { b = local.G(a) }") + function("G (a) => (b) { b = local.F(a) }"),
        )
    deep = "".join(function(f"F{n} (a) => (b) {{ b = local.F{n + 1}(a) }}") for n in range(100)) + function(
        "F100 (a) => (b) { b = Relu(a) }"
    )
    with pytest.raises(InputError, match="32 deep"):
        read("(float[4] x) => (y) { y = local.F0(x) }", deep)
    wide = "".join(function(f"F{n} (a) => (c) {{ b = local.F{n + 1}(a) c = local.F{n + 1}(b) }}") for n in range(25))
    with pytest.raises(InputError, match="more than 200000 nodes"):
        read("(float[4] x) => (y) { y = local.F0(x) }", wide + function("F25 (a) => (b) { b = Relu(a) }"))


IF = """(float[4] x, bool c) => (y) {
    a = Relu(x) b = Abs(x)
    [choice] y = If (c) <
        then_branch = t () => (float[4] p) { p = Add(a, a) },
        else_branch = e () => (float[4] r) { q = Mul(b, k) k = Constant<value = float[4] {1, 2, 3, 4}>() r = Neg(q) }>
    }"""


def test_captured_values_are_inputs() -> None:
    model = read(IF)
    assert inputs(model, "choice") == ["a", "b"]
    assert sizes(model) == {"a": 16, "b": 16, "y": 16}
    choice = operation(model, "choice")
    assert choice.work.flops is None
    assert choice.work.moved_bytes == 1 + 16 + 16 + 16
    assert choice.workspace == 16
    assert model.graph.fixed["constants"] == 16


def test_values_captured_deep_inside_are_inputs_too() -> None:
    model = read(
        """(float[4] x, bool c) => (y) { a = Relu(x) b = Abs(x)
        [choice] y = If (c) <
            then_branch = t () => (float[4] p) { p = If (c) <
                then_branch = t2 () => (float[4] q) { q = Neg(b) }, else_branch = e2 () => (float[4] r) { r = Neg(x) }> },
            else_branch = e () => (float[4] a) { }> }"""
    )
    assert inputs(model, "choice") == ["b", "a"]
    assert model.graph.operations[-1].name == "choice"


def test_branches_of_different_shapes() -> None:
    text = """({head}) => (y) <{info}> {{ [choice] y = If (c) <
        then_branch = t () => (p) {{ p = Concat<axis = 0>(x, x) }}, else_branch = e () => (q) {{ q = Neg(x) }}> z = Relu(y) }}"""
    with pytest.raises(
        InputError, match=r"'y', made by node 'choice' \(If\), is unknown: its branches make different shapes; add value_info"
    ):
        read(text.format(head="float[4] x, bool c", info="float w"))
    assert sizes(read(text.format(head="float[4] x, bool c", info="float[8] y"))) == {"y": 32, "z": 32}
    assert sizes(read(text.format(head="float[4] x", info="bool c = {1}"))) == {"y": 32, "z": 32}
    assert sizes(read(text.format(head="float[4] x", info="bool c = {0}"))) == {"y": 16, "z": 16}


LOOP = """({head}) => (y, all) <{info}> {{ w = Relu(x)
    [turns] y, all = Loop (n, go, x) <body = b (int64 i, bool c, float[4] s) => (bool d, float[4] t, u) {{
        d = Identity(c) t = Add(s, w) u = {collected} }}> }}"""


def test_a_loop_with_a_known_number_of_turns() -> None:
    model = read(LOOP.format(head="float[4] x", info="int64 n = {7}, bool go = {1}", collected="Concat<axis = 0>(t, s)"))
    assert sizes(model) == {"w": 16, "y": 16, "all": 7 * 32}
    assert inputs(model, "turns") == ["w"]
    assert operation(model, "turns").workspace == 16


def test_a_loop_nobody_can_count() -> None:
    with pytest.raises(InputError, match=r"'all', made by node 'turns' \(Loop\), is unknown: its number of iterations is not known"):
        read(LOOP.format(head="float[4] x, int64 n, bool go", info="float z", collected="Neg(t)"))
    model = read(LOOP.format(head="float[4] x, int64 n, bool go", info="float[9,4] all", collected="Neg(t)"))
    assert sizes(model)["all"] == 144


def test_a_loop_whose_state_grows() -> None:
    text = """(float[4] x, int64 n, bool go) => (y) { [turns] y = Loop (n, go, x) <
        body = b (int64 i, bool c, float[k] s) => (bool d, float[m] t) { d = Identity(c) t = Concat<axis = 0>(s, s) }> }"""
    with pytest.raises(InputError, match=r"made by node 'turns' \(Loop\).*the shape of its state changes"):
        read(text)


def test_a_scan() -> None:
    model = read(
        """(float[2] s, float[3,6,5] x) => (y, all) { w = Neg(s)
        [turns] y, all = Scan<num_scan_inputs = 1, scan_input_axes = [1], scan_output_axes = [-1],
            body = b (float[2] state, float[3,5] part) => (float[2] next, float[3,5] out) {
                next = Add(state, w) out = Relu(part) }>(s, x) }"""
    )
    assert sizes(model) == {"w": 8, "y": 8, "all": 3 * 5 * 6 * 4}
    assert inputs(model, "turns") == ["w"]


def choice(then: str) -> str:
    return f"y = If (flag) <then_branch = t () => (float[4] p) {{ {then} }}, else_branch = e () => (float[4] q) {{ q = Neg(x) }}>"


@pytest.mark.parametrize(
    ("node", "pinned"),
    [
        ("y = RandomNormalLike(x)", True),
        ("y = RandomNormalLike<seed = 1.0>(x)", False),
        ("y = RandomUniformLike(x)", True),
        ("y = RandomNormal<shape = [4]>()", True),
        ("y = RandomUniform<shape = [4], seed = 1.0>()", True),
        ("y = Bernoulli(x)", True),
        ("y = Dropout(x)", False),
        ("y = Dropout(x, r, no)", False),
        ("y = Dropout(x, r, yes)", True),
        ("y = Dropout(x, r, flag)", True),
        ("y = Dropout<seed = 3>(x, r, yes)", False),
        ("y = Relu(x)", False),
        (
            choice("p = RandomNormalLike(x)"),
            True,
        ),
        (
            choice("p = Dropout(x, r, yes)"),
            True,
        ),
        (
            choice("k = Constant<value = bool {0}>() p = Dropout(x, r, k)"),
            False,
        ),
        ("y = local.Noise(x)", True),
        ("y = local.Quiet(x)", False),
    ],
)
def test_what_would_not_repeat_is_pinned(node: str, pinned: bool) -> None:
    functions = function("Noise (a) => (b) { c = RandomNormalLike(a) b = Add(a, c) }") + function("Quiet (a) => (b) { b = local.Inner(a) }")
    functions += function("Inner (a) => (b) { k = Constant<value = bool {0}>() b = Dropout(a, , k) }")
    model = read(f"(float[4] x, bool flag) => (y) <bool yes = {{1}}, bool no = {{0}}, float r = {{0.5}}> {{ {node} }}", functions)
    assert any(operation.pinned for operation in model.graph.operations) == pinned


def test_before_opset_12_dropout_never_drops() -> None:
    text = '<ir_version: 7, opset_import: ["" : 10]> g (float[4] x) => (y) { y = Dropout<ratio = 0.5>(x) }'
    assert not read_onnx(parser.parse_model(text).SerializeToString()).graph.operations[0].pinned


def test_a_branch_whose_sizes_contradict_each_other_cannot_run() -> None:
    """A model for two rates of samples: the branch of the other rate does not fit the size of the input."""
    model = read(
        """(float[2,6] x, bool rate, float[6,3] w, float[5,4] v) => (y) {
        y = If (rate) <then_branch = a () => (p) { p = MatMul(x, w) },
                       else_branch = b () => (q) { m = MatMul(x, v) q = If (rate) <
                           then_branch = c () => (r) { r = Relu(m) }, else_branch = d () => (s) { s = MatMul(m, m) }> }> }"""
    )
    assert sizes(model)["y"] == 2 * 3 * 4
