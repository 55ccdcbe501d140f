"""Memory in a plain session: what hides shapes from onnxruntime, where it must know them, and which input a barrier delays."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from exactness import random_feeds, run
from onnx import parser

from checkmate.core.schedule.schedule import Action, Schedule, Step
from checkmate.io.onnx.compile.anchor_modes import Anchor
from checkmate.io.onnx.compile.writer import compile_model
from checkmate.io.onnx.read.reader import OnnxModel, read_onnx
from checkmate.io.onnxruntime.predict import predict


def model_of(body: str) -> OnnxModel:
    return read_onnx(parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]>\n{body}'), name="test")


def compiled(model: OnnxModel, anchor: Anchor = Anchor.FULL) -> onnx.ModelProto:
    """In the order of the file."""
    return compile_model(model, Schedule(tuple(Step(Action.COMPUTE, index) for index in range(len(model.graph.operations)))), anchor=anchor)


def delayed(model: OnnxModel, name: str) -> list[bool]:
    """For each input of a node, whether it is read through a barrier."""
    node = next(node for node in compiled(model).graph.node if node.name == name)
    return [used.startswith("checkmate/") for used in node.input]


def assert_plain_peak_is_predicted(model: OnnxModel, folder: Path) -> None:
    """As predicted for the original: where onnxruntime knows too little, the prediction for the compiled model is higher."""
    peak = max(node.live_bytes for node in predict(model).nodes)
    assert run(compiled(model), random_feeds(model), folder, exact=False).peak == peak


TIED = """g (float[64,64] x, float[64,256] w, float[256,64] v) => (float[64] z) {
    [a] a = Sin(x) [m] m = MatMul(a, w) [n] n = Sin(m) [b] b = MatMul(n, v) [end] z = ReduceMax<axes = [1], keepdims = 0>(b) }"""
"""Each node reads the one before it; `a` and `b` have the same shape, and between them neither is needed."""


def test_a_node_that_waits_anyway_is_behind_a_barrier_if_its_buffer_could_be_tied(tmp_path: Path) -> None:
    model = model_of(TIED)
    assert_plain_peak_is_predicted(model, tmp_path)
    loose = compiled(model, Anchor.NONE)
    peak = max(node.live_bytes for node in predict(model).nodes)
    assert run(loose, random_feeds(model), tmp_path, exact=False).peak == peak + 64 * 64 * 4
    assert delayed(model, "m") == [True, True], "each of them tells a part of the shape"


def test_a_reader_of_a_view_of_the_node_before_waits_anyway() -> None:
    model = model_of("""g (float[4] x) => (float[2,2] z) <int64[2] square = {2, 2}> {
        [a] a = Sin(x) [v] v = Reshape(a, square) [b] b = Cos(v) [end] z = Neg(b) }""")
    assert delayed(model, "b") == [False]


def test_a_small_buffer_may_be_tied() -> None:
    small = "g (float[{0}] x) => (float z) {{ [a] a = Sin(x) [b] b = Cos(a) [end] z = ReduceMax<keepdims = 0>(b) }}"
    assert delayed(model_of(small.format(255)), "b") == [False]
    assert delayed(model_of(small.format(256)), "b") == [True]


def test_what_is_overwritten_is_known_behind_a_barrier(tmp_path: Path) -> None:
    model = model_of("""g (float[64,64] x) => (float[64] z) {
        [a] a = Sin(x) [b] b = Cos(x) [r] r = Relu(a) [c] c = ReduceMax<axes = [1], keepdims = 0>(r)
        [d] d = ReduceMax<axes = [1], keepdims = 0>(b) [end] z = Add(c, d) }""")
    assert delayed(model, "r") == [True]
    assert_plain_peak_is_predicted(model, tmp_path)


def test_what_overwrites_its_input_needs_no_barrier_of_its_own() -> None:
    model = model_of("g (float[64,64] x) => (float[64,64] z) { [a] a = Sin(x) [r] r = Relu(a) [end] z = Neg(r) }")
    assert delayed(model, "r") == [False]


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        ("[end] z = Mul(w, a)", [False, True]),
        ("[end] z = Mul(a, w)", [True, False]),
        ("[end] z = Where(i, a, w)", [False, True, False]),
        ("[end] z = Gather(a, k)", [True, False]),
    ],
)
def test_data_is_delayed_before_shapes_and_stored_values(node: str, expected: list[bool]) -> None:
    model = model_of(f"""g (float[4] x, int64[4] k) => (float[4] z, float[4] y) <float[4] w = {{1, 2, 3, 4}}> {{
        [a] a = Sin(x) [i] i = Less(x, w) [b] y = Cos(x) {node} }}""")
    assert delayed(model, "end") == expected


def test_a_graph_output_may_be_known(tmp_path: Path) -> None:
    """It has its own buffer, so a node that waits and makes nothing else needs no barrier."""
    model = model_of("g (float[64,64] x) => (float[64,64] a, float[64,64] z) { [a] a = Sin(x) [end] z = Cos(a) }")
    assert delayed(model, "end") == [False]
    assert_plain_peak_is_predicted(model, tmp_path)
