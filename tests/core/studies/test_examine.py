"""What reports, explanations and differences rest on: who is in memory when, what dropping a tensor buys, how a search went."""

from __future__ import annotations

import itertools
import random

import pytest
from random_graphs import random_graph

from checkmate.core.events import Event, Watch
from checkmate.core.history import LONGEST, History
from checkmate.core.model.costs import given_costs, unit_costs
from checkmate.core.model.graph import Graph, OperationSpec, ValueSpec, assemble
from checkmate.core.model.memory_model import MemoryModel
from checkmate.core.model.problem import build_problem
from checkmate.core.schedule.schedule import expand
from checkmate.core.studies.difference import difference
from checkmate.core.studies.examine import Examined, examine
from checkmate.core.studies.explanation import Role, explain_peak, largest_dropped, recomputations, what_it_buys


def looked_at(
    graph: Graph, sequence: list[int], *, budget: int = 10**6, reserve: int = 0, memory_model: MemoryModel = MemoryModel.GENERIC
) -> Examined:
    costs = given_costs(graph)
    schedule = expand(build_problem(graph, costs), sequence)
    return examine(graph, costs, schedule, budget=budget, reserve=reserve, memory_model=memory_model)


def with_repeats(rng: random.Random, count: int) -> list[int]:
    repeated = ([*sorted(rng.sample(range(first), rng.randint(0, first) // 2)), first] for first in range(count))
    return [operation for part in repeated for operation in part]


def random_look(seed: int) -> Examined:
    rng = random.Random(seed)
    graph = random_graph(seed, most=12)
    count = sum(not operation.view for operation in graph.operations)
    return looked_at(graph, with_repeats(rng, count), reserve=rng.randint(0, 9))


def overwriting() -> Graph:
    """`make` is written over by `relu` and that by `scale`, unless somebody still needs them."""
    specs = [
        OperationSpec("make", "Op", (), (ValueSpec("a", 100),)),
        OperationSpec("relu", "Relu", ("a",), (ValueSpec("b", 100),), in_place=(("a", "b"),)),
        OperationSpec("scale", "Mul", ("b",), (ValueSpec("c", 100),), in_place=(("b", "c"),)),
        OperationSpec("sum", "Op", ("c", "a"), (ValueSpec("d", 1),), workspace=7),
    ]
    return assemble("overwriting", specs, ["d"], {"parameters": 5})


def stays_add_up(examined: Examined) -> None:
    operations = examined.graph.operations
    for now, (taken, operation) in enumerate(zip(examined.simulation.memory, examined.computations, strict=True)):
        there = [stay for stay in examined.simulation.stays if stay.first <= now < stay.end]
        assert taken == examined.problem.base + operations[operation].workspace + sum(stay.bytes for stay in there)
        assert len({stay.value for stay in there}) == len(there)


@pytest.mark.parametrize("seed", range(60))
def test_stays_add_up_to_the_memory_of_every_computation(seed: int) -> None:
    stays_add_up(random_look(seed))


@pytest.mark.parametrize(
    ("sequence", "stays"),
    [
        ([0, 1, 2, 3], ["a 0 4", "b 1 2", "c 2 4", "d 3 4"]),
        ([0, 1, 0, 2, 3], ["a 0 1", "b 1 3", "a 2 5", "c 3 5", "d 4 5"]),
        ([0, 1, 2, 0, 3], ["a 0 1", "b 1 2", "c 2 5", "a 3 5", "d 4 5"]),
    ],
)
def test_what_is_written_over_another_value_takes_its_place(sequence: list[int], stays: list[str]) -> None:
    graph = overwriting()
    costs = unit_costs(graph)
    schedule = expand(build_problem(graph, costs), sequence)
    examined = examine(graph, costs, schedule, budget=10**6, reserve=3, memory_model=MemoryModel.ONNXRUNTIME)
    stays_add_up(examined)
    assert [f"{graph.values[stay.value].name} {stay.first} {stay.end}" for stay in examined.simulation.stays] == stays


@pytest.mark.parametrize("seed", range(60))
def test_the_parts_of_the_peak_add_up(seed: int) -> None:
    examined = random_look(seed)
    peak = explain_peak(examined)
    assert peak.bytes == max(examined.simulation.memory)
    assert peak.bytes == peak.fixed + peak.reserve + peak.workspace + sum(holding.bytes for holding in peak.holdings)
    outputs = set(examined.graph.outputs)
    owners = {examined.graph.values[value].alias_of for value in outputs} | outputs
    for holding in peak.holdings:
        if holding.role is Role.HELD and holding.reader is None:
            assert holding.value in owners or any(op.view and holding.value in op.inputs for op in examined.graph.operations)


def test_a_value_waits_for_the_operation_that_writes_over_it() -> None:
    specs = [
        OperationSpec("make", "Op", (), (ValueSpec("a", 10),)),
        OperationSpec("big", "Op", (), (ValueSpec("b", 50),)),
        OperationSpec("relu", "Relu", ("a",), (ValueSpec("c", 10),), in_place=(("a", "c"),)),
        OperationSpec("sum", "Op", ("c",), (ValueSpec("d", 1),)),
    ]
    graph = assemble("waiting", specs, ["d"], {})
    costs = unit_costs(graph)
    schedule = expand(build_problem(graph, costs), range(4))
    peak = explain_peak(examine(graph, costs, schedule, budget=100, memory_model=MemoryModel.ONNXRUNTIME))
    assert graph.operations[peak.operation].name == "big"
    held = next(holding for holding in peak.holdings if holding.role is Role.HELD)
    assert (graph.values[held.value].name, graph.operations[held.reader or 0].name) == ("a", "relu")


def chain_with_late_reads() -> Graph:
    """a -> b -> c -> d -> e; the end reads a and b again, c is large."""
    specs = [
        OperationSpec("a", "Op", (), (ValueSpec("a", 40),)),
        OperationSpec("b", "Op", ("a",), (ValueSpec("b", 30),)),
        OperationSpec("c", "Op", ("b",), (ValueSpec("c", 60),)),
        OperationSpec("d", "Op", ("c",), (ValueSpec("d", 1),)),
        OperationSpec("e", "Op", ("d", "a", "b"), (ValueSpec("e", 1),)),
    ]
    return assemble("late", specs, ["e"], {})


def test_what_each_recomputation_buys_by_hand() -> None:
    """a and b are recomputed before e; c peaks at 90 with b there. Keeping b costs nothing then; keeping a takes 130, 30 too many."""
    graph = chain_with_late_reads()
    costs = unit_costs(graph)
    schedule = expand(build_problem(graph, costs), [0, 1, 2, 3, 0, 1, 4])
    examined = examine(graph, costs, schedule, budget=100)
    assert examined.simulation.peak_bytes == 90
    entries = recomputations(examined)
    assert [(graph.operations[entry.operation].name, entry.repeats, entry.cost, entry.bytes) for entry in entries] == [
        ("a", 1, 1.0, 40),
        ("b", 1, 1.0, 30),
    ]
    assert [entry.absent for entry in entries] == [2, 2]
    a, b = (what_it_buys(examined, entry) for entry in largest_dropped(entries))
    assert (a.peak_if_kept, a.saved_bytes, a.saved_against_budget, a.cost_if_kept) == (130, 40, 30, 6.0)
    assert (b.peak_if_kept, b.saved_against_budget, b.cost_if_kept) == (91, 0, 6.0)


@pytest.mark.parametrize("seed", range(30))
def test_as_few_operations_are_moved_as_possible(seed: int) -> None:
    """Against all subsets: the operations that stay are a longest common subsequence."""
    rng = random.Random(seed)
    count = rng.randint(1, 7)
    graph = assemble("loose", [OperationSpec(f"op{index}", "Op", (), (ValueSpec(f"v{index}", 1),)) for index in range(count)], [], {})
    costs = unit_costs(graph)
    orders = [rng.sample(range(count), count) for _ in range(2)]
    first, second = (examine(graph, costs, expand(build_problem(graph, costs), order), budget=99) for order in orders)

    def common(kept: tuple[int, ...]) -> bool:
        return [operation for operation in orders[0] if operation in kept] == [operation for operation in orders[1] if operation in kept]

    longest = max(size for size in range(count + 1) for kept in itertools.combinations(range(count), size) if common(kept))
    moved = difference(first, second).moved
    assert len(moved) == count - longest
    assert common(tuple(set(range(count)) - set(moved)))


def test_a_schedule_does_not_differ_from_itself() -> None:
    for seed in range(10):
        examined = random_look(seed)
        found = difference(examined, examined)
        assert (found.repeats, found.moved, found.memory, found.same_steps) == ((), (), (), True)


def told(history: History, *events: Event) -> None:
    for event in events:
        history.on_event(event)


def test_history_keeps_what_changed_and_passes_everything_on() -> None:
    heard: list[Event] = []
    history = History(heard.append)
    history.watch = Watch()
    events = [Event("look"), Event("look", 9.0, 2.0), Event("look", 11.0), Event("look", float("inf")), Event("prove", bound=3.0)]
    told(history, *events)
    assert heard == events
    moments = history.concluded(1.5, 9.0, 3.5)
    assert [(moment.incumbent, moment.bound, moment.phase) for moment in moments] == [
        (None, None, "look"),
        (9.0, 2.0, "look"),
        (9.0, 3.0, "prove"),
        (9.0, 3.5, "end"),
    ]


def test_history_stays_short_and_keeps_the_news() -> None:
    history = History()
    for number in range(3000):
        told(history, Event(f"phase {number}"), Event("improve", 3000.0 - number if number % 50 == 0 else None))
    moments = history.concluded(1.0, 50.0, 0.0)
    assert len(moments) <= LONGEST + 1
    assert moments[-2].incumbent == 50.0
    figures = [moment.incumbent for moment in moments if moment.incumbent is not None]
    assert figures == sorted(figures, reverse=True)
    assert len(set(figures)) > 20


def test_history_forgets_what_came_before_the_clock_was_set_back() -> None:
    history = History()
    history.watch.started -= 100.0
    told(history, Event("loading"))
    history.watch.restart()
    told(history, Event("search", 5.0))
    assert [moment.phase for moment in history.concluded(1.0, 5.0, 1.0)] == ["search", "end"]
