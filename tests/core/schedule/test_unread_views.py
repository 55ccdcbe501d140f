"""Views that nobody reads run too, once all they read is there."""

from __future__ import annotations

from checkmate.core.model.costs import unit_costs
from checkmate.core.model.graph import OperationSpec, ValueSpec, assemble
from checkmate.core.model.problem import build_problem
from checkmate.core.schedule.certify import certify


def test_an_unread_view_of_an_unread_view_waits_for_its_other_input() -> None:
    specs = [
        OperationSpec("a", "Op", (), (ValueSpec("a", 1),)),
        OperationSpec("b", "Op", (), (ValueSpec("b", 1),)),
        OperationSpec("first", "Reshape", ("a",), (ValueSpec("first", 0, "a"),), view=True),
        OperationSpec("second", "Reshape", ("first", "b"), (ValueSpec("second", 0, "first"),), view=True),
        OperationSpec("constant", "Reshape", (), (ValueSpec("constant", 0),), view=True),
    ]
    graph = assemble("views", specs, [], {})
    schedule, _ = certify(build_problem(graph, unit_costs(graph)), (0, 1))
    assert [graph.operations[index].name for index in schedule.computations] == ["constant", "a", "first", "b", "second"]
