"""The strategies that need no solver: known answers on chains, hand-checked small cases, and proof of every schedule on random graphs."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import cache

import pytest

from checkmate.core.baselines import BASELINES
from checkmate.core.baselines.articulation import articulation_points
from checkmate.core.baselines.checkpoints import by_bytes, in_hash_order
from checkmate.core.baselines.forward import forward_pass
from checkmate.core.baselines.griewank import with_slots
from checkmate.core.engine.run import run_strategy
from checkmate.core.engine.strategies import get_strategy
from checkmate.core.events import Watch
from checkmate.core.model.costs import given_costs
from checkmate.core.model.graph import LARGEST_BYTES, OperationSpec, ValueSpec, Work, assemble
from checkmate.core.model.problem import Problem, build_problem
from checkmate.core.result import Result, Status, Stop
from checkmate.core.schedule.sequence import profile
from checkmate.core.settings import Settings


def problem_of(specs: list[OperationSpec], outputs: tuple[str, ...] = (), budget: int = LARGEST_BYTES) -> Problem:
    graph = assemble("test", specs, outputs, {"parameters": 3})
    return build_problem(graph, given_costs(graph), budget=budget)


def operation(number: int, reads: list[int], *, size: int = 1, backward: bool = False, pinned: bool = False) -> OperationSpec:
    made = (ValueSpec(f"v{number}", size),)
    inputs = tuple(f"v{read}" for read in reads)
    return OperationSpec(f"o{number}", "op", inputs, made, work=Work(cost=1.0), backward=backward, pinned=pinned)


def chain(layers: int, *, skips: tuple[tuple[int, int], ...] = (), flagged: bool = True, pinned: int = -1) -> Problem:
    """The unit chain: operations 0..2L, edges i -> i+1 and i -> 2L-i for i < L; skips are further edges."""
    specs = []
    for number in range(2 * layers + 1):
        reads = [number - 1] if number else []
        reads += [2 * layers - number] if number > layers else []
        reads += [source for source, target in skips if target == number]
        specs.append(operation(number, reads, backward=flagged and number >= layers, pinned=number == pinned))
    return replace(problem_of(specs), base=0)


def solve(strategy: str, problem: Problem, budget: int = LARGEST_BYTES) -> Result:
    return get_strategy(strategy)(problem.with_budget(budget), Settings(), Watch())


def cost_and_peak(problem: Problem, solution: Result) -> tuple[float, int]:
    assert solution.sequence is not None
    found = profile(problem, solution.sequence)
    return found.cost, found.peak


@pytest.mark.parametrize("layers", [1, 2, 7, 16])
def test_extremes_on_the_unit_chain(layers: int) -> None:
    problem = chain(layers)
    assert cost_and_peak(problem, solve("keep-all", problem)) == (2 * layers + 1, layers + 2)
    again = layers * (layers - 1) // 2
    assert cost_and_peak(problem, solve("last-node", problem)) == (2 * layers + 1 + again, 3)


@cache
def fewest_advances(states: int, slots: int) -> int:
    """Griewank and Walther's recurrence, by trying every split."""
    if states < 2:
        return 0
    if slots == 1:
        return states * (states - 1) // 2
    return min(m + fewest_advances(states - m, slots - 1) + fewest_advances(m, slots) for m in range(1, states))


@pytest.mark.parametrize("flagged", [True, False])
@pytest.mark.parametrize("layers", [1, 4, 9, 16, 33])
def test_griewank_makes_the_fewest_steps_for_its_slots(layers: int, flagged: bool) -> None:
    problem = chain(layers, flagged=flagged)
    for slots in range(1, layers + 1):
        sequence = with_slots(forward_pass(problem), slots)
        assert sequence is not None
        assert len(sequence) == fewest_advances(layers + 1, slots + 1) + layers + 1
        assert profile(problem, sequence).peak <= slots + 3


