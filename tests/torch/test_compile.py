"""The backend of torch.compile: sizes, budgets, errors, the cache, plans."""

from __future__ import annotations

import copy
import json
import warnings
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch==2.13.0")

from torch_runs import Pair, differences, forget_gradients, peak_bytes
from torch_zoo import GPT, LSTM, ZOO, Custom, Entry, ResNet, images, loss_inside, sequences, tokens, vectors

import checkmate
import checkmate.torch
from checkmate.torch.options import parse_options

GPT_ENTRY = ZOO["gpt"]
SHALLOW = Entry(lambda: GPT(layers=1), tokens)
QUICK = {"cache": False, "time_limit": 20.0, "gap": 0.3}


@pytest.mark.slow
def test_two_sizes_in_turn() -> None:
    """Each size is a graph with a plan of its own, and the budget holds for both."""
    pair = Pair.of(GPT_ENTRY, dynamic=False)
    for number, batch in enumerate((4, 6, 4)):
        assert pair.step(number, tokens(batch)) == []
    assert len(pair.plans) == 2
    for plan, batch in zip(pair.plans, (4, 6), strict=True):
        assert pair.measured_peak(tokens(batch)) + plan.fixed_bytes == plan.peak_bytes


@pytest.mark.slow
@pytest.mark.parametrize(("entry", "make"), [(SHALLOW, tokens), (ZOO["resnet"], images)], ids=["gpt", "resnet"])
def test_a_dynamic_batch_is_planned_for_each_size(entry: Entry, make) -> None:  # type: ignore[no-untyped-def]
    """One graph with symbolic sizes: the peak is exact at every size, also at those it was not traced with."""
    pair = Pair.of(entry, budget="8MB", dynamic=True)
    assert pair.step(0, make(4)) == []
    limit = pair.plans[0].keep_all_peak_bytes
    pair = Pair.of(entry, budget=str(limit), dynamic=True)
    for number, batch in enumerate((4, 6, 3, 4)):
        assert pair.step(number, make(batch)) == []
    assert [plan.recomputed > 0 for plan in pair.plans] == [False, True, False]
    for plan, batch in zip(pair.plans, (4, 6, 3), strict=True):
        assert pair.measured_peak(make(batch)) + plan.fixed_bytes == plan.peak_bytes <= limit


@pytest.mark.slow
def test_eval_runs_as_it_is() -> None:
    pair = Pair.of(ZOO["gpt-dropout"])
    for model in (pair.eager, pair.plain):
        model.eval()
    with torch.no_grad():
        assert torch.equal(pair.eager(*tokens()), pair.compiled(*tokens()))
    assert pair.plans == []
    for model in (pair.eager, pair.plain):
        model.train()
    assert pair.step(0) == []
    assert len(pair.plans) == 1


@pytest.mark.slow
def test_a_budget_that_cannot_be_met() -> None:
    """The error states the smallest budget that works; with that one it does."""
    pair = Pair.of(GPT_ENTRY, budget="200kB", time_limit=6)
    with pytest.raises(checkmate.InfeasibleError, match="the smallest budget that works is") as caught:
        pair.compiled(*tokens())
    smallest = caught.value.smallest_budget_bytes
    assert smallest is not None
    assert caught.value.budget_bytes == 200_000 < smallest
    pair = Pair.of(GPT_ENTRY, budget=smallest)
    assert pair.step(0) == []
    assert pair.plans[0].peak_bytes <= smallest
    assert pair.measured_peak() + pair.plans[0].fixed_bytes == pair.plans[0].peak_bytes


def test_options_are_checked() -> None:
    for options, words in (
        ({"budget": "8GB", "bugdet": 1}, "no option 'bugdet'; did you mean 'budget'"),
        ({}, "no budget"),
        ({"budget": "lots"}, "not a size"),
        ({"budget": "8GB", "compiler": "gcc"}, "no compiler 'gcc'"),
        ({"budget": "8GB", "time_limit": 0}, "time_limit must be above 0"),
    ):
        with pytest.raises(checkmate.InputError, match=words):
            parse_options(options)
    with pytest.raises(checkmate.InputError, match="no budget"):
        torch.compile(GPT(), backend="checkmate")(*tokens())


