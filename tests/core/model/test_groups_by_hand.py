"""Which operations are one group, by hand: each rule at its border."""

from __future__ import annotations

from dataclasses import replace

import pytest

from checkmate.core.model.costs import given_costs
from checkmate.core.model.floors import feasibility_floor
from checkmate.core.model.graph import OperationSpec, ValueSpec, Work, assemble
from checkmate.core.model.problem import Problem, build_problem
from checkmate.core.model.transforms.group import group_operations, small_below
from checkmate.core.params import PARAMS


def op(name: str, inputs: str, workspace: int = 0, *, pinned: bool = False, **outputs: int) -> OperationSpec:
    made = tuple(ValueSpec(value, size) for value, size in outputs.items())
    return OperationSpec(name, "Op", tuple(inputs.split()), made, workspace=workspace, work=Work(cost=1.0), pinned=pinned)


def problem_of(*specs: OperationSpec, outputs: tuple[str, ...] = (), budget: int = 10**6) -> Problem:
    graph = assemble("hand", specs, outputs, {})
    return build_problem(graph, given_costs(graph), budget=budget)


def groups(problem: Problem, small: float = 10) -> list[str]:
    members = group_operations(problem, small).members
    return ["".join(problem.operation_name(operation) for operation in run) for run in members]


END = "p"


def end(inputs: str) -> OperationSpec:
    """Pinned operations are in no group, so what one reads is read from outside."""
    return op(END, inputs, pinned=True, p=1)


def test_a_group_hands_on_one_large_value() -> None:
    assert groups(problem_of(op("a", "", a=9), op("b", "a", b=100), end("a b"))) == ["ab", "p"]
    assert groups(problem_of(op("a", "", a=10), op("b", "a", b=100), end("a b"))) == ["a", "b", "p"]
    assert groups(problem_of(op("a", "", a=10), op("b", "a", b=100), end("b"))) == ["ab", "p"]
    assert groups(problem_of(op("a", "", a=10), op("b", "a", b=9), op("c", "a b", c=9), end("c"))) == ["abc", "p"]


def test_a_graph_output_is_handed_on() -> None:
    assert groups(problem_of(op("a", "", a=10), op("b", "a", b=100), end("b"), outputs=("a",))) == ["a", "b", "p"]
    assert groups(problem_of(op("a", "", a=10, other=10), op("b", "a", b=100), end("b"), outputs=("other",))) == ["a", "b", "p"]


def test_a_value_that_nobody_reads_does_not_matter() -> None:
    assert groups(problem_of(op("a", "", a=10, other=10), op("b", "a", b=100), end("b"))) == ["ab", "p"]


def test_pinned_operations_are_alone() -> None:
    assert groups(problem_of(end(""), op("a", "p", a=10), op("b", "a", b=10))) == ["p", "ab"]


def test_all_but_the_last_are_read_within_the_group() -> None:
    assert groups(problem_of(op("a", "", a=1), op("b", "", b=1), end("a b"))) == ["a", "b", "p"]
    assert groups(problem_of(op("a", "", a=1), op("b", "", b=1), op("c", "a b", c=1), end("c"))) == ["abc", "p"]
    assert groups(problem_of(op("x", "", x=1), op("a", "x", a=1), op("b", "x", b=1), end("a b"))) == ["xa", "b", "p"]


def test_groups_are_not_endless() -> None:
    names = [f"v{index}" for index in range(PARAMS.group_longest + 2)]
    chain = [op(name, names[index - 1] if index else "", **{name: 100}) for index, name in enumerate(names)]
    assert [len(run) for run in group_operations(problem_of(*chain), 10).members] == [PARAMS.group_longest, 2]


@pytest.mark.parametrize(
    ("extra", "budget", "grouped"),
    [(8, 520, True), (8, 519, False), (0, 204, True), (1, 204, False)],
    ids=["0.4 of the memory", "more than 0.4", "as much as a member", "more than that"],
)
def test_a_group_takes_little_more_than_its_members(extra: int, budget: int, grouped: bool) -> None:
    """Together 200 + extra bytes; `b` alone takes 200."""
    problem = problem_of(op("a", "", a=100, extra=extra), op("b", "a", b=100), end("extra b"), budget=budget)
    assert groups(problem) == (["ab", "p"] if grouped else ["a", "b", "p"])


def test_what_is_used_within_a_group_goes_after_its_last_use() -> None:
    """At most two of three values are in memory, as many as one member needs."""
    chain = (op("a", "", a=100), op("b", "a", b=100), op("c", "b", c=100), end("c"))
    assert groups(problem_of(*chain, budget=1)) == ["abc", "p"]
    assert groups(problem_of(*chain, outputs=("a",), budget=1), small=1000) == ["ab", "c", "p"]


def test_what_a_group_reads_and_exports_counts_too() -> None:
    """`x` is read from outside, `t` and `b` are exported: 254 bytes with `a`, where 250 are the most of a member."""
    specs = (op("x", "", pinned=True, x=50), op("a", "x", a=100, t=4), op("b", "a x", b=100), end("t b"))
    assert groups(problem_of(*specs, budget=635)) == ["x", "ab", "p"]
    assert groups(problem_of(*specs, budget=634)) == ["x", "a", "b", "p"]


def test_the_smaller_problem_by_hand() -> None:
    problem = problem_of(op("x", "", pinned=True, x=50), op("a", "x", 7, a=100, t=4), op("b", "a x", 30, b=60), end("t b"), outputs=("b",))
    grouped = group_operations(problem, 10)
    smaller = grouped.problem
    assert [smaller.value_name(value) for value in range(len(smaller.size))] == ["x", "t", "b", "p"][: len(smaller.size)]
    assert smaller.size[:3] == (50, 4, 60)
    assert smaller.inputs == ((), (0,), (1, 2))
    assert smaller.outputs[1] == (1, 2)
    assert smaller.cost == (1, 2, 1)
    assert smaller.kept[:3] == (False, False, True)
    assert smaller.consumers[:3] == ((1,), (2,), (2,))
    assert smaller.workspace == (0, 100 + 30, 1)
    assert grouped.main == (0, 2, 3)
    assert smaller.pinned == (True, False, True)


def test_a_group_holds_what_it_reads_and_no_more() -> None:
    problem = problem_of(op("x", "", x=50), op("a", "x", a=1), op("b", "a", 20, b=5), op("c", "b", c=1))
    group = group_operations(problem, 100)
    assert [list(run) for run in group.members] == [[0, 1, 2, 3]]
    assert group.problem.workspace == (51,)


def test_small_is_a_share_of_the_memory_and_of_what_is_left() -> None:
    """Sizes 1, 1, 2, 9 and 1000: those up to 2 are 4 bytes together."""
    problem = problem_of(op("a", "", a=1), op("b", "a", b=2), op("c", "b", c=9), op("d", "c", d=1000), end("d"), budget=30_000)
    floor = feasibility_floor(problem).bytes
    assert floor == 1009
    assert small_below(problem) == 9 == PARAMS.small * 30_000
    assert small_below(replace(problem, budget=40_000)) == 1000
    assert small_below(replace(problem, budget=10**8)) == PARAMS.small * 10**8
    large = problem_of(op("a", "", a=1), op("b", "a", b=2), op("c", "b", c=9), op("d", "c", d=10**6), end("d"), budget=10**6 + 9 + 14)
    assert feasibility_floor(large).bytes == 10**6 + 9
    assert PARAMS.small_together * 13 < 4 < PARAMS.small_together * 14
    assert small_below(large) == 9
    assert small_below(replace(large, budget=large.budget - 1)) == 2
