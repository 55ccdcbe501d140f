"""The memory model, by hand and on random graphs: simulator, verifier and profile must tell the same story."""

from __future__ import annotations

import ast
import random
from pathlib import Path

import pytest
from random_graphs import random_graph, random_problem

import checkmate.core.schedule.verify as verify_module
from checkmate.core.errors import VerificationError
from checkmate.core.model.costs import given_costs
from checkmate.core.model.floors import feasibility_floor
from checkmate.core.model.graph import Graph, OperationSpec, ValueSpec, Work, assemble
from checkmate.core.model.problem import Problem, build_problem, horizons
from checkmate.core.schedule.schedule import Action, Schedule, Step, expand
from checkmate.core.schedule.sequence import in_stage_order, just_in_time, profile, prune
from checkmate.core.schedule.simulate import simulate
from checkmate.core.schedule.verify import Claim, verify


def op(name: str, inputs: str, outputs: dict[str, int], **extra: int) -> OperationSpec:
    made = tuple(ValueSpec(value, size) for value, size in outputs.items())
    return OperationSpec(name, "Op", tuple(inputs.split()), made, workspace=extra.get("workspace", 0), work=Work(cost=1.0))


def view(name: str, base: str, *others: str) -> OperationSpec:
    return OperationSpec(name, "View", (base, *others), (ValueSpec(name, 0, base),), view=True)


def problem_of(*specs: OperationSpec, outputs: tuple[str, ...] = (), fixed: int = 0, reserve: int = 0) -> Problem:
    graph = assemble("hand", specs, outputs, {"parameters": fixed})
    return build_problem(graph, given_costs(graph), reserve=reserve)


def memory(problem: Problem, sequence: tuple[int, ...]) -> tuple[int, ...]:
    schedule = expand(problem, sequence)
    reserve = problem.base - problem.graph.fixed_bytes
    return simulate(problem.graph, problem.costs, schedule, reserve=reserve).memory


def test_inputs_outputs_and_workspace_are_there_together_then_inputs_go() -> None:
    problem = problem_of(op("a", "", {"a": 10}), op("b", "a", {"b": 3}, workspace=100), op("c", "b", {"c": 1}))
    assert memory(problem, (0, 1, 2)) == (10, 113, 4)


def test_several_outputs_are_freed_each_on_its_own() -> None:
    problem = problem_of(op("split", "", {"left": 10, "right": 20}), op("l", "left", {"l": 1}), op("r", "right", {"r": 1}))
    assert memory(problem, (0, 1, 2)) == (30, 31, 21)


def test_a_value_nobody_reads_is_freed_at_once() -> None:
    problem = problem_of(op("a", "", {"a": 10, "mask": 7}), op("b", "a", {"b": 1}))
    assert memory(problem, (0, 1)) == (17, 11)


def test_graph_outputs_live_to_the_end() -> None:
    problem = problem_of(op("a", "", {"a": 10}), op("b", "a", {"b": 1}), op("c", "b", {"c": 1}), outputs=("a",))
    assert memory(problem, (0, 1, 2)) == (10, 11, 12)


def test_fixed_memory_and_reserve_are_always_there() -> None:
    problem = problem_of(op("a", "", {"a": 10}), op("b", "a", {"b": 1}), fixed=100, reserve=1000)
    assert memory(problem, (0, 1)) == (1110, 1111)


def test_a_view_holds_the_buffer_it_shares() -> None:
    problem = problem_of(op("a", "", {"a": 10}), view("v", "a"), op("b", "a", {"b": 1}), op("c", "v b", {"c": 1}))
    assert problem.count == 3
    assert memory(problem, (0, 1, 2)) == (10, 11, 11, 12)


def test_a_view_is_made_again_when_its_buffer_is() -> None:
    problem = problem_of(op("a", "", {"a": 10}), view("v", "a"), op("b", "v", {"b": 1}), op("c", "b", {"c": 1}), op("d", "v c", {"d": 1}))
    schedule = expand(problem, (0, 1, 2, 0, 3))
    names = [problem.graph.operations[index].name for index in schedule.computations]
    assert names == ["a", "v", "b", "c", "a", "v", "d"]
    assert memory(problem, (0, 1, 2, 0, 3)) == (10, 10, 11, 2, 11, 11, 12)


