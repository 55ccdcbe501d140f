"""What is written computes exactly what was read, and keeps everything else."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper, parser
from onnx.reference import ReferenceEvaluator

from checkmate.core.errors import VerificationError
from checkmate.core.model.costs import unit_costs
from checkmate.core.model.problem import build_problem
from checkmate.core.schedule.schedule import Action, Schedule, Step, expand
from checkmate.core.schedule.verify import Claim, verify
from checkmate.io.onnx.compile.anchor_modes import Anchor
from checkmate.io.onnx.compile.writer import compile_model
from checkmate.io.onnx.read.reader import OnnxModel, read_onnx
from checkmate.sample_graphs.networks import TINY

Feeds = dict[str, NDArray[Any]]
HEADER = '<ir_version: 8, opset_import: ["" : 18]>\n'


def model_from(text: str, header: str = HEADER) -> OnnxModel:
    proto = parser.parse_model(header + text)
    onnx.checker.check_model(proto, full_check=True)
    return read_onnx(proto.SerializeToString(), name="test")


def random_schedule(model: OnnxModel, random: np.random.Generator, *, share: float = 0.3) -> Schedule:
    """Every operation once, and anything computed before again now and then; the independent verifier must approve."""
    graph = model.graph
    problem = build_problem(graph, unit_costs(graph))
    sequence: list[int] = []
    for operation in range(problem.count):
        again = [earlier for earlier in range(operation) if random.random() < share and not problem.pinned[earlier]]
        random.shuffle(again)
        sequence += [*again[:4], operation]
    sequence += [operation for operation in range(problem.count) if random.random() < share and not problem.pinned[operation]]
    schedule = expand(problem, sequence)
    assert verify(graph, problem.costs.amounts, schedule, Claim()).violations == ()
    return schedule


def by_names(model: OnnxModel, names: str) -> Schedule:
    """A schedule of computations only, given by the names of operations."""
    number = {operation.name: index for index, operation in enumerate(model.graph.operations)}
    return Schedule(tuple(Step(Action.COMPUTE, number[name]) for name in names.split()))


def feeds_for(proto: onnx.ModelProto) -> Feeds:
    random = np.random.default_rng(5)
    stored = {tensor.name for tensor in proto.graph.initializer}
    feeds: Feeds = {}
    for info in proto.graph.input:
        kind = info.type.tensor_type
        shape = [dimension.dim_value for dimension in kind.shape.dim]
        whole = kind.elem_type in (TensorProto.INT64, TensorProto.BOOL)
        numbers = random.integers(0, 2, shape) if whole else random.normal(0.0, 0.3, size=shape)
        if info.name not in stored:
            feeds[info.name] = np.asarray(numbers).astype(helper.tensor_dtype_to_np_dtype(kind.elem_type))
    return feeds


def in_onnxruntime(proto: onnx.ModelProto, feeds: Feeds) -> list[NDArray[Any]]:
    """In the order of the file, one thread: what can differ then is only what we changed."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.execution_order = onnxruntime.ExecutionOrder.PRIORITY_BASED
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return list(session.run(None, feeds))


def in_reference(proto: onnx.ModelProto, feeds: Feeds) -> list[NDArray[Any]]:
    """Blank outputs get names first: the reference evaluator keeps them under "", and gives that to whoever reads a blank input."""
    named = onnx.ModelProto()
    named.CopyFrom(proto)
    for number, node in enumerate(named.graph.node):
        for position, name in enumerate(node.output):
            node.output[position] = name or f"blank_{number}_{position}"
    return list(ReferenceEvaluator(named).run(None, feeds))


def assert_equal_values(original: onnx.ModelProto, compiled: onnx.ModelProto) -> None:
    """Bit for bit, in both runtimes."""
    onnx.checker.check_model(compiled, full_check=True)
    feeds = feeds_for(original)
    assert [info.name for info in compiled.graph.output] == [info.name for info in original.graph.output]
    for run in (in_reference, in_onnxruntime):
        for found, expected in zip(run(compiled, feeds), run(original, feeds), strict=True):
            np.testing.assert_array_equal(found, expected)