@pytest.mark.parametrize(("layers", "budget", "cost"), [(16, 8, 43), (8, 4, 26)])
def test_griewank_reaches_the_known_optima_of_the_unit_chain(layers: int, budget: int, cost: float) -> None:
    solution = solve("griewank", chain(layers), budget)
    assert solution.status is Status.FEASIBLE
    assert cost_and_peak(chain(layers), solution)[0] == cost


@pytest.mark.parametrize("strategy", ["chen-sqrt", "ap-sqrt", "linearized-sqrt"])
def test_sqrt_recomputes_each_segment_once_when_its_backward_begins(strategy: str) -> None:
    """Nine layers: checkpoints 2, 5 and 8."""
    expected = (*range(11), 6, 7, 11, 12, 13, 3, 4, 14, 15, 16, 0, 1, 17, 18)
    assert solve(strategy, chain(9)).sequence == expected


@pytest.mark.parametrize("strategy", sorted(set(BASELINES) - {"keep-all"}))
def test_what_the_backward_pass_does_not_need_is_computed_once_and_changes_nothing_else(strategy: str) -> None:
    """Each layer makes a statistic as well, and between the passes stand updates of those and a loss nobody reads."""
    layers = 9
    plain = chain(layers)
    specs = []
    for number, spec in enumerate(operation(number, []) for number in range(plain.count)):
        reads = tuple(f"v{plain.producer[value]}" for value in plain.inputs[number])
        made = (*spec.outputs, ValueSpec(f"s{number}", 0)) if number < layers else spec.outputs
        specs.append(replace(spec, inputs=reads, outputs=made, backward=plain.backward[number]))
    beside = [OperationSpec(f"update{number}", "op", (f"s{number}",), (ValueSpec(f"u{number}", 0),)) for number in range(layers)]
    beside.append(OperationSpec("loss", "op", (f"v{layers - 1}",), (ValueSpec("loss", 0),)))
    specs[layers:layers] = [replace(spec, work=Work(cost=1.0)) for spec in beside]
    problem = problem_of(specs, outputs=("loss", *(f"u{number}" for number in range(layers))))
    names = [problem.graph.operations[place].name for place in problem.graph_operation]
    for budget in (LARGEST_BYTES, 7, 6):
        found, wanted = solve(strategy, problem, problem.base + budget).sequence, solve(strategy, plain, budget).sequence
        assert found is not None
        assert wanted is not None
        assert [names[step] for step in found if names[step].startswith("o")] == [f"o{step}" for step in wanted]
        assert len(found) == len(wanted) + len(beside)


def test_pinned_operations_are_kept_instead_of_dropped() -> None:
    expected = (*range(11), 7, 11, 12, 13, 3, 4, 14, 15, 16, 0, 1, 17, 18)
    assert solve("chen-sqrt", chain(9, pinned=6)).sequence == expected
    assert solve("last-node", chain(9, pinned=6)).sequence[:15] == (*range(11), 7, 11, 12, 0)  # type: ignore[index]


def test_a_value_that_a_later_segment_reads_is_recomputed_there() -> None:
    sequence = solve("linearized-sqrt", chain(9, skips=((0, 7),))).sequence
    assert sequence is not None
    assert sequence[:13] == (0, 1, 2, 3, 4, 5, 6, 0, 7, 8, 9, 10, 0)


def test_each_output_of_an_operation_is_dropped_on_its_own() -> None:
    """The statistics of a normalization are read once more at the end; holding them must not hold its large output."""
    specs = [
        OperationSpec("norm", "op", (), (ValueSpec("y", 100), ValueSpec("stats", 1)), work=Work(cost=1.0)),
        *(operation(i, [i - 1] if i else [], size=10) for i in range(6)),
    ]
    specs[1] = replace(specs[1], inputs=("y",))
    specs.append(OperationSpec("back", "op", ("v5", "stats"), (ValueSpec("g", 1),), work=Work(cost=1.0), backward=True))
    problem = problem_of(specs, outputs=("stats",))
    solution = solve("last-node", problem)
    assert solution.sequence == tuple(range(8))
    assert profile(problem, solution.sequence).memory[3] == 3 + 1 + 10 + 10


