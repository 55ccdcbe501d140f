"""One run of a strategy at one budget: a point of a curve."""

from __future__ import annotations

from dataclasses import replace

from ..baselines import BASELINES
from ..engine.run import run_strategy
from ..errors import VerificationError
from ..events import Watch
from ..model.problem import Problem
from ..result import Result, Status, Stop, certified
from ..settings import Settings

BEST_HEURISTIC = "best-heuristic"
"""The name for the cheapest of the paper's baselines at each budget."""


def solve_point(problem: Problem, strategy: str, settings: Settings, watch: Watch) -> Result:
    """Run one strategy, or all heuristics, with the problem's budget, and certify the schedule."""
    if strategy != BEST_HEURISTIC:
        return run_strategy(problem, strategy, settings, watch)
    fitting: list[Result] = []
    stop = Stop.FINISHED
    seconds = 0.0
    for name in BASELINES:
        if watch.expired:
            stop = Stop.INTERRUPTED if watch.interrupted() else Stop.TIME_LIMIT
            break
        found = run_strategy(problem, name, settings, watch.part(watch.remaining))
        seconds += found.seconds
        if found.fits:
            fitting.append(found)
    if not fitting:
        return Result(Status.UNKNOWN, stop, seconds=seconds, reason="no heuristic fits")
    return replace(min(fitting, key=lambda found: found.cost), stop=stop, seconds=seconds)


def recertified(problem: Problem, result: Result) -> Result:
    """The same result with a new certificate for its sequence, because a result from a file is not trusted. Raises VerificationError."""
    if result.sequence is None:
        return result
    seen: set[int] = set()
    for operation in result.sequence:
        if operation >= problem.count or any(problem.producer[value] not in seen for value in problem.inputs[operation]):
            raise VerificationError("the sequence does not belong to this graph")
        seen.add(operation)
    if len(seen) < problem.count:
        raise VerificationError("the sequence leaves out operations")
    return certified(result, problem, gap=0.0)