def test_a_recomputation_by_hand() -> None:
    model = model_from("""g (float[2] x) => (float[2] z) {
        [first] a = Exp(x)
        [second] b = Tanh(a)
        [third] z = Add(a, b)
    }""")
    compiled = compile_model(model, by_names(model, "first second first third"))
    assert [(node.name, list(node.input), list(node.output)) for node in compiled.graph.node] == [
        ("first", ["x"], ["a"]),
        ("second", ["a"], ["b"]),
        ("first__recompute1", ["x"], ["a__recompute1"]),
        ("third", ["a__recompute1", "b"], ["z"]),
    ]
    assert_equal_values(model.proto, compiled)


def test_without_recomputation_nothing_changes_but_the_order() -> None:
    model = model_from("""g (float[2] x) => (float[2] z) {
        [left] a = Exp(x)
        [right] b = Tanh(x)
        [last] z = Add(a, b)
    }""")
    compiled = compile_model(model, by_names(model, "right left last"))
    assert [node.name for node in compiled.graph.node] == ["right", "left", "last"]
    assert sorted(node.SerializeToString() for node in compiled.graph.node) == sorted(
        node.SerializeToString() for node in model.proto.graph.node
    )


def test_the_last_copy_of_an_output_has_its_name() -> None:
    model = model_from("""g (float[2] x) => (float[2] a, float[2] c) {
        [one] a = Exp(x)
        [two] b = Tanh(a)
        [three] c = Add(a, b)
    }""")
    compiled = compile_model(model, by_names(model, "one two one three one"))
    assert [list(node.output) for node in compiled.graph.node] == [["a__recompute0"], ["b"], ["a__recompute1"], ["c"], ["a"]]
    assert list(compiled.graph.node[3].input) == ["a__recompute1", "b"]
    assert {info.name for info in compiled.graph.value_info} >= {"a__recompute0", "a__recompute1"}
    assert_equal_values(model.proto, compiled)


def test_taken_names_are_left_alone() -> None:
    model = model_from("""g (float[2] x, bool[1] yes) => (float[2] z) {
        [n] a = Exp(x)
        [n__recompute1] a__recompute1 = Tanh(a)
        [branch] c = If (yes) <
            then_branch = t () => (float[2] u) { a__recompute1_ = Neg(a) u = Neg(a__recompute1_) },
            else_branch = e () => (float[2] v) { v = Identity(a) }
        >
        [sum] z = Add(a__recompute1, c)
    }""")
    compiled = compile_model(model, by_names(model, "n n__recompute1 n branch sum"))
    copy = compiled.graph.node[2]
    assert (copy.name, list(copy.output)) == ("n__recompute1_", ["a__recompute1__"])
    assert_equal_values(model.proto, compiled)


NESTED = """g (float[2] x, bool[1] yes) => (float[2] z, float[2] a) {
    [make] a = Exp(x)
    [other] b = Tanh(a)
    [branch] c = If (yes) <
        then_branch = outer () => (float[2] t) {
            d = Add(a, b)
            t = If (yes) <
                then_branch = inner () => (float[2] i) { i = Mul(a, d) },
                else_branch = inner_else () => (float[2] j) { j = Identity(b) }
            >
        },
        else_branch = outer_else () => (float[2] e) { e = Sub(b, a) }
    >
    [sum] k = Add(c, a)
    [again] z = Mul(c, k)
}"""


def test_subgraphs_read_the_latest_copy() -> None:
    model = model_from(NESTED)
    compiled = compile_model(model, by_names(model, "make other make branch sum other branch again make"))
    branches = [node for node in compiled.graph.node if node.op_type == "If"]
    bodies = [{attribute.name: attribute.g for attribute in node.attribute} for node in branches]
    nested = [{attribute.name: attribute.g for attribute in body["then_branch"].node[1].attribute} for body in bodies]
    assert [list(body["then_branch"].node[0].input) for body in bodies] == [["a__recompute1", "b"], ["a__recompute1", "b__recompute1"]]
    assert [list(body["else_branch"].node[0].input) for body in bodies] == [["b", "a__recompute1"], ["b__recompute1", "a__recompute1"]]
    assert [list(body["then_branch"].node[0].input) for body in nested] == [["a__recompute1", "d"], ["a__recompute1", "d"]]
    assert [list(node.output) for node in branches] == [["c"], ["c__recompute1"]]
    assert_equal_values(model.proto, compiled)


