"""From what a program computes in each stage to sequences that can run."""

from __future__ import annotations

from checkmate.core.engine.replaying import replays
from checkmate.core.model.costs import unit_costs
from checkmate.core.model.graph import OperationSpec, ValueSpec, assemble
from checkmate.core.model.problem import build_problem
from checkmate.core.schedule.sequence import candidate


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


def test_a_chain_that_is_recomputed_at_once_is_thinned() -> None:
    """All of a residual stream is recomputed after the breakpoint and waits for its readers: with some kept, the rest can come late."""
    layers = 64
    specs = [OperationSpec("r0", "Op", (), (ValueSpec("r0", 4),))]
    specs += [OperationSpec(f"r{number}", "Op", (f"r{number - 1}",), (ValueSpec(f"r{number}", 4),)) for number in range(1, layers)]
    specs.append(OperationSpec("g", "Op", (f"r{layers - 1}",), (ValueSpec(f"g{layers}", 4),)))
    specs += [
        OperationSpec(f"b{number}", "Op", (f"r{number}", f"g{number + 1}"), (ValueSpec(f"g{number}", 4),))
        for number in reversed(range(layers))
    ]
    graph = assemble("residual stream", specs, ("g0",), {})
    problem = build_problem(graph, unit_costs(graph), budget=120)
    everything = list(range(problem.count))
    made = replays(problem, [layers], [everything[:layers], everything])
    complete, late, thin = (candidate(problem, sequence) for sequence in made)
    assert thin.peak < late.peak <= complete.peak
    assert thin.cost <= late.cost
    assert set(thin.sequence) == set(everything)


def test_an_output_that_rounding_left_out_is_made() -> None:
    specs = [OperationSpec("x", "Op", (), (ValueSpec("x", 1),)), OperationSpec("y", "Op", ("x",), (ValueSpec("y", 1),))]
    graph = assemble("outputs", specs, ("x", "y"), {})
    for sequence in replays(build_problem(graph, unit_costs(graph)), [0], [[], [0]]):
        assert sequence == (0, 1)
