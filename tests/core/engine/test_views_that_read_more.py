"""Views that read more than the buffer they share: a reader of the view does not read the rest again (a computed shape)."""

from __future__ import annotations

import pytest

from checkmate.core.engine.run import run_strategy
from checkmate.core.events import Watch
from checkmate.core.model.costs import unit_costs
from checkmate.core.model.graph import Graph, OperationSpec, ValueSpec, assemble
from checkmate.core.model.problem import build_problem
from checkmate.core.result import Status
from checkmate.core.settings import Order, Settings


def graph() -> Graph:
    specs = [
        OperationSpec("x", "Op", (), (ValueSpec("x", 12),), workspace=8),
        OperationSpec("a", "Op", ("x",), (ValueSpec("a", 20),)),
        OperationSpec("o2", "Op", ("x",), (ValueSpec("o2", 7),)),
        OperationSpec("o3", "View", ("x", "o2"), (ValueSpec("o3", 0, "x"),), view=True),
        OperationSpec("b4", "View", ("a", "o2"), (ValueSpec("b4", 0, "a"),), view=True),
        OperationSpec("b5", "Op", ("b4", "x", "o3"), (ValueSpec("b5", 10),), workspace=1),
    ]
    return assemble("views", specs, ("b4", "b5"), {"parameters": 13})


@pytest.mark.parametrize("order", Order)
@pytest.mark.parametrize("strategy", ["auto", "optimal"])
def test_a_budget_that_works_is_not_refused(order: Order, strategy: str) -> None:
    """While b5 runs, x, a, b5 and its workspace are there, and o2 is not: 12 + 20 + 10 + 1 + 13."""
    found = graph()
    problem = build_problem(found, unit_costs(found), budget=56)
    result = run_strategy(problem, strategy, Settings(order=order), Watch(60))
    assert result.status is not Status.INFEASIBLE
    if strategy == "auto":
        assert result.fits
        assert result.peak_bytes == 56


def test_below_that_nothing_fits() -> None:
    found = graph()
    problem = build_problem(found, unit_costs(found), budget=55)
    assert run_strategy(problem, "auto", Settings(order=Order.SEARCH), Watch(60)).status is Status.INFEASIBLE