def test_a_name_a_subgraph_defines_itself_is_not_rebound() -> None:
    """ONNX forbids such shadowing, files have it anyway: the name means the subgraph's own tensor."""
    model = model_from(NESTED)
    proto = onnx.ModelProto()
    proto.CopyFrom(model.proto)
    then = proto.graph.node[2].attribute[0].g
    then.node[0].output[0] = then.node[1].attribute[0].g.node[0].input[1] = "b"
    then.node[0].input[1] = "a"
    shadowed = read_onnx(proto.SerializeToString(), name="shadowed")
    compiled = compile_model(shadowed, by_names(shadowed, "make other make branch sum other branch again make"))
    then = compiled.graph.node[6].attribute[0].g
    assert (list(then.node[0].input), list(then.node[0].output)) == (["a__recompute1", "a__recompute1"], ["b"])
    assert list(then.node[1].attribute[0].g.node[0].input) == ["a__recompute1", "b"]
    assert list(then.node[1].attribute[1].g.node[0].input) == ["b"]
    assert list(compiled.graph.node[6].attribute[1].g.node[0].input) == ["b__recompute1", "a__recompute1"]


def test_a_loop_reads_the_latest_copy() -> None:
    model = model_from("""g (float[2] x) => (float[2] z) <int64 count = {3}, bool go = {1}> {
        [make] a = Exp(x)
        [first] k = Sin(a)
        [loop] b = Loop (count, go, x) <
            body = turn (int64 i, bool c, float[2] before) => (bool again, float[2] after) {
                again = Identity(c)
                after = Add(before, a)
            }
        >
        [sum] s = Add(a, b)
        [end] z = Add(s, k)
    }""")
    compiled = compile_model(model, by_names(model, "make first make loop make sum end"))
    assert list(compiled.graph.node[3].attribute[0].g.node[1].input) == ["before", "a__recompute1"]
    assert_equal_values(model.proto, compiled)


def test_constants_come_first_and_blanks_stay_blank() -> None:
    model = model_from("""g (float[4,6] x) => (float[4,3] left, float[4,3] r) {
        [top] high = Constant<value = float {0.5}>()
        [clip] a = Clip(x, , high)
        [scale] scale = Constant<value = float[6] {1, 2, 3, 4, 5, 6}>()
        [norm] b, , inverse = LayerNormalization(a, scale)
        [scaled] c = Mul(b, inverse)
        [cut] left, right = Split<axis = 1, num_outputs = 2>(c)
        [turn] r = Neg(right)
    }""")
    compiled = compile_model(model, by_names(model, "clip norm scaled cut turn clip norm scaled cut"))
    assert [node.op_type for node in compiled.graph.node[:2]] == ["Constant", "Constant"]
    assert [list(node.input) for node in compiled.graph.node if node.op_type == "Clip"] == [["x", "", "high"]] * 2
    assert [list(node.output) for node in compiled.graph.node if node.op_type == "LayerNormalization"] == [
        ["b", "", "inverse"],
        ["b__recompute1", "", "inverse__recompute1"],
    ]
    assert [list(node.output) for node in compiled.graph.node if node.op_type == "Split"] == [
        ["left__recompute0", "right"],
        ["left", "right__recompute1"],
    ]
    assert_equal_values(model.proto, compiled)


@pytest.mark.parametrize("read_twice", [False, True])
def test_recomputed_batch_normalization_counts_the_batch_once(read_twice: bool) -> None:
    """onnxruntime updates running statistics in place, so a second computation must leave them alone."""
    model = model_from("""g (float[4,2,3] x, float[2] s, float[2] b) => (float[4,2,3] z, float[2] m1, float[2] v1)
        <float[2] m = {10, 20}, float[2] v = {3, 4}> {
        [norm] y, m1, v1 = BatchNormalization<training_mode = 1, momentum = 0.5>(x, s, b, m, v)
        [next] t = Tanh(y)
        [sum] z = Add(y, t)
    }""")
    compiled = compile_model(model, by_names(model, "norm next norm sum norm" if read_twice else "norm next norm sum"))
    assert_equal_values(model.proto, compiled)


