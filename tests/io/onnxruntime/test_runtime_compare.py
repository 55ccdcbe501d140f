"""Each of the five questions has answers that fail: on reports made up here, no model runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper

from checkmate.io.onnxruntime.checks import Outcome, check_memory, check_order, check_outputs, check_time, peak_of
from checkmate.io.onnxruntime.child import Failure, Report
from checkmate.io.onnxruntime.inputs import nudged
from checkmate.io.onnxruntime.nodes import FileNode, file_nodes, origin
from checkmate.io.onnxruntime.predict import NodeMemory, Prediction
from checkmate.io.onnxruntime.tensor_files import write_tensors
from checkmate.io.onnxruntime.trace import NodeRun

NODES = [FileNode(name, kind, name) for name, kind in (("a", "Conv"), ("b", "Relu"), ("a__recompute1", "Conv"), ("c", "Add"))]
ORIGINALS = {"a": 1, "b": 1, "c": 1}
PREDICTION = Prediction(
    tuple(NodeMemory(node.name, live, 1000 + live) for node, live in zip(NODES, (100, 200, 300, 250), strict=True)), 1000, 1300
)


def ran(*indices: int, memory: tuple[int, ...] = (100, 200, 300, 250), **fields: Any) -> Report:
    before = 16
    deltas = [now - then for then, now in zip((0, *memory), memory, strict=False)]
    run = tuple(
        NodeRun(index, NODES[index].name, NODES[index].kind, "cpu", 1e-6, before + found, delta)
        for index, found, delta in zip(indices, memory, deltas, strict=False)
    )
    return Report(run=run, version="1.31", **fields)


def gave(folder: Path, prefix: str, **outputs: Any) -> Report:
    arrays = {name: (1 if np.asarray(array).dtype == np.float32 else 7, np.asarray(array)) for name, array in outputs.items()}
    return Report(outputs=write_tensors(arrays, folder, prefix))


def test_outputs_are_compared_to_the_bit(tmp_path: Path) -> None:
    one = np.array([1, 2, 3], np.float32)
    next_up = np.nextafter(one, np.float32(9))
    original = gave(tmp_path, "o", y=one, i=np.array([5]))
    assert check_outputs(original, original, original, ()).outcome is Outcome.PASSED
    check = check_outputs(original, gave(tmp_path, "c", y=next_up, i=np.array([5])), original, ())
    assert (check.outcome, check.details, check.figures["equal"]) == (Outcome.FAILED, ("output 'y' differs",), 1)


def test_minus_zero_is_not_zero_and_nan_is_nan(tmp_path: Path) -> None:
    zero, minus, nan = (
        gave(tmp_path, prefix, y=np.array([value], np.float32)) for prefix, value in (("z", 0.0), ("m", -0.0), ("n", np.nan))
    )
    assert check_outputs(zero, minus, zero, ()).outcome is Outcome.FAILED
    assert check_outputs(nan, nan, nan, ()).outcome is Outcome.PASSED


@pytest.mark.parametrize(
    ("plain", "outcome"),
    [
        ([1.0, 2.0, 3.0001], Outcome.PASSED),
        ([1.0, 2.0, 3.1], Outcome.FAILED),
        ([1.0, 2.0, np.nan], Outcome.FAILED),
        ([1.0, 2.0], Outcome.FAILED),
    ],
)
def test_a_plain_session_must_be_close(tmp_path: Path, plain: list[float], outcome: Outcome) -> None:
    original = gave(tmp_path, "o", y=np.array([1, 2, 3], np.float32))
    check = check_outputs(original, original, gave(tmp_path, "p", y=np.array(plain, np.float32)), ())
    assert check.outcome is outcome
    assert check.figures["plain_close"] is (outcome is Outcome.PASSED)


@pytest.mark.parametrize(("beside", "outcome"), [(35.0, Outcome.PASSED), (2e-7, Outcome.FAILED)])
def test_a_gradient_is_as_exact_as_the_largest_one_lets_it_be(tmp_path: Path, beside: float, outcome: Outcome) -> None:
    """2e-7 beside 35 is a remainder of sums whose terms are not that exact."""
    original, plain = (
        gave(tmp_path, prefix, small=np.array([small], np.float32), large=np.array([beside], np.float32))
        for prefix, small in (("o", 2e-7), ("p", 2.1e-6))
    )
    assert check_outputs(original, original, plain, ()).outcome is outcome


@pytest.mark.parametrize(
    ("moved", "outcome", "unstable"),
    [(0.19, Outcome.PASSED, 1), (0.03, Outcome.PASSED, 1), (0.01, Outcome.FAILED, 0), (0.0, Outcome.FAILED, 0)],
)
def test_an_output_that_the_last_bit_changes_as_much_is_told_apart(tmp_path: Path, moved: float, outcome: Outcome, unstable: int) -> None:
    original, plain, nudged = (
        gave(tmp_path, prefix, y=np.array([1 + off], np.float32), z=np.array([1], np.float32))
        for prefix, off in (("o", 0.0), ("p", 0.2), ("n", moved))
    )
    check = check_outputs(original, original, plain, (), lambda: nudged)
    assert (check.outcome, check.figures["unstable"]) == (outcome, unstable)
    assert ("the last bit of the inputs changes as much" in check.summary) == bool(unstable)


def test_nobody_asks_for_a_nudged_run_where_all_is_close(tmp_path: Path) -> None:
    original = gave(tmp_path, "o", y=np.array([1], np.float32))
    check = check_outputs(original, original, original, (), lambda: pytest.fail("it ran"))
    assert check.outcome is Outcome.PASSED


@pytest.mark.parametrize("element", [1, 10, 11, 16])
def test_a_nudge_is_the_last_bit(element: int) -> None:
    kinds = {1: np.float32, 10: np.float16, 11: np.float64, 16: np.uint16}
    numbers = np.linspace(-3, 3, 64).astype(np.float32)
    array = (numbers.view(np.uint32) >> 16).astype(np.uint16) if element == 16 else numbers.astype(kinds[element])
    _, moved = nudged({"x": (element, array)})["x"]
    whole = np.dtype(f"u{array.itemsize}")
    steps = moved.view(whole).astype(np.int64) - array.view(whole).astype(np.int64)
    assert set(np.abs(steps)) <= {0, 1}
    assert np.any(steps)
    same = np.arange(5)
    assert nudged({"i": (7, same)})["i"][1] is same


def test_whole_numbers_are_never_just_close(tmp_path: Path) -> None:
    original = gave(tmp_path, "o", i=np.array([1_000_000]))
    assert check_outputs(original, original, gave(tmp_path, "p", i=np.array([1_000_001])), ()).outcome is Outcome.FAILED


def test_a_plain_session_that_fails_is_a_failure_and_random_numbers_are_none(tmp_path: Path) -> None:
    original = gave(tmp_path, "o", y=np.array([1], np.float32))
    check = check_outputs(original, original, Report(Failure.CRASH, "gone"), ())
    assert (check.outcome, check.details) == (Outcome.FAILED, ("a plain session fails: crash: gone",))
    assert check_outputs(original, gave(tmp_path, "c", y=np.array([2], np.float32)), original, ["drop"]).outcome is Outcome.SKIPPED


def test_the_order_is_that_of_the_file() -> None:
    check = check_order(NODES, ran(0, 1, 2, 3), ORIGINALS)
    assert (check.outcome, check.figures["recomputations"]) == (Outcome.PASSED, 1)
    check = check_order(NODES, ran(0, 2, 1, 3), ORIGINALS)
    assert (check.outcome, check.details) == (Outcome.FAILED, ("'a__recompute1' ran instead of 'b'",))


def test_a_recomputation_that_was_merged_away_is_missed() -> None:
    check = check_order(NODES, ran(0, 1, 3), ORIGINALS)
    assert (check.outcome, check.details) == (Outcome.FAILED, ("'a__recompute1' did not run",))
    assert "0 of 1 recomputations ran" in check.summary


def test_what_onnxruntime_inserts_has_no_place_in_the_file() -> None:
    report = ran(0, 1, 2, 3)
    cast = NodeRun(4, "InsertedPrecisionFreeCast_b", "Cast", "cpu", 1e-6)
    check = check_order(NODES, Report(run=(report.run[0], cast, *report.run[1:])), ORIGINALS)
    assert (check.outcome, check.figures["inserted"]) == (Outcome.PASSED, 1)


def test_memory_is_compared_node_by_node_to_the_byte() -> None:
    check = check_memory(NODES, PREDICTION, ran(0, 1, 2, 3))
    assert (check.outcome, check.figures["peak_bytes"]) == (Outcome.PASSED, 300)
    check = check_memory(NODES, PREDICTION, ran(0, 1, 2, 3, memory=(100, 201, 300, 200)))
    assert check.outcome is Outcome.FAILED
    assert check.details == ("'b': 201 bytes, 200 predicted (+1)", "'c': 200 bytes, 250 predicted (-50)")
    assert check.figures["largest_difference_bytes"] == -50


@pytest.mark.parametrize(
    ("resident", "workspaces", "outcome"),
    [
        (300, {}, Outcome.PASSED),
        (300 + 2**18, {}, Outcome.PASSED),
        (302 + 2**18, {}, Outcome.FAILED),
        (302 + 2**18, {"a__recompute1": 50}, Outcome.PASSED),
        (10**9, None, Outcome.SKIPPED),
        (None, None, Outcome.SKIPPED),
    ],
)
def test_an_older_onnxruntime_tells_resident_memory(resident: int | None, workspaces: dict[str, int] | None, outcome: Outcome) -> None:
    run = tuple(NodeRun(index, node.name, node.kind, "cpu", 1e-6) for index, node in enumerate(NODES))
    check = check_memory(NODES, PREDICTION, Report(run=run, version="1.20.1", resident_bytes=resident, workspaces=workspaces))
    assert check.outcome is outcome
    assert "1.20.1 does not report memory per node" in check.summary


def test_the_peak_counts_fixed_memory_and_workspace() -> None:
    peak = peak_of(NODES, PREDICTION, ran(0, 1, 2, 3, workspaces={"b": 150}))
    assert peak is not None
    assert (peak.bytes, peak.node, peak.workspace, peak.exact) == (1350, "b", 150, True)


def test_time_is_told_and_so_is_a_busy_machine() -> None:
    quiet = check_time([1.0, 1.05], [1.21, 1.2], 0.18, 2)
    assert quiet.figures["overhead"] == pytest.approx(0.2)
    assert (quiet.figures["predicted_overhead"], quiet.figures["reliable"]) == (0.18, True)
    assert "+20.0 %; predicted +18.0 %" in quiet.summary
    busy = check_time([1.0, 1.5], [1.2, 1.2], None, 2)
    assert busy.outcome is Outcome.PASSED
    assert busy.figures["reliable"] is False
    assert "busy: rounds of one model differ by up to 50 %" in busy.summary


def test_copies_are_traced_to_what_they_copy() -> None:
    originals = {"conv", "odd__recompute1", "odd"}
    names = ("conv", "conv__recompute12", "conv__recompute1__", "odd__recompute1", "other__recompute1", "barrier")
    assert [origin(name, originals) for name in names] == ["conv", "conv", "conv", "odd__recompute1", None, None]


def test_constants_are_no_nodes() -> None:
    nodes = [
        helper.make_node("Constant", [], ["c"], value_float=1.0),
        helper.make_node("Relu", ["x"], ["y"]),
        helper.make_node("Add", ["y", "c"], ["z"], name="sum"),
    ]
    model = helper.make_model(helper.make_graph(nodes, "g", [], []))
    assert [(node.name, node.own_name) for node in file_nodes(model)] == [("Relu_1", ""), ("sum", "sum")]
