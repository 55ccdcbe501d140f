"""What keeps a compiled model's order and repeats in any session: the attribute, the barriers, nothing left unread."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from exactness import VIEWS, random_feeds, run
from onnx import helper, parser

from checkmate.core.schedule.schedule import Action, Schedule, Step
from checkmate.io.onnx.compile.anchor_modes import Anchor
from checkmate.io.onnx.compile.writer import RECOMPUTE_ATTRIBUTE, compile_model
from checkmate.io.onnx.read.reader import OnnxModel, read_onnx
from checkmate.io.onnxruntime.predict import predict

TWO_ARMS = """g (float[16,32] x) => (float[16,32] z) {
    [left] a = Exp(x)
    [next] b = Sin(a)
    [right] c = Neg(x)
    [far] d = Mul(c, a)
    [sum] z = Add(b, d)
}"""
ORDER = "left next right left far sum"


def parsed(body: str, opset: int = 17, functions: str = "") -> OnnxModel:
    local = ', "local" : 1' if functions else ""
    proto = parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}{local}]>\n{body}{functions}')
    return read_onnx(proto.SerializeToString(), name="test")


def by_names(model: OnnxModel, names: str) -> Schedule:
    number = {operation.name: index for index, operation in enumerate(model.graph.operations)}
    return Schedule(tuple(Step(Action.COMPUTE, number[name]) for name in names.split()))


def compiled(model: OnnxModel, names: str, anchor: Anchor = Anchor.FULL) -> onnx.ModelProto:
    made = compile_model(model, by_names(model, names), anchor=anchor)
    onnx.checker.check_model(made, full_check=True)
    return made


def own(model: onnx.ModelProto) -> list[str]:
    """Nodes that are no helpers of ours."""
    return [node.name for node in model.graph.node if not node.name.startswith("checkmate/")]


def assert_all_runs(model: OnnxModel, made: onnx.ModelProto, folder: Path) -> None:
    """Values bit-equal and bytes as predicted in exact mode; in a plain session every node runs, in the order of the file."""
    feeds = random_feeds(model)
    before, after, plain = (
        run(model.proto, feeds, folder, exact=True),
        run(made, feeds, folder, exact=True),
        run(made, feeds, folder, exact=False),
    )
    assert [one.tobytes() for one in after.outputs] == [one.tobytes() for one in before.outputs]
    expected = predict(read_onnx(made.SerializeToString(), name="compiled")).nodes
    assert [(node.name, node.live_bytes) for node in expected] == list(zip(after.names, after.live, strict=True))
    file_order = [node.name for node in made.graph.node if node.op_type != "Constant"]
    assert after.names == file_order
    waiting = [node.name for node in made.graph.node if node.op_type not in ("Constant", *VIEWS)]
    assert [name for name in plain.names if name in waiting] == waiting
    for one, other in zip(plain.outputs, before.outputs, strict=True):
        np.testing.assert_allclose(one.astype(np.float64), other.astype(np.float64), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("opset", [7, 8, 9, 10, 11, 12, 13, 15, 17, 21])
def test_order_and_repeats_hold_in_any_session(opset: int, tmp_path: Path) -> None:
    model = parsed(TWO_ARMS, opset)
    made = compiled(model, ORDER)
    assert own(made) == ["left", "next", "right", "left__recompute1", "far", "sum"]
    assert_all_runs(model, made, tmp_path)


def test_plain_sessions_break_what_is_not_anchored(tmp_path: Path) -> None:
    """Or else the tests above would prove nothing."""
    model = parsed(TWO_ARMS)
    plain = run(compiled(model, ORDER, Anchor.NONE), random_feeds(model), tmp_path, exact=False)
    assert len(plain.names) == 5
    attribute = run(compiled(model, ORDER, Anchor.ATTR), random_feeds(model), tmp_path, exact=False)
    assert sorted(attribute.names) == sorted(ORDER.replace("left far", "left__recompute1 far").split())


@pytest.mark.parametrize("operator", ["Exp", "Relu"])
def test_only_copies_carry_the_attribute(operator: str) -> None:
    """An activation too, if others read its input: they could be merged."""
    body = f"[left] a = {operator}(x) [one] b = Sin(a) [two] c = Cos(a) [three] d = Neg(a) [some] e = Add(b, c) [all] z = Add(d, e)"
    for anchor in (Anchor.FULL, Anchor.ATTR):
        made = compiled(parsed(f"g (float[16,32] x) => (float[16,32] z) {{ {body} }}"), "left one left two left three some all", anchor)
        marks = {
            node.name: attribute.i for node in made.graph.node for attribute in node.attribute if attribute.name == RECOMPUTE_ATTRIBUTE
        }
        assert marks == {"left__recompute1": 1, "left__recompute2": 2}


def test_a_barrier_stands_only_where_a_node_would_not_wait() -> None:
    model = parsed("g (float[4] x) => (float[4] z) { [a] a = Exp(x) [b] b = Neg(a) [c] z = Cos(b) }")
    assert own(compiled(model, "a b c")) == [node.name for node in compiled(model, "a b c").graph.node]


def test_barriers_take_no_memory_and_move_no_data(tmp_path: Path) -> None:
    model = parsed(TWO_ARMS)
    made = compiled(model, ORDER)
    ran = run(made, random_feeds(model), tmp_path, exact=True)
    plain = run(compiled(model, ORDER, Anchor.NONE), random_feeds(model), tmp_path, exact=True)
    taken = dict(zip(ran.names, ran.live, strict=True))
    assert [taken[name] for name in plain.names] == plain.live


KINDS = {
    "bfloat16": ("Cast<to = 16>(x)", "Cast<to = 1>({})"),
    "double": ("Cast<to = 11>(x)", "Cast<to = 1>({})"),
    "whole numbers": ("Cast<to = 7>(x)", "Cast<to = 1>({})"),
    "truth": ("Less(x, small)", "Cast<to = 1>({})"),
    "half": ("Cast<to = 10>(x)", "Cast<to = 1>({})"),
    "a scalar": ("ReduceMax<keepdims = 0>(x)", "Neg({})"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_tensors_of_any_kind_are_waited_for_and_held_back(kind: str, tmp_path: Path) -> None:
    there, back = KINDS[kind]
    model = parsed(f"""g (float[8,4] x) => (float[8,4] z) <float small = {{0.1}}> {{
        [make] a = {there}
        [other] b = Neg(x)
        [back] c = {back.format("a")}
        [sum] z = Add(b, c)
    }}""")
    made = compiled(model, "make other make back sum")
    assert_all_runs(model, made, tmp_path)


@pytest.mark.parametrize("opset", [8, 11, 13, 17])
def test_an_output_nobody_reads_is_sunk_or_left_out(opset: int, tmp_path: Path) -> None:
    """onnxruntime would hold it to the end."""
    cut = "Split<axis = 1>(a)" if opset < 18 else "Split<axis = 1, num_outputs = 2>(a)"
    model = parsed(
        f"""g (float[8,64] x) => (float[8,32] z) {{
        [make] a = Exp(x)
        [cut] l, r = {cut}
        [one] b = Cos(l)
        [two] c = Sin(b)
        [three] d = Cos(c)
        [four] z = Sin(d)
    }}""",
        opset,
    )
    made = compiled(model, "make cut one two three four")
    assert_all_runs(model, made, tmp_path)
    before, after = (
        dict(zip(ran.names, ran.live, strict=True))
        for ran in (run(m, random_feeds(model), tmp_path, exact=True) for m in (model.proto, made))
    )
    assert before["three"] == 3 * 1024
    assert after["three"] == 2 * 1024


def test_optional_outputs_nobody_reads_are_left_out(tmp_path: Path) -> None:
    model = parsed("""g (float[2,3,8,8] x, float[8] s) => (float[2,3,4,4] z, float[2,3,8,8] y) {
        [pool] a, where = MaxPool<kernel_shape = [2,2], strides = [2,2]>(x)
        [drop] b, mask = Dropout(a)
        [flip] z = Neg(b)
        [norm] c, mean, deviation = LayerNormalization(x, s)
        [scaled] y = Mul(c, deviation)
    }""")
    made = compiled(model, "pool drop flip norm scaled")
    outputs = {node.name: list(node.output) for node in made.graph.node}
    assert (outputs["pool"], outputs["drop"], outputs["norm"]) == (["a"], ["b"], ["c", "", "deviation"])
    feeds = random_feeds(model)
    before, after = run(model.proto, feeds, tmp_path, exact=True), run(made, feeds, tmp_path, exact=True)
    assert [one.tobytes() for one in after.outputs] == [one.tobytes() for one in before.outputs]
    assert [node.live_bytes for node in predict(read_onnx(made.SerializeToString(), name="c")).nodes] == after.live


def test_functions_are_inlined_so_that_their_nodes_stay_in_order(tmp_path: Path) -> None:
    model = parsed(
        """g (float[8,4] x, float[8,4] y) => (float[8,4] z) {
        [wave] a, b = local.Wave<shift = 0.25>(x)
        [other] c, same = local.Wave(y)
        [sum] d = Add(a, c)
        [end] z = Mul(b, d)
    }""",
        functions="""<domain: "local", opset_import: ["" : 17]>
    Wave <shift: float = 0.5> (x) => (s, same) {
        c = Constant<value_float: float = @shift>()
        d = Add(x, c)
        e = local.Inner(d)
        s = Sin(e)
        same = Identity(x)
    }
    <domain: "local", opset_import: ["" : 17]>
    Inner (v) => (w) { w = Cos(v) }""".replace(
            '"local", opset_import: ["" : 17]>\n    Wave', '"local", opset_import: ["" : 17, "local" : 1]>\n    Wave'
        ),
    )
    made = compiled(model, "wave other sum wave end")
    assert {node.domain for node in made.graph.node} == {""}
    assert not made.functions
    inside = [name for name in own(made) if name.startswith("wave__recompute1/")]
    assert inside == [f"wave__recompute1/{kind}" for kind in ("Constant", "Add", "Inner/Cos", "Sin", "Identity")]
    feeds = random_feeds(model)
    before, after = run(model.proto, feeds, tmp_path, exact=True), run(made, feeds, tmp_path, exact=True)
    assert [one.tobytes() for one in after.outputs] == [one.tobytes() for one in before.outputs]
    expected = predict(read_onnx(made.SerializeToString(), name="compiled")).nodes
    assert [(node.name, node.live_bytes) for node in expected] == list(zip(after.names, after.live, strict=True))


def test_an_activation_after_a_gemm_can_still_be_fused(tmp_path: Path) -> None:
    """onnxruntime carries attributes of the activation over to the fused node, which must not have ours."""
    model = parsed("""g (float[8,4] x, float[4,4] w) => (float[8,4] z) {
        [dense] a = Gemm(x, w)
        [bend] b = Relu(a)
        [other] c = Neg(x)
        [sum] d = Add(b, c)
        [end] z = Mul(b, d)
    }""")
    for anchor in (Anchor.FULL, Anchor.ATTR):
        made = compiled(model, "dense bend other sum dense bend end", anchor)
        plain = run(made, random_feeds(model), tmp_path, exact=False)
        assert "fused dense__recompute1" in plain.names, anchor


def test_casts_in_a_row_all_run(tmp_path: Path) -> None:
    model = parsed("""g (float[8,4] x) => (float[8,4] z) {
        [wide] a = Cast<to = 11>(x)
        [narrow] b = Cast<to = 1>(a)
        [end] z = Neg(b)
    }""")
    assert_all_runs(model, compiled(model, "wide narrow end"), tmp_path)


def test_free_dimensions_stay_free(tmp_path: Path) -> None:
    """A model compiled for one batch size runs with another, in the same order."""
    proto = parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]>\n{TWO_ARMS.replace("16,32", "n,32")}')
    model = read_onnx(proto.SerializeToString(), name="test", dims={"n": 16})
    made = compiled(model, ORDER)
    assert [info.type.tensor_type.shape.dim[0].dim_param for info in (*made.graph.input, *made.graph.output)] == ["n", "n"]
    ran = run(made, {"x": np.ones((5, 32), np.float32)}, tmp_path, exact=False)
    assert ran.outputs[0].shape == (5, 32)
    assert [name for name in ran.names if not name.startswith("checkmate/")] == own(made)


def test_a_plain_session_takes_what_was_predicted(tmp_path: Path) -> None:
    """Shapes are disguised, so that no two tensors are tied to one buffer."""
    layers = "".join(f"[a{i}] v{i} = Sin(v{i - 1})\n" for i in range(1, 7))
    back = "".join(f"[g{i}] g{i} = Mul(g{i + 1}, v{i})\n" for i in range(6, 0, -1))
    model = parsed(f"g (float[64,64] v0, float[64,64] g7) => (float[64,64] z) {{ {layers}{back}[end] z = Neg(g1) }}")
    made = compiled(model, "a1 a2 a3 a4 a5 a6 g6 g5 a1 a2 a3 a4 g4 g3 a1 a2 g2 g1 end")
    plain = run(made, random_feeds(model), tmp_path, exact=False)
    peak = max(node.live_bytes for node in predict(read_onnx(made.SerializeToString(), name="compiled")).nodes)
    assert plain.peak == peak
    loose = compiled(model, "a1 a2 a3 a4 a5 a6 g6 g5 a1 a2 a3 a4 g4 g3 a1 a2 g2 g1 end", Anchor.NONE)
    assert run(loose, random_feeds(model), tmp_path, exact=False).peak > peak
    dimensions = [dimension for value in made.graph.value_info for dimension in value.type.tensor_type.shape.dim]
    assert not [dimension.dim_param for dimension in dimensions if dimension.dim_param], "each name slows onnxruntime's search for buffers"


@pytest.mark.parametrize(("opset", "waits"), [(12, False), (13, True), (14, True)])
def test_a_copy_to_a_graph_output_waits_where_a_barrier_is_no_reshape(opset: int, waits: bool) -> None:
    """onnxruntime would merge the Reshape of a barrier, before opset 13, with the one that makes the output."""
    model = parsed(
        """g (float[4,6] x) => (float[24] z, float[4,6] w) <int64[1] flat = {-1}> {
        [a] a = Exp(x) [b] b = Neg(x) [c] w = Sin(b) [v] z = Reshape(a, flat) }""",
        opset,
    )
    made = {node.name: node for node in compiled(model, "a b c v").graph.node}
    assert made["v"].input[0].startswith("checkmate/") == waits


@pytest.mark.parametrize(("opset", "inputs"), [(9, 1), (10, 3), (11, 3)])
def test_what_compress_does_not_take_is_sliced_as_the_opset_has_it(opset: int, inputs: int) -> None:
    """bfloat16 below opset 13: operators of others may make it."""
    proto = parser.parse_model(f"""<ir_version: 8, opset_import: ["" : {opset}, "other" : 1]>
    g (float[4,6] x) => (float[4,6] z) <bfloat16[4,6] a, float[4,6] c> {{
        [a] a = other.There(x) [b] b = Neg(x) [c] c = other.Back(a) [d] z = Add(b, c) }}""")
    model = read_onnx(proto)
    made = compile_model(model, by_names(model, "a b c d"), anchor=Anchor.FULL)
    assert [len(node.input) for node in made.graph.node if node.op_type == "Slice"] == [inputs]


def test_recomputed_shape_arithmetic_is_read(tmp_path: Path) -> None:
    """The size of a recomputed Reshape is known only if the recomputed numbers are."""
    model = parsed("""g (float[8,4,1,5] x) => (float[8,4,5] z) <int64[1] begin = {0}, int64[1] end = {2}, int64[1] rest = {-1}> {
        [a] a = Exp(x) [shape] s = Shape(a) [same] t = Identity(s) [part] p = Slice(t, begin, end, begin)
        [target] r = Concat<axis = 0>(p, rest) [flat] f = Reshape(a, r) [sin] b = Sin(f) [cos] c = Cos(b) [sum] z = Add(f, c) }""")
    made = compiled(model, "a shape same part target flat sin cos a shape same part target flat sum")
    assert "flat__recompute1" in own(made)
    ran = run(made, random_feeds(model), tmp_path, exact=True)
    expected = predict(read_onnx(made.SerializeToString(), name="compiled")).nodes
    assert [(node.name, node.live_bytes) for node in expected] == list(zip(ran.names, ran.live, strict=True))


def test_compiling_again_works(tmp_path: Path) -> None:
    model = parsed(TWO_ARMS)
    once = read_onnx(compiled(model, ORDER).SerializeToString(), name="once")
    names = " ".join(operation.name for operation in once.graph.operations)
    twice = compiled(once, names)
    assert_all_runs(model, twice, tmp_path)


def test_a_recomputed_node_inside_a_branch_reads_through_no_barrier(tmp_path: Path) -> None:
    model = parsed("""g (float[8,4] x, bool yes) => (float[8,4] z) {
        [make] a = Exp(x)
        [other] b = Neg(x)
        [choose] c = If (yes) <
            then_branch = t () => (float[8,4] u) { u = Sin(a) },
            else_branch = e () => (float[8,4] v) { v = Cos(a) }
        >
        [sum] z = Add(b, c)
    }""")
    made = compiled(model, "make other make choose sum")
    feeds = {"x": np.ones((8, 4), np.float32), "yes": np.asarray(True)}
    before, after = (run(proto, feeds, tmp_path, exact=True) for proto in (model.proto, made))
    assert before.outputs[0].tobytes() == after.outputs[0].tobytes()


def test_statistics_that_are_read_make_a_normalization_run_once() -> None:
    body = """g (float[4,2,3] x, float[2] s, float[2] b, float[2] m, float[2] v) => (float[4,2,3] z{}) {{
        [norm] y, m1, v1 = BatchNormalization<training_mode = 1>(x, s, b, m, v)
        [use] z = {}
    }}"""
    assert not parsed(body.format(", float[2] m1", "Neg(y)")).graph.operations[0].pinned
    assert (
        parsed(body.format("", "Unsqueeze(m1, m1)").replace("Unsqueeze(m1, m1)", "Add(y, y2) [more] y2 = ReduceMean<keepdims = 0>(m1)"))
        .graph.operations[0]
        .pinned
    )


def test_statistics_of_the_batch_alone_can_be_made_again(tmp_path: Path) -> None:
    """Momentum 0 forgets what was there before, so a second run writes the same numbers over the statistics it is given."""
    model = parsed("""g (float[4,2,3] x, float[2] s, float[2] b, float[2] m, float[2] v) => (float[4,2,3] z) {
        [norm] y, m1, v1 = BatchNormalization<training_mode = 1, momentum = 0.0>(x, s, b, m, v)
        [early] a = Exp(y)
        [mean] k = ReduceMean<keepdims = 0>(m1)
        [again] c = Mul(y, k)
        [end] z = Add(a, c)
    }""")
    assert not model.graph.operations[0].pinned
    assert_all_runs(model, compiled(model, "norm early mean norm again end"), tmp_path)


def test_the_session_is_told_what_was_done() -> None:
    made = compiled(parsed(TWO_ARMS), ORDER)
    notes = {entry.key: entry.value for entry in made.metadata_props}
    assert notes["checkmate.anchor"] == "full"
    assert notes["checkmate.session.execution_order"] == "PRIORITY_BASED"
    assert onnxruntime.InferenceSession(made.SerializeToString()).get_modelmeta().custom_metadata_map == notes


def test_sequences_and_optionals_are_left_alone(tmp_path: Path) -> None:
    """They cannot be held back; what is around them still works."""
    model = parsed("""g (float[8,4] x) => (float[16,4] z) {
        [make] a = Exp(x)
        [other] b = Neg(x)
        [list] s = SequenceConstruct(a, b)
        [more] c = Cos(x)
        [join] d = ConcatFromSequence<axis = 0>(s)
        [longer] e = Concat<axis = 0>(c, c)
        [sum] z = Add(d, e)
    }""")
    made = compiled(model, "make other list more join longer sum")
    feeds = random_feeds(model)
    for exact in (True, False):
        assert (
            run(made, feeds, tmp_path, exact=exact).outputs[0].tobytes()
            == run(model.proto, feeds, tmp_path, exact=True).outputs[0].tobytes()
        )


def test_a_node_of_stored_tensors_only_is_held_back_too(tmp_path: Path) -> None:
    """Default settings would compute it when the model is opened, and keep the result for good."""
    proto = parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]>
    g (float[4,8] x) => (float[4,8] z) { [early] a = Exp(x) [turn] t = Neg(w) [end] z = Mul(a, t) }""")
    proto.graph.initializer.append(helper.make_tensor("w", 1, [4, 8], np.arange(32, dtype=np.float32)))
    model = read_onnx(proto.SerializeToString(), name="test")
    made = compiled(model, "early turn end")
    assert_all_runs(model, made, tmp_path)