def test_greedy_cuts_where_enough_was_made() -> None:
    """More than 25 bytes since the last checkpoint, its own included; only candidates count."""
    sizes = [10, 10, 10, 50, 5, 5, 10, 10]
    specs = [operation(number, [number - 1] if number else [], size=size) for number, size in enumerate(sizes)]
    specs.append(operation(8, [0, 7], backward=True))
    forward = forward_pass(problem_of(specs))
    assert by_bytes(forward, range(8), 25) == [2, 3, 7]
    assert by_bytes(forward, {0, 4, 5}, 25) == [4]


@pytest.mark.parametrize("strategy", ["chen-greedy", "ap-greedy", "linearized-greedy", "griewank"])
def test_sweeps_take_the_cheapest_that_fits(strategy: str) -> None:
    problem = chain(30)
    costs = []
    for budget in range(8, 33):
        solution = solve(strategy, problem, budget)
        cost, peak = cost_and_peak(problem, solution)
        assert (solution.status is Status.FEASIBLE) == (peak <= budget)
        if peak <= budget:
            costs.append(cost)
    assert len(costs) > 15
    assert costs == sorted(costs, reverse=True)
    assert costs[0] > 61
    assert costs[-1] == 61


def test_where_nothing_fits_a_sweep_gives_its_lowest_peak_and_says_so() -> None:
    problem = chain(30)
    solution = solve("chen-greedy", problem, 5)
    assert (solution.status, solution.stop) == (Status.UNKNOWN, Stop.FINISHED)
    assert cost_and_peak(problem, solution)[1] <= 12
    assert "exceeds the budget of 5 B" in solution.reason


@pytest.mark.parametrize("strategy", ["chen-sqrt", "chen-greedy", "griewank"])
def test_plain_forms_say_what_to_use_for_other_graphs(strategy: str) -> None:
    solution = solve(strategy, chain(6, skips=((1, 4),)))
    assert (solution.status, solution.sequence) == (Status.UNKNOWN, None)
    assert solution.reason.startswith("the forward pass is not a chain; use ")


def test_gives_up_when_recomputation_runs_out_of_hand() -> None:
    solution = solve("last-node", chain(2000))
    assert (solution.status, solution.sequence) == (Status.UNKNOWN, None)
    assert "recompute so often" in solution.reason


@pytest.mark.parametrize("strategy", ["linearized-greedy", "griewank"])
def test_sweeps_stop_with_the_best_so_far(strategy: str) -> None:
    timed_out = get_strategy(strategy)(chain(20), Settings(), Watch(time_limit=0.0))
    assert timed_out.stop is Stop.TIME_LIMIT
    assert timed_out.sequence is not None
    interrupted = get_strategy(strategy)(chain(20), Settings(), Watch(interrupted=lambda: True))
    assert interrupted.stop is Stop.INTERRUPTED


def test_forward_pass_is_inferred_where_the_file_is_silent() -> None:
    forward = forward_pass(chain(12, flagged=False))
    assert forward.operations == tuple(range(13))
    assert forward.is_chain


def test_backward_pass_returns_in_mirror_order() -> None:
    forward = forward_pass(chain(12))
    assert forward.returns == [24 - rank for rank in range(11)] + [12]


def test_a_late_reader_of_the_loss_does_not_move_the_backward_pass() -> None:
    problem = chain(30)
    specs = [operation(n, [problem.producer[v] for v in problem.inputs[n]], backward=problem.backward[n]) for n in range(problem.count)]
    specs.append(operation(61, [29, 60], backward=True))
    late = replace(problem_of(specs), base=0)
    _, peak = cost_and_peak(late, solve("chen-sqrt", late))
    assert peak <= cost_and_peak(problem, solve("chen-sqrt", problem))[1] + 4


def connected_parts(neighbours: list[list[int]], without: int) -> int:
    unseen = set(range(len(neighbours))) - {without}
    parts = 0
    while unseen:
        parts += 1
        pending = [unseen.pop()]
        while pending:
            for other in neighbours[pending.pop()]:
                if other in unseen:
                    unseen.discard(other)
                    pending.append(other)
    return parts


