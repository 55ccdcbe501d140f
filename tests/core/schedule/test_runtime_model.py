"""The memory model of onnxruntime: by hand, by two judges on random graphs, and against onnxruntime itself, to the byte."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from importlib import resources
from pathlib import Path

import jsonschema
import onnx
import pytest
from exactness import differences, random_feeds, random_schedule, run
from onnx import parser
from random_graphs import random_graph
from random_models import random_model

from checkmate.core.errors import InputError
from checkmate.core.model.costs import given_costs, unit_costs
from checkmate.core.model.digest import graph_digest
from checkmate.core.model.floors import feasibility_floor
from checkmate.core.model.graph import Graph, Operation, OperationSpec, ValueSpec, Work, assemble
from checkmate.core.model.memory_model import MemoryModel
from checkmate.core.model.problem import build_problem
from checkmate.core.schedule.peak import keep_all_profile
from checkmate.core.schedule.schedule import Action, Schedule, Step, expand
from checkmate.core.schedule.simulate import simulate
from checkmate.core.schedule.verify import Claim, verify
from checkmate.io.formats.graph_json import parse_graph, render_graph
from checkmate.io.onnx.compile.anchor_modes import Anchor
from checkmate.io.onnx.compile.writer import compile_model
from checkmate.io.onnx.read.reader import OnnxModel, read_onnx
from checkmate.io.onnxruntime.predict import predict
from checkmate.sample_graphs.networks import TINY

GENERIC, ONNXRUNTIME = MemoryModel.GENERIC, MemoryModel.ONNXRUNTIME


def op(name: str, inputs: str, size: int, *, over: str = "") -> OperationSpec:
    pairs = ((over, name),) if over else ()
    return OperationSpec(name, "Op", tuple(inputs.split()), (ValueSpec(name, size),), work=Work(cost=1.0), in_place=pairs)


def memory(specs: list[OperationSpec], order: str, outputs: str = "", memory_model: MemoryModel = ONNXRUNTIME) -> tuple[int, ...]:
    graph = assemble("test", specs, outputs.split(), {})
    problem = build_problem(graph, unit_costs(graph))
    number = {problem.operation_name(index): index for index in range(problem.count)}
    schedule = expand(problem, [number[name] for name in order.split()])
    simulation = simulate(graph, problem.costs, schedule, memory_model=memory_model)
    verdict = verify(graph, problem.costs.amounts, schedule, Claim(peak_bytes=simulation.peak_bytes), memory_model=memory_model)
    assert verdict.passed, verdict.violations
    return simulation.memory


A, B = op("a", "", 10), op("b", "a", 10, over="a")


def test_the_output_takes_the_place_of_an_input_nobody_needs_any_more() -> None:
    assert memory([A, B, op("c", "b", 1)], "a b c") == (10, 10, 11)
    assert memory([A, B, op("c", "b", 1)], "a b c", memory_model=GENERIC) == (10, 20, 11)


def test_not_of_one_that_is_read_later() -> None:
    assert memory([A, B, op("c", "a b", 1)], "a b c") == (10, 20, 21)


def test_not_of_one_whose_buffer_something_else_shares() -> None:
    view = OperationSpec("v", "View", ("a",), (ValueSpec("v", 0, "a"),), view=True)
    assert memory([A, view, op("b", "v", 10, over="v"), op("c", "v b", 1)], "a b c") == (10, 10, 20, 21)
    assert memory([A, view, op("b", "v", 10, over="v"), op("c", "b", 1)], "a b c") == (10, 10, 10, 11)
    assert memory([A, view, op("b", "a v", 10, over="a"), op("c", "b", 1)], "a b c") == (10, 10, 20, 11)


def test_not_if_sizes_differ() -> None:
    assert memory([A, op("b", "a", 9, over="a")], "a b") == (10, 19)


def test_a_graph_output_has_memory_of_its_own_once_it_is_made_for_good() -> None:
    specs = [A, B, op("c", "b", 1)]
    assert memory(specs, "a b c", "b") == (10, 20, 11)
    assert memory(specs, "a b c a b", "b") == (10, 10, 11, 10, 20)
    assert memory(specs, "a b c", "a") == (10, 20, 21)


def test_only_the_last_copy_of_an_output_has_memory_of_its_own() -> None:
    """The first is written over its input, at the moment of the peak: simulator and verifier must agree on that."""
    specs = [op("d", "", 15), A, B, op("c", "b d", 1)]
    assert memory(specs, "d a b c a b", "b") == (15, 25, 25, 26, 10, 20)


def test_not_over_fixed_memory() -> None:
    flat = OperationSpec("w", "View", (), (ValueSpec("w", 0),), view=True)
    assert memory([flat, op("b", "w", 10, over="w")], "b") == (0, 10)


def test_a_recomputed_input_is_overwritten_too() -> None:
    assert memory([A, B, op("c", "b", 1), op("d", "a c", 1)], "a b c a d") == (10, 10, 11, 11, 12)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (op("b", "a", 10, over="x"), "not one of its inputs"),
        (replace(B, in_place=(("a", "x"),)), "not one of its outputs"),
        (OperationSpec("b", "V", ("a",), (ValueSpec("b", 0, "a"),), view=True, in_place=(("a", "b"),)), "is a view"),
    ],
)
def test_pairs_must_be_an_input_and_an_output(spec: OperationSpec, message: str) -> None:
    with pytest.raises(InputError, match=message):
        assemble("test", [A, spec], [], {})


def with_random_pairs(graph: Graph, seed: int) -> Graph:
    rng = random.Random(seed)

    def paired(operation: Operation) -> Operation:
        pairs = [(source, target) for source in operation.inputs for target in operation.outputs if rng.random() < 0.7]
        return operation if operation.view else replace(operation, in_place=tuple(pairs))

    return replace(graph, operations=tuple(map(paired, graph.operations)))


@pytest.mark.parametrize("block", range(4))
def test_simulator_and_verifier_agree_on_random_graphs(block: int) -> None:
    """The problem, which ignores computing in place, is never below them; often it is above."""
    lower = 0
    for seed in range(block * 150, block * 150 + 150):
        graph = with_random_pairs(random_graph(seed, most=12), seed)
        problem = build_problem(graph, given_costs(graph), memory_model=ONNXRUNTIME)
        rng = random.Random(seed)
        sequence = [
            index
            for operation in range(problem.count)
            for index in (*(e for e in range(operation) if not problem.pinned[e] and rng.random() < 0.2), operation)
        ]
        schedule = expand(problem, sequence)
        found = simulate(graph, problem.costs, schedule, memory_model=ONNXRUNTIME)
        claim = Claim(found.peak_bytes, found.peak_bytes, found.cost)
        assert verify(graph, problem.costs.amounts, schedule, claim, memory_model=ONNXRUNTIME).violations == (), seed
        plain = simulate(graph, problem.costs, schedule)
        assert all(here <= there for here, there in zip(found.memory, plain.memory, strict=True)), seed
        lower += found.peak_bytes < plain.peak_bytes
    assert lower > 5


def test_keeping_everything_may_fit_below_what_one_operation_seems_to_need() -> None:
    graph = assemble("test", [A, B, op("c", "b", 1)], [], {})
    problem = build_problem(graph, unit_costs(graph), memory_model=ONNXRUNTIME)
    assert (keep_all_profile(problem).peak, feasibility_floor(problem).bytes) == (11, 20)
    assert keep_all_profile(build_problem(graph, unit_costs(graph))).peak == 20


def parsed(body: str, opset: int = 17) -> OnnxModel:
    return read_onnx(parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]>\n{body}').SerializeToString(), name="test")


def assert_exact(model: OnnxModel, folder: Path) -> None:
    """Node by node, what onnxruntime took is what was predicted."""
    ran = run(model.proto, random_feeds(model), folder, exact=True)
    expected = predict(model).nodes
    assert [(node.name, node.live_bytes) for node in expected] == list(zip(ran.names, ran.live, strict=True))


CASES = {
    "in place": "g (float[8,8] x) => (float[8,8] z) { [a] a = Exp(x) [b] b = Relu(a) [z] z = Exp(b) }",
    "read later": "g (float[8,8] x) => (float[8,8] z) { [a] a = Exp(x) [b] b = Relu(a) [z] z = Add(a, b) }",
    "read twice by one": "g (float[8,8] x) => (float[8,8] z) { [a] a = Exp(x) [b] b = Max(a, a) [z] z = Exp(b) }",
    "an input is never overwritten": "g (float[8,8] x) => (float[8,8] z) { [b] b = Relu(x) [z] z = Exp(b) }",
    "the output is given back": "g (float[8,8] x) => (float[8,8] b, float[8,8] z) { [a] a = Exp(x) [b] b = Relu(a) [z] z = Exp(b) }",
    "through a view": """g (float[8,8] x) => (float[64] z) <int64[1] flat = {-1}>
        { [a] a = Exp(x) [v] v = Reshape(a, flat) [b] b = Relu(v) [z] z = Exp(b) }""",
    "double has no softmax in place": "g (double[8,8] x) => (double[8,8] z) { [a] a = Neg(x) [b] b = Softmax(a) [z] z = Neg(b) }",
    "a cast of equal size": """g (float[8,8] x) => (float[8,8] z) { [a] a = Exp(x) [b] b = Cast<to = 6>(a) [c] c = Neg(b)
        [z] z = Cast<to = 1>(c) }""",
    "a cast to another size": "g (float[8,8] x) => (double[8,8] z) { [a] a = Exp(x) [b] b = Cast<to = 11>(a) [z] z = Neg(b) }",
    "a shape onnxruntime does not know": """g (float[8,8] x) => (float[8,8] z)
        { [s] s = Shape(x) [t] t = Mul(s, s) [u] u = Div(t, s) [a] a = Exp(x) [v] v = Reshape(a, u) [c] c = Neg(v) [b] b = Relu(c)
        [z] z = Exp(b) }""",
    "an unread output stays": """g (float[8,8] x) => (float[8,4] z)
        { [a] a = Exp(x) [s] b, c = Split<axis = 1>(a) [d] d = Neg(b) [e] e = Exp(d) [z] z = Neg(e) }""",
    "an unread view does not": "g (float[8,8] x) => (float[8,8] z) { [a] a = Exp(x) [v] v = Identity(a) [b] b = Neg(x) [z] z = Exp(b) }",
    "nor does what is unread and in place": """g (float[8,8] x) => (float[8,8] z)
        { [a] a = Exp(x) [v] v = Relu(a) [b] b = Neg(x) [z] z = Exp(b) }""",
    "shapes are looked at first": """g (float[8,8] x, float[4] y) => (float[8,8] z, int64[1] s)
        { [a] a = Exp(x) [b] b = Neg(a) [z] z = Neg(b) [shape] s = Shape(y) }""",
    "statistics over those fed": """g (float[4,8] x, float[8] s, float[8] m, float[8] v) => (float[4,8] z)
        { [n] y, m1, v1 = BatchNormalization<training_mode = 1>(x, s, s, m, v) [z] z = Add(y, m1) }""",
}


@pytest.mark.parametrize("name", CASES)
def test_onnxruntime_takes_what_was_predicted(name: str, tmp_path: Path) -> None:
    assert_exact(parsed(CASES[name]), tmp_path)


@pytest.mark.parametrize("name", TINY)
def test_training_graphs_take_what_was_predicted(name: str, tmp_path: Path) -> None:
    assert_exact(read_onnx(TINY[name]().SerializeToString(), name=name), tmp_path)


def test_dimensions_by_name_are_compared_by_name(tmp_path: Path) -> None:
    proto = parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]>
    g (float[n,8] x) => (float[m] z) <int64[1] flat = {-1}> {
        [a] a = Exp(x) [b] b = Relu(a) [v] v = Reshape(b, flat) [c] c = Exp(v) [d] d = Relu(c) [z] z = Exp(d)
    }""")
    model = read_onnx(proto.SerializeToString(), name="test", dims={"n": 4})
    assert [operation.name for operation in model.graph.operations if operation.in_place] == ["b"]
    assert_exact(model, tmp_path)


