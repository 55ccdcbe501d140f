"""From what a program computes in each stage to sequences that can run."""

from __future__ import annotations

from checkmate.core.engine.replaying import replays
from checkmate.core.model.costs import unit_costs
from checkmate.core.model.graph import OperationSpec, ValueSpec, assemble
from checkmate.core.model.problem import build_problem


def test_what_a_breakpoint_reads_comes_before_it() -> None:
    """A program does not say when a value without bytes is made, and may put it into the stage of the breakpoint that reads it."""
    specs = [
        OperationSpec("x", "Op", (), (ValueSpec("x", 12),)),
        OperationSpec("empty", "Op", ("x",), (ValueSpec("empty", 0),)),
        OperationSpec("y", "Op", ("empty",), (ValueSpec("y", 4),)),
        OperationSpec("z", "Op", ("y", "x"), (ValueSpec("z", 4),)),
    ]
    graph = assemble("empty value", specs, ("z",), {})
    problem = build_problem(graph, unit_costs(graph))
    for sequence in replays(problem, [2], [[0], [0, 1, 2, 3]]):
        assert sequence.index(1) < sequence.index(2) < sequence.index(3)
