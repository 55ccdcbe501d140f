"""`checkmate min-budget`: known answers, a limit that is none too high, what it writes, Ctrl-C."""

from __future__ import annotations

import json
import math
import time
from pathlib import Path

import pytest
from cli_runs import files_in, interrupted, run, write_chain, write_uneven_chain
from oracles import unrestricted_optimum
from orders import all_orders, wide
from places import DOCS
from random_graphs import random_problem, random_training

from checkmate.core.engine.run import run_strategy
from checkmate.core.events import Watch
from checkmate.core.model.costs import unit_costs
from checkmate.core.model.floors import feasibility_floor, least_memory
from checkmate.core.model.graph import OperationSpec, ValueSpec, assemble
from checkmate.core.model.memory_model import MemoryModel
from checkmate.core.model.problem import Problem, build_problem
from checkmate.core.model.transforms.permute import permuted
from checkmate.core.schedule.certify import certify
from checkmate.core.settings import Order, Settings
from checkmate.core.studies.smallest import find_smallest


def possible(problem: Problem, budget: int) -> bool:
    """Is there any schedule in the problem's order, however often it recomputes?"""
    return unrestricted_optimum(problem.with_budget(budget)) < math.inf


@pytest.mark.parametrize("seed", range(60))
def test_below_the_limit_no_order_and_no_recomputation_helps(seed: int) -> None:
    problem = random_problem(seed, most=6)
    limit = least_memory(problem).bytes
    assert limit <= max(feasibility_floor(problem).bytes, problem.base)
    assert not any(possible(permuted(problem, order), limit - 1) for order in all_orders(problem) if problem.count)


@pytest.mark.parametrize("seed", range(0, 60, 3))
def test_in_the_given_order_small_graphs_are_solved_exactly(seed: int) -> None:
    problem = random_problem(seed, most=6)
    found = find_smallest(problem, Settings(order=Order.GIVEN), Watch(20.0))
    assert certify(problem, found.sequence)[1].peak_bytes <= found.budget
    if problem.count:
        assert possible(problem, found.budget)
        assert not possible(problem, found.budget - 1)
        assert found.limit.bytes == found.budget


@pytest.mark.parametrize("seed", range(0, 60, 6))
def test_with_the_order_free_the_answer_is_that_of_the_best_order(seed: int) -> None:
    problem = random_problem(seed, most=5)
    found = find_smallest(problem, Settings(order=Order.SEARCH), Watch(20.0))
    assert found.scope == "any"
    assert found.limit.bytes <= found.budget
    if problem.count:
        assert not any(possible(permuted(problem, order), found.budget - 1) for order in all_orders(problem))


def test_an_output_written_over_its_input_takes_no_memory() -> None:
    """Generic: input and output of relu together. onnxruntime: one buffer for both; but a graph output has one of its own."""
    specs = [
        OperationSpec("make", "Op", (), (ValueSpec("a", 100),)),
        OperationSpec("relu", "Relu", ("a",), (ValueSpec("b", 100),), in_place=(("a", "b"),)),
        OperationSpec("sum", "Op", ("b",), (ValueSpec("c", 1),)),
    ]
    for outputs, memory_model, least in (
        (["c"], MemoryModel.GENERIC, 200),
        (["c"], MemoryModel.ONNXRUNTIME, 101),
        (["b", "c"], MemoryModel.ONNXRUNTIME, 200),
    ):
        graph = assemble("in place", specs, outputs, {})
        problem = build_problem(graph, unit_costs(graph), memory_model=memory_model)
        found = find_smallest(problem, Settings(order=Order.SEARCH), Watch(20.0))
        assert (found.budget, found.limit.bytes) == (least, least)


def test_a_free_order_needs_less_than_the_given_one(tmp_path: Path) -> None:
    """Branches one at a time: 100 bytes and a few, where the given order keeps them all unless it recomputes."""
    problem = wide(4)
    found = find_smallest(problem, Settings(order=Order.SEARCH), Watch(20.0))
    assert found.budget == 7 + 3 + 100 + 1


@pytest.mark.slow
@pytest.mark.parametrize("seed", [7, 11])
def test_solve_finds_a_schedule_for_the_smallest_budget_found(seed: int) -> None:
    """Both descend in the same way. A budget that one reaches the other does too."""
    problem = random_training(seed)
    found = find_smallest(problem, Settings(order=Order.SEARCH), Watch(20.0))
    assert run_strategy(problem.with_budget(found.budget), "auto", Settings(order=Order.SEARCH, gap=0.5), Watch(60.0)).fits


def test_what_is_printed_and_what_is_in_the_object(tmp_path: Path) -> None:
    write_chain(tmp_path, layers=6)
    ran = run(tmp_path, "min-budget", "chain.json", "--json")
    assert ran.code == 0
    facts = ran.json
    assert facts["format"] == "checkmate-min-budget"
    assert facts["status"] == "optimal"
    assert facts["limit_bytes"] == facts["budget_bytes"] < facts["keep_all_peak_bytes"]
    assert facts["gap"] == 0.0
    assert facts["limit_scope"] == "any"
    assert facts["cost"] > facts["ideal_cost"]
    assert files_in(tmp_path) == {"chain.json"}
    text = run(tmp_path, "min-budget", "chain.json", "--order", "given").out
    assert f"{facts['budget_bytes']} bytes" in text
    assert facts["limit_operation"] in text
    documented = (DOCS / "cli.md").read_text(encoding="utf-8")
    assert [key for key in facts.keys() - {"format", "version"} if f"`{key}`" not in documented] == []


def test_the_schedule_is_written_where_asked_and_solve_agrees(tmp_path: Path) -> None:
    write_chain(tmp_path, layers=6)
    ran = run(tmp_path, "min-budget", "chain.json", "-o", "least.json", "--json")
    assert ran.json["outputs"] == ["least.json"]
    assert run(tmp_path, "verify", "chain.json", "least.json").code == 0
    assert json.loads((tmp_path / "least.json").read_text())["budget_bytes"] == ran.json["budget_bytes"]
    below = run(tmp_path, "solve", "chain.json", "--budget", str(ran.json["budget_bytes"] - 1))
    assert below.code == 3
    assert run(tmp_path, "min-budget", "chain.json", "-o", "-", "--json").code == 2
    assert run(tmp_path, "min-budget", "chain.json", "-o", "chain.json").code == 2


def test_ctrl_c_gives_the_best_so_far(tmp_path: Path) -> None:
    write_uneven_chain(tmp_path)
    ran = interrupted(tmp_path, lambda line: "found" in line, "min-budget", "chain.json", "--time-limit", "10m")
    assert ran.code == 130
    assert "smallest budget found so far" in ran.err
    assert "budget" in ran.out


@pytest.mark.slow
def test_what_goes_before_the_search_takes_none_of_its_time() -> None:
    """A watch that has run out, as it might while kernels are compiled, still leaves the search all its time."""
    problem = wide(5)
    late = Watch(20.0, started=time.monotonic() - 60.0)
    assert find_smallest(problem, Settings(order=Order.SEARCH), late) == find_smallest(problem, Settings(order=Order.SEARCH), Watch(20.0))