@pytest.mark.parametrize("seed", range(25))
def test_random_models_run_as_predicted(seed: int, tmp_path: Path) -> None:
    """Bit-equal values, order and bytes at every node in exact mode; order, repeats and near values in a plain session."""
    model = read_onnx(random_model(seed).SerializeToString(), name="random")
    schedule = random_schedule(model, seed)
    assert len(schedule.computations) > len(model.graph.operations)
    assert differences(model, schedule, tmp_path) == []


def test_the_random_models_have_what_they_are_for() -> None:
    kinds = {node.op_type for seed in range(25) for node in random_model(seed).graph.node}
    assert kinds >= {"Cast", "Dropout", "If", "MaxPool", "Relu", "Reshape", "Softmax", "Split", "TopK", "Wave"}
    assert {random_model(seed).opset_import[0].version for seed in range(25)} >= {8, 9, 11, 13, 17, 21}


def test_a_schedule_that_frees_nothing_is_judged_alike() -> None:
    graph = assemble("test", [A, B], [], {})
    schedule = Schedule(
        tuple(step for step in expand(build_problem(graph, unit_costs(graph)), (0, 1)).steps if step.action.value == "compute")
    )
    found = simulate(graph, unit_costs(graph), schedule, memory_model=ONNXRUNTIME)
    assert found.memory == (10, 20)
    assert verify(graph, (1.0, 1.0), schedule, Claim(peak_bytes=20), memory_model=ONNXRUNTIME).passed


