"""The public API: what it takes, what it gives, what it raises."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import onnx
import pytest
from cli_runs import run
from places import SAMPLES

import checkmate

CHAIN = SAMPLES / "chain.json"
MODEL = SAMPLES / "chain.onnx"


@pytest.mark.parametrize(
    "source",
    [CHAIN, str(CHAIN), CHAIN.read_bytes(), json.loads(CHAIN.read_text())],
    ids=["path", "text", "bytes", "dict"],
)
def test_a_graph_is_loaded_from_anywhere(source: object) -> None:
    graph = checkmate.load(source)
    assert (graph.format, graph.operations, graph.keep_all_peak_bytes) == ("checkmate-graph", 33, 18)
    assert graph.source == (str(CHAIN) if isinstance(source, (str, Path)) else "")


def test_a_model_is_loaded_from_memory_and_stays_as_it_was() -> None:
    model = onnx.load(str(MODEL))
    before = model.SerializeToString(deterministic=True)
    graph = checkmate.load(model)
    assert graph.format == "onnx"
    assert graph.keep_all_peak_bytes == checkmate.load(MODEL).keep_all_peak_bytes
    assert model.SerializeToString(deterministic=True) == before
    assert checkmate.load(model.SerializeToString()).operations == graph.operations


def test_differentiating_a_model_in_memory_leaves_it_as_it_was() -> None:
    model = onnx.load(str(SAMPLES / "forward.onnx"))
    before = model.SerializeToString(deterministic=True)
    training = checkmate.differentiate(model, loss="cross-entropy", batch_size=4)
    assert training.has_backward_pass
    assert model.SerializeToString(deterministic=True) == before
    with pytest.raises(checkmate.InputError, match="either loss"):
        checkmate.differentiate(model)


@pytest.mark.parametrize("source", [{"nodes": 3}, b"neither", {"operations": {1, 2}}])
def test_what_is_no_graph_is_one_line(source: object) -> None:
    with pytest.raises(checkmate.InputError) as caught:
        checkmate.load(source)
    assert "\n" not in str(caught.value)


def test_a_result_is_what_the_command_prints(tmp_path: Path) -> None:
    result = checkmate.solve(CHAIN, "60%", strategy="optimal")
    printed = run(tmp_path, "solve", CHAIN, "--budget", "60%", "--strategy", "optimal", "--json").json
    for name in ("cost", "ideal_cost", "overhead", "bound", "gap", "peak_bytes", "budget_bytes", "keep_all_peak_bytes", "recomputed"):
        assert getattr(result, name) == pytest.approx(printed[name]), name
    assert result.status is checkmate.Status.OPTIMAL
    assert (result.stop.value, result.bound_scope) == (printed["stop"], printed["bound_scope"])
    assert result.simulation.peak_bytes == max(result.simulation.memory) == result.peak_bytes


def test_files_are_what_the_command_writes(tmp_path: Path) -> None:
    result = checkmate.solve(MODEL, "70%", strategy="ap-greedy")
    assert result.save(tmp_path / "a.schedule.json") == [tmp_path / "a.schedule.json"]
    assert result.save(tmp_path / "a.remat.onnx") == [tmp_path / "a.remat.onnx"]
    assert run(tmp_path, "solve", MODEL, "--budget", "70%", "--strategy", "ap-greedy", "-o", "b").code == 0
    assert (tmp_path / "a.remat.onnx").read_bytes() == (tmp_path / "b.remat.onnx").read_bytes() == result.compile().SerializeToString()
    first, second = (json.loads((tmp_path / f"{name}.schedule.json").read_text()) for name in "ab")
    assert {**first, "run": None} == {**second, "run": None}
    assert b"<html" in result.report(tmp_path / "page.html").read_bytes()


def test_a_graph_that_is_no_model_is_not_compiled() -> None:
    with pytest.raises(checkmate.InputError, match="only ONNX models"):
        checkmate.solve(CHAIN, "90%", strategy="ap-greedy").compile()


def test_nothing_fits_says_how_much_would() -> None:
    with pytest.raises(checkmate.InfeasibleError) as caught:
        checkmate.solve(CHAIN, 2)
    error = caught.value
    assert (error.budget_bytes, error.smallest_budget_bytes) == (2, 3)
    assert error.binding_operation
    assert error.details["smallest_budget_bytes"] == 3


def test_progress_is_told_and_an_interruption_keeps_the_best() -> None:
    events: list[checkmate.Event] = []
    stop = threading.Event()

    def listen(event: checkmate.Event) -> None:
        events.append(event)
        if event.incumbent is not None:
            stop.set()

    result = checkmate.solve(SAMPLES / "vgg.json", "70%", strategy="optimal", gap=0.0, on_progress=listen, interrupted=stop.is_set)
    assert result.stop is checkmate.Stop.INTERRUPTED
    assert result.peak_bytes <= result.budget_bytes
    assert any(event.incumbent is not None for event in events)
    with pytest.raises(checkmate.InterruptedWorkError):
        checkmate.solve(SAMPLES / "vgg.json", "55%", interrupted=lambda: True)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"strategy": "best"}, "no strategy 'best'"),
        ({"solver": "hihgs"}, "did you mean 'highs'"),
        ({"order": "serach"}, "did you mean 'search'"),
        ({"formulation": "papers"}, "did you mean 'paper'"),
        ({"costs": "rofline"}, "did you mean 'roofline'"),
        ({"memory_model": "onnx"}, "choose from generic, onnxruntime"),
        ({"pin": ["nothing*"]}, "no operation matches 'nothing*'"),
    ],
)
def test_a_misspelt_option_is_told(options: dict[str, object], words: str) -> None:
    with pytest.raises(checkmate.InputError, match=words.replace("*", r"\*")):
        checkmate.solve(CHAIN, "60%", **options)


def test_schedules_are_loaded_verified_and_shown(tmp_path: Path) -> None:
    result = checkmate.solve(CHAIN, "60%", strategy="optimal")
    result.save(tmp_path / "s.json")
    schedule = checkmate.Schedule.load(tmp_path / "s.json")
    assert schedule.computations == result.schedule.computations
    for shown in (result, schedule):
        page = shown._repr_html_()
        assert page.startswith("<iframe")
        assert "sandbox" in page
    assert "overhead" in repr(result)
    assert "33 operations" in repr(checkmate.load(CHAIN))
    assert checkmate.verify(CHAIN, schedule).passed
    assert checkmate.verify(CHAIN, result).passed
    assert checkmate.verify(CHAIN, tmp_path / "s.json", budget=3).violations
    document = json.loads((tmp_path / "s.json").read_text())
    document["steps"].pop(3)
    (tmp_path / "s.json").write_text(json.dumps(document))
    with pytest.raises(checkmate.VerificationError):
        checkmate.Schedule.load(tmp_path / "s.json")


def test_a_priced_graph_is_solved_at_several_budgets() -> None:
    priced = checkmate.load(CHAIN).price("unit", reserve="2B")
    costs = [priced.solve(budget, strategy="chen-greedy").cost for budget in ("100%", "70%")]
    assert costs[0] == priced.problem.ideal_cost
    assert costs == sorted(costs)


def test_no_name_but_the_public_ones() -> None:
    with pytest.raises(AttributeError):
        checkmate.sovle  # noqa: B018
    assert set(dir(checkmate)) >= set(checkmate.__all__)
