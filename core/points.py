"""One run of a strategy under one budget, as a finding of a curve."""

from __future__ import annotations

from dataclasses import replace

from .certify import Certified, certify, run_strategy
from .curve import Finding
from .errors import VerificationError
from .events import Watch
from .problem import Problem
from .result import Status, Stop
from .settings import Settings
from .strategies import HEURISTICS

BEST_HEURISTIC = "best-heuristic"
"""Stands for whichever of the paper's baselines is cheapest under the budget."""


def solve_point(problem: Problem, strategy: str, settings: Settings, watch: Watch) -> Finding:
    """Run one strategy, or all heuristics, under the problem's budget; the schedule is certified."""
    if strategy != BEST_HEURISTIC:
        return finding_of(problem, run_strategy(problem, strategy, settings, watch))
    fitting: list[Finding] = []
    stop = Stop.FINISHED
    seconds = 0.0
    for name in HEURISTICS:
        if watch.expired:
            stop = Stop.INTERRUPTED if watch.interrupted() else Stop.TIME_LIMIT
            break
        found = finding_of(problem, run_strategy(problem, name, settings, watch.part(watch.remaining)))
        seconds += found.seconds
        if found.sequence is not None and found.peak <= problem.budget:
            fitting.append(found)
    if not fitting:
        return Finding(problem.budget, Status.UNKNOWN, stop, seconds=seconds, reason="no heuristic fits")
    return replace(min(fitting, key=lambda found: found.cost), stop=stop, seconds=seconds)


def finding_of(problem: Problem, certified: Certified) -> Finding:
    """What a certified run says, in the terms of a curve."""
    solution = certified.solution
    bound = max(solution.bound or 0.0, problem.ideal_cost)
    scope = "any" if bound <= problem.ideal_cost else solution.bound_scope
    found_by = str(solution.provenance.get("found_by", certified.strategy))
    simulation = certified.simulation
    if solution.sequence is None or simulation is None:
        return Finding(
            problem.budget,
            solution.status,
            solution.stop,
            bound=bound,
            bound_scope=scope,
            seconds=certified.seconds,
            reason=solution.reason,
        )
    return Finding(
        problem.budget,
        solution.status,
        solution.stop,
        solution.sequence,
        simulation.cost,
        simulation.peak_bytes,
        simulation.recomputed,
        bound,
        scope,
        certified.seconds,
        found_by,
        solution.reason,
    )


def recertified(problem: Problem, finding: Finding) -> Finding:
    """The same finding with its figures made anew from its sequence: what comes from a file is not believed. Raises VerificationError."""
    if finding.sequence is None:
        return finding
    seen: set[int] = set()
    for operation in finding.sequence:
        if operation >= problem.count or any(problem.producer[value] not in seen for value in problem.inputs[operation]):
            raise VerificationError("the sequence does not belong to this graph")
        seen.add(operation)
    if len(seen) < problem.count:
        raise VerificationError("the sequence leaves out operations")
    _, simulation = certify(problem, finding.sequence)
    return replace(finding, cost=simulation.cost, peak=simulation.peak_bytes, recomputed=simulation.recomputed)