@pytest.mark.slow
def test_the_backend_by_its_name() -> None:
    """As the entry point of torch_dynamo_backends."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    eager = ResNet()
    plain = copy.deepcopy(eager)
    compiled = torch.compile(plain, backend="checkmate", options={"budget": "70%", **QUICK})
    for model in (eager, compiled):
        loss_inside(model, images())
    assert differences(eager, plain) == []
    (plan,) = checkmate.torch.plans(compiled)
    assert plan.recomputed > 0
    assert checkmate.torch.plans(eager) == []
    assert plan in checkmate.torch.plans()


@pytest.mark.slow
def test_the_second_start_takes_its_schedule_from_the_cache(tmp_path: Path) -> None:
    """Also if the entry was damaged meanwhile: then it is solved again, with a warning."""
    first = Pair.of(GPT_ENTRY, cache=tmp_path)
    assert first.step(0) == []
    second = Pair.of(GPT_ENTRY, cache=tmp_path)
    assert second.step(0) == []
    assert [plan.from_cache for plan in (*first.plans, *second.plans)] == [False, True]
    assert second.plans[0].result.schedule.computations == first.plans[0].result.schedule.computations
    assert second.plans[0].peak_bytes == first.plans[0].peak_bytes
    (entry,) = tmp_path.rglob("*.json")
    content = json.loads(entry.read_text())
    content["answer"]["sequence"] = content["answer"]["sequence"][1:]
    entry.write_text(json.dumps(content))
    third = Pair.of(GPT_ENTRY, cache=tmp_path)
    with pytest.warns(UserWarning, match="damaged cache entry"):
        assert third.step(0) == []
    assert not third.plans[0].from_cache
    other = Pair.of(GPT_ENTRY, cache=tmp_path, budget="65%")
    assert other.step(0) == []
    assert not other.plans[0].from_cache


@pytest.mark.slow
def test_what_a_plan_tells_and_writes(tmp_path: Path) -> None:
    pair = Pair.of(GPT_ENTRY, reserve="10kB")
    assert pair.step(0) == []
    (plan,) = pair.plans
    assert plan.name == "GPT"
    assert plan.budget_bytes == int(0.6 * plan.keep_all_peak_bytes)
    assert 0 <= plan.gap <= 0.3
    assert plan.overhead > 0
    assert plan.status in (checkmate.Status.OPTIMAL, checkmate.Status.FEASIBLE)
    assert plan.fixed_bytes == sum(each.nbytes for each in (*pair.plain.parameters(), *tokens()))
    assert pair.measured_peak() + plan.fixed_bytes + 10_000 == plan.peak_bytes
    plan.save(tmp_path / "gpt.schedule.json")
    schedule = checkmate.Schedule.load(tmp_path / "gpt.schedule.json")
    assert schedule.document.memory_model is checkmate.MemoryModel.TORCH
    assert schedule.peak_bytes == plan.peak_bytes
    assert "gpt" in plan.report(tmp_path / "gpt.html").read_text().lower()
    assert "peak" in repr(plan)


@pytest.mark.slow
def test_steps_that_overlap_or_are_dropped() -> None:
    """Two forward passes before the first backward pass, one without a backward pass, and one backward pass twice."""
    pair = Pair.of(GPT_ENTRY)
    forget_gradients(pair.eager, pair.plain)
    for model in (pair.eager, pair.compiled):
        one, two, dropped = model(*tokens()), model(*tokens()), model(*tokens())
        del dropped
        two.backward()
        one.backward(retain_graph=True)
        one.backward()
    assert differences(pair.eager, pair.plain) == []


@pytest.mark.slow
def test_gradients_that_are_there_before_a_step_are_counted() -> None:
    """They are there from the second step on: summed over several steps, or set to zero in place."""
    pair, inputs = Pair.of(GPT_ENTRY, budget="800kB"), tokens()
    for number in range(2):
        for model in (pair.eager, pair.compiled):
            loss_inside(model, inputs)
        assert differences(pair.eager, pair.plain) == [], number
    (plan,) = pair.plans
    gradients = sum(each.grad.nbytes for each in pair.plain.parameters())
    assert plan.fixed_bytes == gradients + sum(each.nbytes for each in (*pair.plain.parameters(), *inputs))
    assert plan.recomputed > 0
    assert peak_bytes(lambda: loss_inside(pair.compiled, inputs)) + plan.fixed_bytes == plan.peak_bytes <= 800_000


@pytest.mark.slow
def test_a_part_that_torch_leaves_to_eager_mode_is_named() -> None:
    torch._dynamo.reset()
    model = checkmate.torch.compile(LSTM(), budget="100%", **QUICK)
    loss_inside(model, sequences())
    with pytest.warns(UserWarning, match="leaves a part of LSTM to eager mode .6 parameters, such as lstm.weight_ih_l0"):
        loss_inside(model, sequences())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loss_inside(model, sequences())


def test_a_model_that_torch_leaves_to_eager_mode_is_named() -> None:
    """A graph break in a loop: torch.compile gives up on the whole function."""

    class Loop(Custom):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for layer in self.layers:
                x = layer(x)
                torch._dynamo.graph_break()
            return x.square().mean()

    torch._dynamo.reset()
    model = checkmate.torch.compile(Loop(), budget="80%", **QUICK)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("error")
        model(vectors()[0])
    with pytest.warns(UserWarning, match="leaves all of Loop to eager mode, so that nothing is planned"):
        model(vectors()[0])
    assert checkmate.torch.plans(model) == []


@pytest.mark.slow
def test_training_under_half_of_the_memory() -> None:
    """Fifty steps with AdamW: every loss is bit-equal to eager mode's."""
    pair = Pair.of(Entry(lambda: GPT(layers=4), tokens), budget="49%", gap=0.5)
    losses: list[list[float]] = []
    for model, plain in ((pair.eager, pair.eager), (pair.compiled, pair.plain)):
        optimizer = torch.optim.AdamW(plain.parameters(), 1e-3)
        losses.append([])
        for _ in range(50):
            optimizer.zero_grad()
            losses[-1].append(loss_inside(model, tokens()).item())
            optimizer.step()
    assert losses[0] == losses[1]
    assert losses[0][-1] < losses[0][0]
    assert all(plan.peak_bytes < plan.keep_all_peak_bytes / 2 for plan in pair.plans)
