"""What every loader relies on: checks, order and numbering."""

from __future__ import annotations

import math

import pytest

from checkmate.core.errors import InputError
from checkmate.core.model.graph import Graph, OperationSpec, ValueSpec, Work, assemble, pin


def op(name: str, *inputs: str, size: int = 1, cost: float | None = 1.0, workspace: int = 0) -> OperationSpec:
    return OperationSpec(name, "Op", inputs, (ValueSpec(name, size),), workspace, Work(cost=cost))


def build(*specs: OperationSpec, outputs: tuple[str, ...] = (), fixed: dict[str, int] | None = None) -> Graph:
    return assemble("test", specs, outputs, fixed or {})


def test_an_order_that_is_topological_is_kept() -> None:
    graph = build(op("a"), op("c", "a"), op("b", "a"), op("d", "b", "c"))
    assert [operation.name for operation in graph.operations] == ["a", "c", "b", "d"]


def test_operations_in_any_order_are_sorted() -> None:
    graph = build(op("d", "b", "c"), op("c", "a"), op("b", "a"), op("a"))
    assert [operation.name for operation in graph.operations] == ["a", "c", "b", "d"]
    assert graph.operations[3].inputs == (2, 1)


def test_an_input_read_twice_counts_once() -> None:
    assert build(op("a"), op("b", "a", "a")).operations[1].inputs == (0,)


@pytest.mark.parametrize(
    ("specs", "message"),
    [
        ([], "no operations"),
        ([op("a", "c"), op("b", "a"), op("c", "b")], "cycle: 'a' -> 'b' -> 'c' -> 'a'"),
        ([op("a", "a")], "cycle: 'a' -> 'a'"),
        ([op("a", "ghost")], "'a' reads 'ghost', which no operation makes"),
        ([op("a"), op("a")], "operation 'a' is defined twice"),
        ([op("a"), OperationSpec("b", "Op", (), (ValueSpec("a", 1),))], "value 'a' is made twice, by 'a' and by 'b'"),
        ([op("a", size=-1)], "size of value 'a' .* is negative"),
        ([op("a", size=10**30)], "larger than any memory"),
        ([op("a", size=10**5000)], "more than 1e40"),
        ([op("a", workspace=-5)], "workspace of operation 'a' is negative"),
        ([op("a", cost=math.nan)], "cost of operation 'a' is not a finite number"),
        ([op("a", cost=-1.0)], "cost of operation 'a' is negative"),
        ([op("a", cost=1e40)], "larger than 1e30"),
    ],
)
def test_what_is_wrong_is_named(specs: list[OperationSpec], message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        build(*specs)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300


def test_an_output_nobody_makes_is_named() -> None:
    with pytest.raises(InputError, match="no operation makes the graph output 'ghost'"):
        build(op("a"), outputs=("ghost",))


def test_negative_fixed_memory_is_named() -> None:
    with pytest.raises(InputError, match="fixed memory 'parameters' is negative"):
        build(op("a"), fixed={"parameters": -1})


@pytest.mark.parametrize(
    ("view", "message"),
    [
        (OperationSpec("v", "View", ("a",), (ValueSpec("v", 0, "a"), ValueSpec("w", 3)), view=True), "'w' has bytes"),
        (OperationSpec("v", "View", ("a",), (ValueSpec("v", 0, "b"),), view=True), "alias of 'b', which is not an input"),
        (OperationSpec("v", "View", ("a",), (ValueSpec("v", 0, "a"),)), "is not a view"),
        (OperationSpec("v", "View", ("a",), (ValueSpec("v", 0, "a"),), view=True, workspace=1), "cannot have a cost or a workspace"),
    ],
)
def test_a_view_only_shares(view: OperationSpec, message: str) -> None:
    with pytest.raises(InputError, match=message):
        build(op("a"), op("b"), view)


def test_a_long_chain_is_sorted_without_recursion() -> None:
    specs = [op("0")] + [op(str(index), str(index - 1)) for index in range(1, 20_000)]
    graph = build(*reversed(specs))
    assert graph.operations[-1].name == "19999"


def test_pinning_spares_views() -> None:
    view = OperationSpec("v", "View", ("a",), (ValueSpec("v", 0, "a"),), view=True)
    pinned = pin(build(op("a"), view, op("b", "v")), lambda name: name in "av")
    assert [operation.pinned for operation in pinned.operations] == [True, False, False]
