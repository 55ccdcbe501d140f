"""Whatever happens to a model in its child process is a result."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import parser

from checkmate.io.child_process import Ended
from checkmate.io.onnxruntime.child import Cap, Failure, Job, crashed, run_job
from checkmate.io.onnxruntime.tensor_files import BFLOAT16, numbers_of, read_tensor, write_tensors

HEADER = '<ir_version: 8, opset_import: ["" : 18]>\n'
WIDE = "g (float[512,512] x) => (float[512,512] z) { [one] a = Tanh(x) [two] b = Sin(a) [three] c = Add(a, b) [four] z = Mul(b, c) }"
MEGABYTE = 512 * 512 * 4


def job_for(folder: Path, text: str = WIDE, element: int = 1, array: object = None) -> Job:
    (folder / "model.onnx").write_bytes(parser.parse_model(HEADER + text).SerializeToString())
    numbers = np.linspace(-1, 1, 512 * 512, dtype=np.float32).reshape(512, 512) if array is None else np.asarray(array)
    return Job(str(folder / "model.onnx"), write_tensors({"x": (element, numbers)}, folder, "in"))


def changed(job: Job, **changes: object) -> Job:
    return Job.from_fields(job.fields() | changes)


def test_what_runs_is_traced_timed_and_kept(tmp_path: Path) -> None:
    heard: list[int] = []
    job = changed(job_for(tmp_path), rounds=2, traced_runs=2, warm_up=1, timed_runs=2, keep_outputs=True)
    report = run_job(job, tmp_path, heard.append)
    assert report.failure is None, report.message
    assert [node.name for node in report.run] == ["one", "two", "three", "four"]
    assert report.least_seconds.keys() == {0, 1, 2, 3}
    assert report.seconds is not None
    assert report.seconds > 0
    (z,) = report.outputs
    x = read_tensor(job.inputs[0]).astype(np.float64)
    a = np.tanh(x)
    np.testing.assert_allclose(read_tensor(z), np.sin(a) * (a + np.sin(a)), rtol=1e-4, atol=1e-6)
    assert heard == list(range(1, 9)), "a line for every run: 2 sessions of 3, and 2 timed"


@pytest.mark.parametrize("cap", [Cap.ARENA, *([Cap.ADDRESS_SPACE] if sys.platform == "linux" else [])])
def test_a_limit_on_memory_holds_and_running_out_is_a_result(tmp_path: Path, cap: Cap) -> None:
    """Three tensors of a megabyte are alive at once."""
    job = job_for(tmp_path)
    enough = run_job(changed(job, cap=cap.value, cap_bytes=3 * MEGABYTE + 2**19), tmp_path)
    assert enough.failure is None, enough.message
    short = run_job(changed(job, cap=cap.value, cap_bytes=2 * MEGABYTE + 2**19), tmp_path)
    assert short.failure is Failure.OUT_OF_MEMORY
    assert "three" in short.message


def test_a_model_that_cannot_be_opened_is_an_error_of_one_line(tmp_path: Path) -> None:
    job = job_for(tmp_path, "g (float[512,512] x) => (float[512,512] z) { z = NoSuchOperator(x) }")
    report = run_job(changed(job, timed_runs=1), tmp_path)
    assert report.failure is Failure.ERROR
    assert "NoSuchOperator" in report.message
    assert "\n" not in report.message


def test_a_provider_that_is_not_there_is_unavailable(tmp_path: Path) -> None:
    report = run_job(changed(job_for(tmp_path), provider="NoSuchExecutionProvider", timed_runs=1), tmp_path)
    assert report.failure is Failure.UNAVAILABLE
    assert "NoSuchExecutionProvider" in report.message


def test_a_child_that_dies_is_a_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its own interpreter is replaced by one that aborts."""
    script = tmp_path / "dies"
    script.write_text("#!/bin/sh\necho something terrible >&2\nkill -ABRT $$\n")
    os.chmod(script, 0o755)
    monkeypatch.setattr(sys, "executable", str(script))
    report = run_job(job_for(tmp_path), tmp_path)
    assert (report.failure, report.message) == (Failure.CRASH, "onnxruntime ended with signal SIGABRT: something terrible")


@pytest.mark.parametrize(
    ("code", "complaints", "failure"),
    [
        (-signal.SIGABRT, "terminate called after throwing an instance of 'std::bad_alloc'\n", Failure.OUT_OF_MEMORY),
        (-signal.SIGKILL, "", Failure.OUT_OF_MEMORY),
        (-signal.SIGSEGV, "", Failure.CRASH),
        (3, "Traceback\n  ...\nMemoryError\n", Failure.OUT_OF_MEMORY),
        (3, "Traceback\n  ...\nValueError: x\n", Failure.CRASH),
    ],
)
def test_how_a_child_ended_is_told_by_its_last_words(code: int, complaints: str, failure: Failure) -> None:
    assert crashed(Ended(code, complaints, None)).failure is failure


def test_bfloat16_goes_in_and_comes_back_to_the_bit(tmp_path: Path) -> None:
    bits = np.array([0x3F80, 0xC000, 0x3DCC], np.uint16)
    job = job_for(tmp_path, "g (bfloat16[3] x) => (bfloat16[3] z) { z = Identity(x) }", BFLOAT16, bits)
    report = run_job(changed(job, keep_outputs=True), tmp_path)
    assert report.failure is None, report.message
    (z,) = report.outputs
    assert z.element == onnx.TensorProto.BFLOAT16
    np.testing.assert_array_equal(read_tensor(z), bits)
    np.testing.assert_allclose(numbers_of(z), [1, -2, 0.099609375])  # type: ignore[arg-type]


def test_nameless_nodes_get_the_names_operations_have(tmp_path: Path) -> None:
    text = "g (float[512,512] x) => (float[512,512] z) { c = Constant<value_float=0.0>() m = Greater(x, c) z = Where(m, x, c) }"
    report = run_job(changed(job_for(tmp_path, text), name_nodes=True, rounds=1, traced_runs=1), tmp_path)
    assert report.failure is None, report.message
    assert [node.name for node in report.run] == ["Greater_1", "Where_2"]
    assert report.workspaces is None or report.workspaces["Where_2"] > 0


def test_resident_memory_is_what_running_adds(tmp_path: Path) -> None:
    report = run_job(changed(job_for(tmp_path), resident=True), tmp_path)
    assert report.failure is None, report.message
    if sys.platform != "linux":
        assert report.resident_bytes is None
        return
    assert report.resident_bytes is not None
    assert 2.5 * MEGABYTE < report.resident_bytes < 4 * MEGABYTE
