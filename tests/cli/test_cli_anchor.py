"""`--anchor` and `--runtime` from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import pytest
from cli_runs import run, write_chain
from onnx import parser

from checkmate.sample_graphs.networks import TINY


def solved(folder: Path, *options: str) -> onnx.ModelProto:
    (folder / "model.onnx").write_bytes(TINY["chain"]().SerializeToString())
    ran = run(folder, "solve", "model.onnx", "--budget", "70%", *options)
    assert ran.code == 0, ran.err
    return onnx.load(folder / "model.remat.onnx")


@pytest.mark.parametrize(
    ("options", "barriers", "marks"), [((), True, True), (("--anchor", "attr"), False, True), (("--anchor", "none"), False, False)]
)
def test_anchors(tmp_path: Path, options: tuple[str, ...], barriers: bool, marks: bool) -> None:
    model = solved(tmp_path, *options)
    assert any(node.op_type == "Unsqueeze" for node in model.graph.node) == barriers
    assert any(attribute.name.startswith("__checkmate") for node in model.graph.node for attribute in node.attribute) == marks
    notes = {entry.key: entry.value for entry in model.metadata_props}
    assert notes["checkmate.anchor"] == (options[1] if options else "full")
    assert {"checkmate.budget_bytes", "checkmate.reserve_bytes", "checkmate.overhead", "checkmate.session.execution_order"} <= notes.keys()


def test_a_misspelt_anchor_gets_a_suggestion(tmp_path: Path) -> None:
    ran = run(tmp_path, "solve", "model.onnx", "--budget", "70%", "--anchor", "ful")
    assert (ran.code, "did you mean 'full'" in ran.err or "did you mean full" in ran.err) == (2, True), ran.err


IN_PLACE = """<ir_version: 8, opset_import: ["" : 17]>
g (float[64,64] x) => (float z) { [a] a = Exp(x) [b] b = Relu(a) [z] z = ReduceSum<keepdims = 0>(b) }"""


def test_the_runtime_decides_what_everything_takes(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(parser.parse_model(IN_PLACE).SerializeToString())
    peaks = {}
    for options in ((), ("--runtime", "onnxruntime"), ("--runtime", "generic")):
        ran = run(tmp_path, "solve", "model.onnx", "--budget", "100%", "--json", *options)
        assert (ran.code, ran.json["overhead"]) == (0, 0.0), ran.err
        peaks[options] = ran.json["peak_bytes"]
        document = json.loads((tmp_path / "model.schedule.json").read_text())
        assert document["runtime"] == (options[1] if options else "onnxruntime")
        assert run(tmp_path, "verify", "model.onnx", "model.schedule.json").code == 0
    size = 64 * 64 * 4
    barriers = 1 + 8
    assert list(peaks.values()) == [2 * size + 4 + barriers, 2 * size + 4 + barriers, 3 * size + barriers]


def test_hand_written_graphs_are_judged_by_the_plain_model(tmp_path: Path) -> None:
    write_chain(tmp_path)
    assert run(tmp_path, "solve", "chain.json", "--budget", "100%").code == 0
    assert json.loads((tmp_path / "chain.schedule.json").read_text())["runtime"] == "generic"