def test_a_view_of_fixed_memory_takes_nothing() -> None:
    flat = OperationSpec("w", "View", (), (ValueSpec("w", 0),), view=True)
    problem = problem_of(flat, view("ww", "w"), op("a", "ww", {"a": 4}), fixed=50)
    assert problem.inputs == ((),)
    assert memory(problem, (0,)) == (50, 50, 54)
    stays = simulate(problem.graph, problem.costs, expand(problem, (0,))).stays
    assert [problem.graph.values[stay.value].name for stay in stays] == ["a"]


def test_computations_beyond_the_first_are_counted_without_views() -> None:
    problem = problem_of(op("a", "", {"a": 10}), view("v", "a"), op("b", "v", {"b": 1}), op("c", "v b", {"c": 1}))
    counts = {
        sequence: simulate(problem.graph, problem.costs, expand(problem, sequence)).recomputed for sequence in ((0, 1, 2), (0, 1, 0, 0, 2))
    }
    assert list(counts.values()) == [0, 2]


def test_the_floor_is_what_one_operation_needs() -> None:
    problem = problem_of(op("a", "", {"a": 10}), op("b", "a", {"b": 5}, workspace=2), op("c", "b", {"c": 1}), fixed=100)
    floor = feasibility_floor(problem)
    assert (floor.bytes, floor.operation) == (117, "b")


def test_the_floor_counts_what_cannot_be_made_again() -> None:
    seeds = OperationSpec("r", "Random", (), (ValueSpec("r", 50),), work=Work(cost=1.0), pinned=True)
    problem = problem_of(seeds, op("a", "", {"a": 10}), op("b", "a", {"b": 5}), op("c", "r b", {"c": 1}))
    assert feasibility_floor(problem).bytes == 65


def test_the_floor_counts_all_outputs_at_the_end() -> None:
    problem = problem_of(op("a", "", {"a": 10}), op("b", "", {"b": 20}), op("c", "", {"c": 1}), outputs=("a", "b"))
    assert feasibility_floor(problem).bytes == 30


def test_horizons_end_where_nothing_needs_an_operation_any_more() -> None:
    problem = problem_of(op("a", "", {"a": 1}), op("b", "a", {"b": 1}), op("c", "a", {"c": 1}), op("d", "c", {"d": 1}))
    assert horizons(problem) == [3, 1, 3, 3]


@pytest.mark.parametrize("block", range(8))
def test_profile_simulator_and_verifier_agree_on_random_sequences(block: int) -> None:
    """Any sequence with first computations in order is a valid schedule; three independent accounts of it must agree."""
    for seed in range(block * 250, block * 250 + 250):
        problem = random_problem(seed, most=12)
        rng = random.Random(seed)
        sequence: list[int] = []
        for operation in range(problem.count):
            again = [earlier for earlier in range(operation) if not problem.pinned[earlier] and rng.random() < 0.2]
            sequence += [*sorted(again), operation]
        for candidate in (tuple(sequence), prune(problem, sequence), in_stage_order(problem, sequence), just_in_time(problem, sequence)):
            schedule = expand(problem, candidate)
            simulation = simulate(problem.graph, problem.costs, schedule)
            expected = profile(problem, candidate)
            assert simulation.cost == pytest.approx(expected.cost), seed
            assert simulation.peak_bytes == max(expected.peak, problem.base), seed
            claim = Claim(simulation.peak_bytes, simulation.peak_bytes, simulation.cost)
            assert verify(problem.graph, problem.costs.amounts, schedule, claim).violations == (), seed
            shaved = Claim(simulation.peak_bytes - 1)
            assert not verify(problem.graph, problem.costs.amounts, schedule, shaved).passed, seed


def test_pruning_and_moving_never_cost_more() -> None:
    for seed in range(300):
        problem = random_problem(seed, most=12)
        rng = random.Random(seed)
        sequence = [i for operation in range(problem.count) for i in (*(e for e in range(operation) if rng.random() < 0.3), operation)]
        before, after = profile(problem, sequence), profile(problem, prune(problem, sequence))
        assert after.cost <= before.cost
        assert after.peak <= before.peak
        assert profile(problem, just_in_time(problem, sequence)).cost <= before.cost


def test_a_view_that_reads_more_than_its_buffer_keeps_that_alive() -> None:
    """A Reshape to a computed shape: the problem may say a little more than the schedule takes, never less."""
    problem = problem_of(
        op("x", "", {"x": 10}),
        op("shape", "", {"shape": 2}),
        view("v", "x", "shape"),
        op("b", "", {"b": 3}),
        op("c", "v b", {"c": 1}),
        op("d", "x c", {"d": 1}),
    )
    for sequence in ((0, 1, 2, 3, 4), (0, 1, 2, 0, 3, 4), (0, 1, 2, 3, 0, 4)):
        assert max(memory(problem, sequence)) <= profile(problem, sequence).peak


