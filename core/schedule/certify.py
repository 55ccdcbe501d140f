"""Certify a sequence: expand, simulate, verify."""

from __future__ import annotations

from collections.abc import Callable

from ..errors import VerificationError
from ..events import Event, Watch
from ..model.problem import Problem
from .schedule import Schedule, expand
from .simulate import Simulation, simulate
from .verify import Claim, verify


def certify(
    problem: Problem, sequence: tuple[int, ...], on_event: Callable[[Event], None] = lambda event: None
) -> tuple[Schedule, Simulation]:
    """Expand and simulate a sequence; the independent verifier must agree on every number."""
    clock = Watch()
    schedule = expand(problem, sequence)
    reserve = problem.base - problem.graph.fixed_bytes
    simulation = simulate(problem.graph, problem.costs, schedule, reserve=reserve, memory_model=problem.memory_model)
    on_event(Event("", message=f"simulated in {clock.elapsed:.3f} s"))
    clock.restart()
    claim = Claim(peak_bytes=simulation.peak_bytes, cost=simulation.cost)
    if simulation.peak_bytes <= problem.budget:
        claim = Claim(problem.budget, simulation.peak_bytes, simulation.cost)
    verdict = verify(problem.graph, problem.costs.amounts, schedule, claim, reserve=reserve, memory_model=problem.memory_model)
    on_event(Event("", message=f"verified in {clock.elapsed:.3f} s"))
    if not verdict.passed:
        raise VerificationError(
            f"the schedule failed verification: {verdict.violations[0]}; this is a bug in checkmate, please report it; nothing was written"
        )
    return schedule, simulation