def test_nodes_without_names_get_those_of_the_operations() -> None:
    model = model_from("g (float[2] x) => (float[2] z) { a = Exp(x) b = Exp(a) z = Add(a, b) }")
    names = [operation.name for operation in model.graph.operations]
    compiled = compile_model(model, by_names(model, " ".join([names[0], names[1], names[0], names[2]])))
    assert [node.name for node in compiled.graph.node] == [names[0], names[1], f"{names[0]}__recompute1", names[2]]


def test_everything_else_is_kept() -> None:
    proto = parser.parse_model("""<ir_version: 8, opset_import: ["" : 18, "local" : 1], producer_name: "me", producer_version: "3",
        model_version: 7, doc_string: "about", domain: "here", metadata_props: ["author": "x", "checkmate.version": "old"]>
    g (float[2] x, float[2] w) => (float[2] z) <float[2] w = {1, 2}, float[2] v = {3, 4}, float scale = {1}> {
        [make] a = local.Twice(x)
        [next] b = Add(a, w)
        [last] z = Mul(a, b)
    }
    <domain: "local", opset_import: ["" : 18]>
    Twice (x) => (y) { y = Add(x, x) }""")
    proto.graph.value_info.append(helper.make_tensor_value_info("a", TensorProto.FLOAT, [2]))
    proto.graph.doc_string = "the graph"
    proto.graph.node[1].doc_string = "adds"
    annotation = proto.graph.quantization_annotation.add(tensor_name="a")
    annotation.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="scale")
    proto.training_info.add().algorithm.name = "learn"
    model = read_onnx(proto.SerializeToString(), name="kept")
    compiled = compile_model(model, by_names(model, "make next make last"), metadata={"checkmate.budget": "8"})
    assert_equal_values(model.proto, compiled)
    assert compiled.graph.node[1].doc_string == "adds"
    assert [info.name for info in compiled.graph.value_info] == ["a", "a__recompute1"]
    assert [entry.tensor_name for entry in compiled.graph.quantization_annotation] == ["a", "a__recompute1"]
    notes = {entry.key: entry.value for entry in compiled.metadata_props if not entry.key.startswith("checkmate.session.")}
    assert notes.pop("checkmate.version") != "old"
    assert notes == {"author": "x", "checkmate.budget": "8", "checkmate.anchor": "none", "checkmate.threads": str(model.threads)}
    for part in (proto.graph, compiled.graph):
        for field in ("node", "value_info", "quantization_annotation"):
            part.ClearField(field)
    proto.ClearField("functions")
    for whole in (proto, compiled):
        whole.ClearField("metadata_props")
    assert compiled == proto


def test_the_model_read_is_not_changed() -> None:
    model = read_onnx(TINY["unet"]().SerializeToString(), name="unet")
    before = model.proto.SerializeToString(deterministic=True)
    compile_model(model, random_schedule(model, np.random.default_rng(0)))
    assert model.proto.SerializeToString(deterministic=True) == before


def test_a_schedule_that_reads_too_early_is_refused() -> None:
    model = model_from("g (float[2] x) => (float[2] z) { [one] a = Exp(x) [two] z = Exp(a) }")
    with pytest.raises(VerificationError, match="'two' before its input 'a'"):
        compile_model(model, by_names(model, "two one"))


@pytest.mark.parametrize("name", TINY)
def test_samples_keep_their_values(name: str) -> None:
    model = read_onnx(TINY[name]().SerializeToString(), name=name)
    random = np.random.default_rng(7)
    schedule = random_schedule(model, random)
    compiled = compile_model(model, schedule)
    assert len(schedule.computations) > len(compiled.graph.node) > len(model.proto.graph.node)
    assert unread(compiled) == unread(model.proto) == []
    assert_equal_values(model.proto, compiled)
    again = read_onnx(compiled.SerializeToString(), name=name)
    assert again.node_of == tuple(range(len(compiled.graph.node))), "what was written can be read, and its order stays"


def unread(proto: onnx.ModelProto) -> list[str]:
    """Nodes of which no output is read, but by a sink."""
    nodes = [node for node in proto.graph.node if not node.name.startswith("checkmate/")]
    read = {name for node in nodes for name in node.input} | {info.name for info in proto.graph.output}
    return [node.name for node in nodes if read.isdisjoint(node.output)]


