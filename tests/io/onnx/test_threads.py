"""Workspace is counted for the threads that the session will have, and the number goes along with what was solved."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import pytest
from cli_runs import run
from onnx import parser

import checkmate
from checkmate.io.onnx.read import threads
from checkmate.io.onnx.read.metadata import read_metadata
from checkmate.io.onnx.read.reader import read_onnx

CONV = parser.parse_model("""<ir_version: 8, opset_import: ["" : 18]>
g (float[6,4,12,12] x, float[6,4,3,3] w) => (float[6,6,12,12] z) {
    [conv] a = Conv<pads = [1,1,1,1]>(x, w)
    [soft] b = Tanh(a)
    [end] z = Mul(a, b)
}""")


@pytest.fixture
def model(tmp_path: Path) -> Path:
    onnx.save(CONV, tmp_path / "m.onnx")
    return tmp_path / "m.onnx"


@pytest.mark.parametrize(("count", "workspace"), [(1, 1), (2, 2), (6, 6), (7, 6), (64, 6)])
def test_a_convolution_needs_a_segment_for_each_thread_that_has_an_image(count: int, workspace: int, model: Path) -> None:
    read = read_onnx(model, threads=count)
    assert (read.threads, read.graph.operations[0].workspace) == (count, workspace * 65536)
    assert checkmate.load(model, session_threads=count).session_threads == count


def test_the_number_is_in_the_compiled_model_and_the_session_uses_it(model: Path) -> None:
    ran = run(model.parent, "solve", "m.onnx", "--budget", "100%", "--session-threads", "3", "--json")
    assert (ran.code, ran.json["session_threads"]) == (0, 3), ran.err
    compiled = model.parent / "m.remat.onnx"
    assert read_metadata(compiled)["checkmate.threads"] == "3"
    assert read_onnx(compiled).threads == 3
    assert checkmate.session(compiled).get_session_options().intra_op_num_threads == 3
    assert checkmate.session(compiled, threads=1).get_session_options().intra_op_num_threads == 1
    assert checkmate.session(model).get_session_options().intra_op_num_threads == 0
    verified = run(model.parent, "verify", "m.onnx", "m.remat.onnx", "--repeat", "1", "--json")
    assert verified.code == 0, verified.out
    checks = {check["name"]: check for check in verified.json["checks"]}
    assert checks["time"]["threads"] == 3
    assert checks["budget"]["peak_bytes"] == ran.json["peak_bytes"] - 1, "a chain needs no barrier"


def test_a_schedule_is_verified_with_the_threads_it_was_solved_for(model: Path) -> None:
    assert run(model.parent, "solve", "m.onnx", "--budget", "100%", "--session-threads", "5").code == 0
    document = json.loads((model.parent / "m.schedule.json").read_text())
    assert document["session"] == {"threads": 5, "count": "tensors"}
    assert run(model.parent, "verify", "m.onnx", "m.schedule.json").code == 0
    assert checkmate.verify(str(model), str(model.parent / "m.schedule.json")).passed
    other = run(model.parent, "verify", "m.onnx", "m.schedule.json", "--session-threads", "2")
    assert (other.code, "belongs to another graph" in other.err) == (2, True)


def test_graphs_that_are_no_models_have_none(tmp_path: Path) -> None:
    (tmp_path / "g.json").write_text(
        json.dumps(
            {"format": "checkmate-graph", "version": 1, "operations": [{"name": "a", "cost": 1, "outputs": [{"name": "a", "bytes": 1}]}]}
        )
    )
    ran = run(tmp_path, "solve", "g.json", "--budget", "100%", "--json")
    assert ran.code == 0, ran.err
    assert not {"session_threads", "process_bytes", "arena_bytes"} & set(ran.json)
    assert "session" not in json.loads((tmp_path / "g.schedule.json").read_text())


@pytest.mark.parametrize("noted", ["", "0", "-3", "99999999", "two", "2.5"])
def test_a_number_that_makes_no_sense_is_ignored(noted: str) -> None:
    model = onnx.ModelProto()
    model.CopyFrom(CONV)
    model.metadata_props.add(key="checkmate.threads", value=noted)
    assert read_onnx(model).threads == threads.session_threads() == 1
    assert checkmate.session(model.SerializeToString()).get_session_options().intra_op_num_threads == 0
