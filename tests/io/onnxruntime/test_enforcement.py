"""What is concluded from runs under a limit. The processes here are imagined: each needs a number of bytes and fails below it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from onnx import parser

from checkmate.io.onnx.read.reader import OnnxModel, read_onnx
from checkmate.io.onnxruntime import enforcement
from checkmate.io.onnxruntime.checks import Check, Outcome, check_process
from checkmate.io.onnxruntime.child import Cap, Failure, Report
from checkmate.io.onnxruntime.enforcement import Enforcement, Run

MODEL = '<ir_version: 8, opset_import: ["" : 18]> g (float[250000] x) => (float[250000] z) {{ [{name}] z = Relu(x) }}'
MEGABYTE = 1_000_000
BASE = 10 * MEGABYTE


def model(name: str) -> OnnxModel:
    return read_onnx(parser.parse_model(MODEL.format(name=name)))


ORIGINAL, COMPILED = model("original"), model("compiled")


def runs(original: float, compiled: float, failure: Failure = Failure.OUT_OF_MEMORY, tried: list[int] | None = None) -> Run:
    """Models that need this many megabytes besides what is there before the limit is set."""

    def run(chosen: OnnxModel, task: str, **changes: object) -> Report:
        limit = changes["cap_bytes"]
        assert isinstance(limit, int)
        if tried is not None:
            tried.append(limit)
        needed = original if chosen is ORIGINAL else compiled
        return Report() if limit >= needed * MEGABYTE else Report(failure, "too little")

    return run


def enforce(run: Run, budget: float = 50, predicted: float = 49, fits_anyway: bool = False) -> Check:
    return Enforcement(ORIGINAL, COMPILED, run, int(budget * MEGABYTE), int(predicted * MEGABYTE), BASE).check(fits_anyway)


@pytest.mark.parametrize("excess", [0.1, 0.9, 3.0])
def test_what_the_process_needs_is_found_and_added(excess: float) -> None:
    """The compiled model needs 39 MB besides fixed memory, and what is none of the model's."""
    check = enforce(runs(original=60, compiled=39 + excess))
    assert (check.outcome, check.figures["original"], check.figures["limit"]) == (Outcome.PASSED, "out of memory", "address space")
    assert excess * MEGABYTE <= check.figures["more_bytes"] <= max(2**18, 2 * excess * MEGABYTE)
    assert check.figures["limit_bytes"] == 50 * MEGABYTE + check.figures["more_bytes"]
    assert "50 MB for the model and" in check.summary
    assert "the compiled model runs, the original fails: out of memory" in check.summary


def test_a_budget_that_the_model_does_not_keep_is_not_stretched() -> None:
    check = enforce(runs(original=60, compiled=39.5), budget=45)
    assert (check.outcome, "the compiled model fails: out of memory" in check.summary) == (Outcome.FAILED, True)
    check = enforce(runs(original=60, compiled=39.5), budget=10)
    assert "the budget leaves nothing after 10 MB of fixed memory" in check.summary


def test_a_prediction_that_is_far_off_is_a_failure() -> None:
    check = enforce(runs(original=900, compiled=39 + 40))
    assert (check.outcome, "more than its predicted 49 MB" in check.summary) == (Outcome.FAILED, True)


def test_the_addition_is_refined_until_it_separates() -> None:
    """2.1 MB are found as 4.2, with which the original runs too; less is tried then."""
    tried: list[int] = []
    check = enforce(runs(original=43, compiled=39 + 2.1, tried=tried))
    assert (check.outcome, check.figures["original"]) == (Outcome.PASSED, "out of memory")
    assert check.figures["more_bytes"] < 3 * MEGABYTE
    assert len(tried) < 16
    check = enforce(runs(original=41.2, compiled=39 + 2.1))
    assert (check.outcome, "the original runs too" in check.summary) == (Outcome.FAILED, True)


def test_an_original_that_fits_need_not_fail() -> None:
    check = enforce(runs(original=30, compiled=39.5), fits_anyway=True)
    assert (check.outcome, "runs too, because it fits" in check.summary) == (Outcome.PASSED, True)


def test_other_failures_are_told() -> None:
    check = enforce(runs(original=60, compiled=60, failure=Failure.CRASH))
    assert (check.outcome, check.summary) == (Outcome.FAILED, "the compiled model fails: crash: too little")


def test_a_model_that_needs_more_now_and_then_gets_more() -> None:
    """The timing of threads decides how much is needed at once."""
    steady = runs(original=70, compiled=39.2)
    calls: list[int] = []

    def moody(chosen: OnnxModel, task: str, **changes: object) -> Report:
        calls.append(1)
        return Report(Failure.OUT_OF_MEMORY, "") if chosen is COMPILED and len(calls) == 3 else steady(chosen, task, **changes)

    assert enforce(moody).outcome is Outcome.PASSED


@pytest.mark.parametrize(
    ("original", "compiled", "outcome"), [(60, 40, Outcome.PASSED), (40, 40, Outcome.FAILED), (60, 60, Outcome.FAILED)]
)
def test_where_the_address_space_cannot_be_limited_the_arena_is(
    original: float, compiled: float, outcome: Outcome, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(enforcement, "can_limit_address_space", lambda: False)
    caps: list[object] = []
    inner = runs(original, compiled)

    def run(chosen: OnnxModel, task: str, **changes: object) -> Report:
        caps.append((changes["cap"], changes["cap_bytes"]))
        return inner(chosen, task, **changes)

    assert enforce(run).outcome is outcome
    assert set(caps) == {(Cap.ARENA, 50 * MEGABYTE - 1_000_000)}


def grown(*growth: int, **fields: object) -> Callable[..., Check]:
    return lambda *arguments: check_process(Report(growth=growth, **fields), *arguments)  # type: ignore[arg-type]


def test_the_process_may_take_a_tenth_more_or_eight_megabytes() -> None:
    def outcome(last: float, predicted: float, budget: float | None = None) -> Outcome:
        limit = None if budget is None else int(budget * MEGABYTE)
        return grown(MEGABYTE, int(last * MEGABYTE))(int(predicted * MEGABYTE), limit, 0).outcome

    assert [outcome(last, 200) for last in (150, 219, 221)] == [Outcome.PASSED, Outcome.PASSED, Outcome.FAILED]
    assert [outcome(last, 30) for last in (37, 39)] == [Outcome.PASSED, Outcome.FAILED]
    assert [outcome(210, 200, budget) for budget in (200, 180)] == [Outcome.PASSED, Outcome.FAILED]
    assert (
        "1 MB after the first run, 150 MB after the tenth; 200 MB predicted"
        in grown(MEGABYTE, 150 * MEGABYTE)(200 * MEGABYTE, None, 0).summary
    )


def test_a_process_that_was_not_measured_is_no_failure_but_one_that_fails_is() -> None:
    assert grown()(1, None, 0).outcome is Outcome.SKIPPED
    assert grown(1, 2)(None, None, 0).outcome is Outcome.SKIPPED
    assert grown(failure=Failure.CRASH)(1, None, 0).outcome is Outcome.FAILED