def good() -> tuple[Graph, tuple[float, ...], Schedule]:
    problem = problem_of(op("a", "", {"a": 10}), view("v", "a"), op("b", "v", {"b": 1}), op("c", "b", {"c": 1}), outputs=("c",))
    return problem.graph, problem.costs.amounts, expand(problem, (0, 1, 0, 2))


MUTATIONS = {
    "nothing": ("", lambda steps: steps),
    "an operation left out": ("never computed|not in memory", lambda steps: steps[:-2]),
    "a free of what is not there": ("frees value 'a', which is not in memory", lambda steps: (Step(Action.FREE, 0), *steps)),
    "a free of what does not exist": ("number 4", lambda steps: (Step(Action.FREE, 4), *steps)),
    "a computation that does not exist": ("does not have", lambda steps: (Step(Action.COMPUTE, 4), *steps)),
    "an input freed too early": ("is not in memory", lambda steps: (steps[0], Step(Action.FREE, 0), *steps[1:])),
    "made while it is there": ("still in memory", lambda steps: (steps[0], *steps)),
    "an output freed at the end": ("graph output 'c' is not in memory at the end", lambda steps: (*steps, Step(Action.FREE, 3))),
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_the_verifier_names_what_is_wrong(name: str) -> None:
    graph, amounts, schedule = good()
    message, change = MUTATIONS[name]
    verdict = verify(graph, amounts, Schedule(change(schedule.steps)), Claim())
    if not message:
        assert verdict.passed
    else:
        assert any(part in violation for part in message.split("|") for violation in verdict.violations), verdict.violations


def test_the_verifier_believes_no_claim() -> None:
    graph, amounts, schedule = good()
    truth = verify(graph, amounts, schedule, Claim())
    assert verify(graph, amounts, schedule, Claim(truth.peak_bytes, truth.peak_bytes, truth.cost)).passed
    for claim in (Claim(budget_bytes=truth.peak_bytes - 1), Claim(peak_bytes=truth.peak_bytes - 1), Claim(cost=truth.cost - 0.5)):
        assert len(verify(graph, amounts, schedule, claim).violations) == 1


def test_the_verifier_finds_a_pinned_operation_that_runs_twice() -> None:
    once = OperationSpec("r", "Random", (), (ValueSpec("r", 5),), work=Work(cost=1.0), pinned=True)
    problem = problem_of(once, op("a", "r", {"a": 1}), op("b", "r a", {"b": 1}))
    verdict = verify(problem.graph, problem.costs.amounts, expand(problem, (0, 1, 0, 2)), Claim())
    assert verdict.violations == ("operation 'r' is computed 2 times, but it must run exactly once",)


def test_random_damage_never_passes_both_judges_differently() -> None:
    """Whatever is done to a schedule, simulator and verifier agree on whether it can run, and on its peak if it can."""
    both_bad = 0
    for seed in range(600):
        graph = random_graph(seed, most=8)
        problem = build_problem(graph, given_costs(graph))
        rng = random.Random(seed)
        steps = list(expand(problem, range(problem.count)).steps)
        for _ in range(rng.randint(1, 2)):
            where = rng.randrange(len(steps))
            if rng.random() < 0.5 and len(steps) > 1:
                del steps[where]
            else:
                steps.insert(rng.randrange(len(steps)), steps[where])
        verdict = verify(graph, problem.costs.amounts, Schedule(tuple(steps)), Claim())
        harmless = ("never computed", "at the end", "must run")
        runs = all(any(part in text for part in harmless) for text in verdict.violations)
        try:
            peak = simulate(graph, problem.costs, Schedule(tuple(steps))).peak_bytes
        except VerificationError:
            assert not runs, seed
            both_bad += 1
        else:
            assert runs, (seed, verdict.violations)
            assert peak == verdict.peak_bytes, seed
    assert both_bad > 50


def test_the_verifier_shares_nothing_with_what_it_verifies() -> None:
    tree = ast.parse(Path(verify_module.__file__).read_text())
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.level}
    assert imported == {"model.graph", "model.memory_model", "schedule"}