def test_reading_a_model_is_the_same_each_time() -> None:
    model = onnx.ModelProto()
    model.CopyFrom(random_model(3))
    assert read_onnx(model.SerializeToString(), name="a").graph == read_onnx(model.SerializeToString(), name="a").graph


def test_pairs_survive_json_and_count_in_the_digest() -> None:
    graph = assemble("test", [A, B], ["b"], {})
    document = render_graph(graph)
    schema = json.loads((resources.files("checkmate.io.schemas") / "graph.schema.json").read_text())
    jsonschema.validate(document, schema)
    assert parse_graph(json.loads(json.dumps(document)), "test.json") == graph
    assert graph_digest(graph) != graph_digest(assemble("test", [A, replace(B, in_place=())], ["b"], {}))
    document["operations"][1]["in_place"] = [["a"]]  # type: ignore[index]
    with pytest.raises(InputError, match=r"operations\[1\].*in_place\[0\]: expected \[input, output\]"):
        parse_graph(document, "test.json")


def test_shapes_of_unknown_operators_do_not_stop_compiling() -> None:
    """Operators onnx does not know: the file must declare what they make, and what is around them is anchored."""
    proto = parser.parse_model("""<ir_version: 8, opset_import: ["" : 17, "mine" : 1]>
    g (float[8,8] x) => (float[8,8] z) <float[8,8] b, float[8,8] c>
    { [a] a = Exp(x) [b] b = mine.Strange(a) [c] c = Relu(b) [d] d = Neg(x) [e] e = Mul(b, c) [z] z = Add(e, d) }""")
    model = read_onnx(proto.SerializeToString(), name="test")
    number = {operation.name: index for index, operation in enumerate(model.graph.operations)}
    schedule = Schedule(tuple(Step(Action.COMPUTE, number[name]) for name in "abcdbez"))
    made = compile_model(model, schedule, anchor=Anchor.FULL)
    again = read_onnx(made.SerializeToString(), name="again")
    assert sum(operation.kind == "mine.Strange" for operation in again.graph.operations) > 1
    assert {value.bytes for value in again.graph.values if value.name.startswith("b")} == {256}
