"""What a compiled model stores for its barriers is counted before it is solved, for every operator set."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_runs import run
from exactness import random_schedule
from onnx import numpy_helper, parser

from checkmate.io.onnx.compile.anchor_modes import Anchor
from checkmate.io.onnx.compile.writer import compile_model
from checkmate.io.onnx.read.reader import OnnxModel, read_onnx
from checkmate.io.onnxruntime.predict import predict
from checkmate.sample_graphs.networks import TINY

BODIES = {
    "plain": ("float[4,6] x", "[a] a = Exp(x) [b] b = Neg(x) [c] c = Sin(a) [d] d = Mul(c, b) [e] z = Add(a, d)", "float[4,6] z"),
    "with a scalar": (
        "float[4,6] x",
        "[a] a = ReduceMax<keepdims = 0>(x) [b] b = Neg(x) [c] c = Exp(a) [d] d = Mul(c, b) [e] z = Add(a, d)",
        "float[4,6] z",
    ),
    "bfloat16": (
        "float[4,6] x",
        "[a] a = Cast<to = 16>(x) [b] b = Neg(x) [c] c = Cast<to = 1>(a) [d] d = Mul(c, b) [e] f = Cast<to = 1>(a) [g] z = Add(f, d)",
        "float[4,6] z",
    ),
    "eight bits": ("float[4,6] x", "[a] a = Cast<to = 17>(x) [b] b = Cast<to = 1>(a) [c] z = Neg(b)", "float[4,6] z"),
    "of two ranks": (
        "float[4,6] x, float[6] y",
        "[a] a = Exp(x) [b] b = Neg(y) [c] c = Sin(y) [d] d = Mul(c, b) [e] f = Mul(d, c) [g] z = Add(a, f)",
        "float[4,6] z",
    ),
}


def model_of(body: str, opset: int) -> OnnxModel:
    inputs, nodes, outputs = BODIES[body]
    return read_onnx(parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]>\ng ({inputs}) => ({outputs}) {{ {nodes} }}'))


@pytest.mark.parametrize("opset", [7, 8, 9, 10, 11, 12, 13, 15, 18, 21])
@pytest.mark.parametrize("body", BODIES)
def test_no_more_is_stored_than_was_counted(body: str, opset: int) -> None:
    if body == "bfloat16" and opset < 13:
        pytest.skip("operators take it from 13 on")
    if body == "eight bits" and opset < 19:
        pytest.skip("operators take it from 19 on")
    model = model_of(body, opset)
    counted = model.graph.fixed["barriers"]
    for anchor in Anchor:
        for seed in range(4):
            made = compile_model(model, random_schedule(model, seed, 0.6), anchor=anchor)
            stored = {tensor.name: numpy_helper.to_array(tensor).nbytes for tensor in made.graph.initializer}
            assert set(stored) <= {tensor.name for tensor in made.graph.initializer if tensor.name.startswith("checkmate/")}
            assert sum(stored.values()) <= counted
            assert read_onnx(made).graph.fixed_bytes <= model.graph.fixed_bytes


@pytest.mark.parametrize(
    ("body", "opset", "counted"),
    [
        ("plain", 13, 1),
        ("plain", 12, 1 + 8 * 2),
        ("plain", 9, 1 + 8 * 2),
        ("plain", 8, 8 + 8 * 2),
        ("with a scalar", 13, 1 + 8),
        ("with a scalar", 12, 1 + 8 + 8 * (0 + 2)),
        ("of two ranks", 12, 1 + 8 * (1 + 2)),
        ("of two ranks", 13, 1),
        ("bfloat16", 13, 1 + 8 + 8),
        ("eight bits", 19, 1),
    ],
)
def test_the_count_by_hand(body: str, opset: int, counted: int) -> None:
    assert model_of(body, opset).graph.fixed["barriers"] == counted


def test_metadata_of_others_says_nothing() -> None:
    proto = model_of("plain", 18).proto
    proto.metadata_props.add(key="author", value="someone")
    assert read_onnx(proto).graph.fixed["barriers"] == 1


def test_a_compiled_model_has_what_it_has() -> None:
    model = model_of("plain", 18)
    made = compile_model(model, random_schedule(model, 0, 0.6), anchor=Anchor.FULL)
    again = read_onnx(made)
    assert "barriers" not in again.graph.fixed
    assert again.graph.fixed["parameters"] == 1


@pytest.mark.parametrize("name", TINY)
def test_what_solve_says_fits_fits_to_the_last_byte(name: str, tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(TINY[name]().SerializeToString())
    solved = run(tmp_path, "solve", "m.onnx", "--budget", "100%", "--strategy", "keep-all", "--json")
    assert solved.code == 0, solved.err
    compiled = read_onnx(tmp_path / "m.remat.onnx")
    stored = sum(numpy_helper.to_array(tensor).nbytes for tensor in compiled.proto.graph.initializer if "checkmate/" in tensor.name)
    counted = read_onnx(tmp_path / "m.onnx").graph.fixed["barriers"]
    assert solved.json["peak_bytes"] == solved.json["budget_bytes"] == predict(compiled).peak_bytes + counted - stored
    assert stored > 0
