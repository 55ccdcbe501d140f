"""What the process takes is predicted, and sessions take it in one block."""

from __future__ import annotations

import gc
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from cli_runs import run
from onnx import parser

import checkmate
from checkmate.io.onnx.read.metadata import read_metadata
from checkmate.io.onnx.read.reader import read_onnx
from checkmate.io.onnxruntime.child import Job, run_job
from checkmate.io.onnxruntime.inputs import feeds_for
from checkmate.io.onnxruntime.limits import resident_bytes
from checkmate.io.onnxruntime.process_memory import predict_process
from checkmate.io.onnxruntime.session import exact_options, one_block
from checkmate.io.onnxruntime.tensor_files import write_tensors


def wide(layers: int = 12, rows: int = 1024) -> onnx.ModelProto:
    """Activations of 4 MB each that the backward pass reads again."""
    forward = "".join(f"[a{i}] v{i} = Sin(v{i - 1})\n" for i in range(1, layers + 1))
    back = "".join(f"[g{i}] g{i} = Mul(g{i + 1}, v{i})\n" for i in range(layers, 0, -1))
    shape = f"float[{rows},1024]"
    body = f"g ({shape} v0, {shape} g{layers + 1}) => ({shape} z) {{ {forward}{back}[end] z = Neg(g1) }}"
    return parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]>\n{body}')


@pytest.fixture(scope="module")
def solved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wide")
    onnx.save(wide(), folder / "m.onnx")
    ran = run(folder, "solve", "m.onnx", "--budget", "70%", "--time-limit", "10s", "--json")
    assert ran.code == 0, ran.err
    notes = read_metadata(folder / "m.remat.onnx")
    assert int(notes["checkmate.process_bytes"]) == ran.json["process_bytes"]
    assert int(notes["checkmate.arena_bytes"]) == ran.json["arena_bytes"] - read_onnx(folder / "m.onnx").graph.fixed_bytes
    return folder


def test_the_process_grows_as_predicted_in_the_first_run_and_in_the_tenth(solved: Path) -> None:
    predicted = int(read_metadata(solved / "m.remat.onnx")["checkmate.process_bytes"])
    job = Job(str(solved / "m.remat.onnx"), write_tensors(feeds_for(read_onnx(solved / "m.onnx")), solved, "in"), threads=1, growth=10)
    report = run_job(job, solved)
    assert report.failure is None
    assert predicted > 30e6
    first, last = report.growth
    assert first <= last <= predicted + max(8e6, 0.1 * predicted)
    assert first >= 0.8 * predicted


def test_the_block_is_taken_once_and_given_back(solved: Path) -> None:
    path = solved / "m.remat.onnx"
    block = int(read_metadata(path)["checkmate.arena_bytes"])
    feeds = {name: onnxruntime.OrtValue.ortvalue_from_numpy(array) for name, (_, array) in feeds_for(read_onnx(path)).items()}

    def grown(session: Any) -> int:
        before = resident_bytes()
        session.run_with_ort_values(["z"], feeds)
        after = resident_bytes()
        assert before is not None
        assert after is not None
        return after - before

    first, second = checkmate.session(path), checkmate.session(path)
    assert first.get_session_options().get_session_config_entry("session.use_env_allocators") == "1"
    for session in (first, second):
        assert 0.9 * block < grown(session) < 1.2 * block + 4e6, "each has its own"
        assert grown(session) < 0.1 * block
    before = resident_bytes()
    del first, second, session
    gc.collect()
    after = resident_bytes()
    assert before is not None
    assert after is not None
    assert before - after > 0.9 * block
    other = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    assert other.run_with_ort_values(["z"], feeds)[0].shape() == [1024, 1024], "sessions of others are not concerned"


def test_the_block_can_be_set_or_left_out(solved: Path) -> None:
    path = solved / "m.remat.onnx"
    entry = "session.use_env_allocators"
    assert checkmate.session(path, arena_bytes=10**7).get_session_options().get_session_config_entry(entry) == "1"
    without = checkmate.session(path, arena_bytes=0).get_session_options()
    with pytest.raises(RuntimeError, match="does not have configuration"):
        without.get_session_config_entry(entry)
    for source in (solved / "m.onnx", path):
        options = onnxruntime.SessionOptions()
        given = checkmate.session(source, session_options=options).get_session_options()
        with pytest.raises(RuntimeError, match="does not have configuration"):
            given.get_session_config_entry(entry)


def test_an_onnxruntime_that_cannot_share_an_arena_opens_the_session_without() -> None:
    """As older versions, from the second session on."""

    def refuse(*_: object) -> None:
        raise RuntimeError("An allocator for this device has already been registered for sharing.")

    old = SimpleNamespace(
        OrtMemoryInfo=onnxruntime.OrtMemoryInfo,
        OrtAllocatorType=onnxruntime.OrtAllocatorType,
        OrtMemType=onnxruntime.OrtMemType,
        OrtArenaCfg=onnxruntime.OrtArenaCfg,
        create_and_register_allocator=refuse,
    )
    options = exact_options(onnxruntime)
    with one_block(old, options, 10**6):
        session = onnxruntime.InferenceSession(wide(2, 4).SerializeToString(), options, providers=["CPUExecutionProvider"])
    ones = np.ones((4, 1024), np.float32)
    assert session.run(None, {"v0": ones, "g3": ones})[0].shape == (4, 1024)


def test_indices_that_a_kernel_copies_are_counted() -> None:
    body = "g (float[4,8] x, int64[4,8] i) => (float[4,8] z) { [s] a = ScatterElements(x, i, x) [e] z = Neg(a) }"
    model = read_onnx(parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]>\n{body}'))
    from checkmate.io.onnxruntime.predict import as_onnxruntime_frees

    memory = predict_process(model, as_onnxruntime_frees(model.graph, [0, 1]), nodes=2)
    assert memory.heap_bytes == 8 * 32
    assert memory.arena_bytes == model.graph.fixed_bytes + memory.arena.block_bytes
    assert memory.process_bytes == memory.arena_bytes + memory.arena.block_bytes // 32 + 256 + memory.session_bytes
    more = predict_process(model, as_onnxruntime_frees(model.graph, [0, 1]), nodes=12, barrier_nodes=10)
    assert 30_000 < more.session_bytes - memory.session_bytes < 60_000