@pytest.mark.parametrize("anchor", Anchor)
@pytest.mark.parametrize(
    ("given", "written"),
    [
        ("a b a c d", "a b a__recompute1 c d"),
        ("a b a a c d", "a b a__recompute1 c d"),
        ("a b c a d", "a b c d"),
        ("a b a b a c d", "a b a__recompute1 c d"),
        ("spare a b c a spare d", "spare a b c d"),
    ],
)
def test_recomputations_that_nothing_reads_are_left_out(given: str, written: str, anchor: Anchor) -> None:
    """An operation that nothing reads at all stays, once, where it was first."""
    model = model_from("""g (float[2] x) => (float[2] z) {
        [spare] s = Neg(x)
        [a] a = Exp(x)
        [b] b = Tanh(a)
        [c] c = Add(a, b)
        [d] z = Neg(c)
    }""")
    given = given if "spare" in given else f"spare {given}"
    compiled = compile_model(model, by_names(model, given), anchor=anchor)
    names = [node.name for node in compiled.graph.node if not node.name.startswith("checkmate/")]
    assert names == (written if "spare" in written else f"spare {written}").split()
    assert_equal_values(model.proto, compiled)


def random_model(random: np.random.Generator) -> onnx.ModelProto:
    """A few operators on 4x4 matrices: several outputs, views, blanks, subgraphs, outputs that are read again."""
    matrices = ["x", "y"]
    nodes: list[onnx.NodeProto] = []

    def branch(name: str, kind: str, read: str) -> onnx.GraphProto:
        out = helper.make_tensor_value_info(f"{name}_{kind}", TensorProto.FLOAT, [4, 4])
        return helper.make_graph([helper.make_node(kind, [read], [out.name])], name, [], [out])

    for number in range(int(random.integers(4, 12))):
        a, b = (matrices[int(index)] for index in random.integers(0, len(matrices), 2))
        out, spare = f"t{number}", f"s{number}"
        recipes = [
            [helper.make_node("Add", [a, b], [out])],
            [helper.make_node("Tanh", [a], [out])],
            [helper.make_node("Clip", [a, "", "one"], [out], f"clip{number}")],
            [
                helper.make_node("Split", [a], [spare, f"{spare}b"], axis=0, num_outputs=2),
                helper.make_node("Concat", [f"{spare}b", spare], [out], axis=0),
            ],
            [helper.make_node("Reshape", [a, "flat"], [spare]), helper.make_node("Reshape", [spare, "square"], [out])],
            [
                helper.make_node("LayerNormalization", [a, "ones"], [spare, "", f"{spare}b"]),
                helper.make_node("Mul", [spare, f"{spare}b"], [out]),
            ],
            [
                helper.make_node(
                    "If", ["yes"], [out], then_branch=branch(f"{spare}then", "Neg", a), else_branch=branch(f"{spare}else", "Abs", b)
                )
            ],
            [
                helper.make_node("Constant", [], [spare], value_float=float(number)),
                helper.make_node("Mul", [a, spare], [out], f"mul{number}"),
            ],
        ]
        nodes += recipes[int(random.integers(0, len(recipes)))]
        matrices.append(out)
    outputs = {matrices[-1], *(name for name in matrices[2:] if random.random() < 0.3)}
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4, 4]) for name in ("x", "y")]
    constants = [
        numpy_helper.from_array(np.array(1.0, np.float32), "one"),
        numpy_helper.from_array(np.array([16]), "flat"),
        numpy_helper.from_array(np.array([4, 4]), "square"),
        numpy_helper.from_array(np.ones(4, np.float32), "ones"),
        numpy_helper.from_array(np.array(bool(random.integers(0, 2))), "yes"),
    ]
    described = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4, 4]) for name in sorted(outputs)]
    graph = helper.make_graph(nodes, "random", inputs, described, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


@pytest.mark.parametrize("seed", range(40))
def test_random_graphs_with_random_schedules_keep_their_values(seed: int) -> None:
    random = np.random.default_rng(seed)
    model = read_onnx(random_model(random).SerializeToString(), name="random")
    schedule = random_schedule(model, random)
    compiled = compile_model(model, schedule)
    assert_equal_values(model.proto, compiled)
    names = Counter(node.name for node in compiled.graph.node if node.op_type != "Constant")
    assert max(names.values()) == 1
