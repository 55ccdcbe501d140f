"""The digest of a graph changes exactly with what a schedule depends on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from checkmate.core.model.digest import graph_digest
from checkmate.core.model.graph import Graph, OperationSpec, ValueSpec, Work, assemble, pin


def graph(**first: object) -> Graph:
    specs = [
        replace(OperationSpec("a", "Conv", (), (ValueSpec("x", 4),), 8, Work(1.0)), **first),  # type: ignore[arg-type]
        OperationSpec("b", "Reshape", ("x",), (ValueSpec("y", 0, "x"),), view=True),
        OperationSpec("c", "Add", ("y",), (ValueSpec("z", 4),)),
    ]
    return assemble("name", specs, ["z"], {"inputs": 1, "parameters": 2})


def test_the_digest_stays_the_same_across_versions() -> None:
    assert graph_digest(graph()) == "sha256:93ac358309e5fe938098dbffe98d220b7961ada8a81b31cd45443b0bb760ecc3"


@pytest.mark.parametrize(
    "same",
    [
        lambda g: replace(g, name="other"),
        lambda g: replace(g, fixed={"parameters": 2, "inputs": 1}),
        lambda g: pin(g, lambda name: name == "c"),
        lambda g: graph(work=Work(2.0, 3.0, 4)),
    ],
)
def test_names_costs_and_pins_do_not_matter(same: Callable[[Graph], Graph]) -> None:
    assert graph_digest(same(graph())) == graph_digest(graph())


@pytest.mark.parametrize(
    "other",
    [
        graph(name="d"),
        graph(kind="Gemm"),
        graph(workspace=9),
        graph(backward=True),
        graph(outputs=(ValueSpec("x", 5),)),
        graph(outputs=(ValueSpec("x", 4), ValueSpec("w", 0))),
        replace(graph(), outputs=()),
        replace(graph(), fixed={"inputs": 3}),
    ],
)
def test_what_a_schedule_depends_on_matters(other: Graph) -> None:
    assert graph_digest(other) != graph_digest(graph())