@pytest.mark.parametrize("seed", range(60))
def test_articulation_points_are_those_whose_removal_splits_the_graph(seed: int) -> None:
    rng = random.Random(seed)
    count = rng.randint(2, 14)
    around: list[set[int]] = [set() for _ in range(count)]
    for _ in range(rng.randint(0, 2 * count)):
        a, b = rng.sample(range(count), 2)
        around[a].add(b)
        around[b].add(a)
    neighbours = [sorted(others) for others in around]
    whole = connected_parts(neighbours, -1)
    splitting = {node for node in range(count) if connected_parts(neighbours, node) > whole}
    assert articulation_points(neighbours) == sorted(splitting | {0, count - 1})


def test_articulation_points_of_a_long_chain_need_no_recursion() -> None:
    count = 10_000
    neighbours = [[other for other in (node - 1, node + 1) if 0 <= other < count] for node in range(count)]
    assert articulation_points(neighbours) == list(range(count))


def test_candidates_are_counted_off_as_in_the_papers_code() -> None:
    """The articulation points of U-Net, as a Python set holds them."""
    assert in_hash_order([0, 1, 2, 28, 29, 30, 31, 32, 33, 34]) == [0, 1, 2, 32, 33, 34, 28, 29, 30, 31]
    assert in_hash_order(range(300)) == list(range(300))


def random_problem(rng: random.Random) -> Problem:
    """Several outputs, some empty; workspace, pinned operations, graph outputs, views, chains, with and without backward marks."""
    count = rng.randint(1, 25)
    linear = rng.random() < 0.4
    turn = rng.choice([0, count // 2, count // 2, count])
    specs: list[OperationSpec] = []
    names: list[str] = []
    for number in range(count):
        window = names[-rng.choice([2, 4, 30]) :]
        inputs = tuple(rng.sample(window, min(len(window), rng.randint(0, 3))))
        if linear and number <= turn:
            inputs = tuple(value.name for value in specs[-1].outputs) if specs else ()
        if inputs and rng.random() < 0.1:
            made = (ValueSpec(f"v{number}", 0, alias_of=inputs[0]),)
            specs.append(OperationSpec(f"o{number}", "view", inputs[:1], made, view=True))
        else:
            made = tuple(
                ValueSpec(f"v{number}_{k}", rng.choice([0, 1, 5, 20])) for k in range(rng.choice([0, 1, 1, 1, 1, 2, 3]) or int(linear))
            )
            workspace, work = rng.choice([0, 0, 7]), Work(cost=float(rng.randint(0, 5)))
            backward, pinned = number >= turn > 0, rng.random() < 0.1
            specs.append(OperationSpec(f"o{number}", "op", inputs, made, workspace, work, backward=backward, pinned=pinned))
        names.extend(value.name for value in made)
    outputs = tuple(name for name in names if rng.random() < 0.15)
    graph = assemble("random", specs, outputs, {"parameters": 3})
    problem = build_problem(graph, given_costs(graph), reserve=rng.choice([0, 2]))
    return problem.with_budget(int(rng.uniform(0.3, 1.1) * profile(problem, range(problem.count)).peak))


@pytest.mark.parametrize("strategy", BASELINES)
def test_every_schedule_is_proved_on_random_graphs(strategy: str) -> None:
    rng = random.Random(7)
    proved = 0
    for _ in range(250):
        problem = random_problem(rng)
        outcome = run_strategy(problem, strategy, Settings(), Watch())
        if outcome.sequence is None:
            assert "not a chain" in outcome.reason
            continue
        proved += 1
        assert (outcome.status in (Status.FEASIBLE, Status.OPTIMAL)) == outcome.fits
        assert bool(outcome.reason) != outcome.fits
        assert list(dict.fromkeys(outcome.sequence)) == list(range(problem.count))
    assert proved > 50
