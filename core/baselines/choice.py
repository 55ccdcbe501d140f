"""Choose the best of several sequences."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..events import Watch
from ..model.problem import Problem
from ..model.units import format_bytes
from ..result import Result, Status, Stop
from ..schedule.sequence import profile

Parameters = dict[str, str | int | float]

SWEEP_TIMES = 10
"""A baseline that tries many sequences gives up one with more runs per operation than this: too slow to build, and too expensive."""


def judged(problem: Problem, sequence: Sequence[int]) -> Result:
    """A result with this sequence, whether or not it fits."""
    return _solution(problem, tuple(sequence), profile(problem, sequence).peak, Stop.FINISHED, {})


def too_long(stop: Stop = Stop.FINISHED) -> Result:
    """The result of a strategy whose sequence grew too long."""
    return Result(Status.UNKNOWN, stop, reason="it would recompute so often that its schedule is of no use")


def not_a_chain(alternatives: str) -> Result:
    """The result of a strategy for chains on another graph."""
    return Result(Status.UNKNOWN, Stop.FINISHED, reason=f"the forward pass is not a chain; use {alternatives}")


def cheapest(problem: Problem, tries: Iterable[tuple[Parameters, Sequence[int] | None]], watch: Watch) -> Result:
    """The cheapest sequence that fits the budget, else the one with the lowest peak; None stands for a sequence that grew too long.

    At the time limit, the best so far is used; at least one is always tried.
    """
    best: tuple[tuple[bool, float, float], tuple[int, ...], int, Parameters] | None = None
    stop = Stop.FINISHED
    for parameters, sequence in tries:
        if sequence is not None:
            found = profile(problem, sequence)
            fits = found.peak <= problem.budget
            rank = (False, found.cost, found.peak) if fits else (True, found.peak, found.cost)
            if best is None or rank < best[0]:
                best = (rank, tuple(sequence), found.peak, parameters)
        if watch.expired:
            stop = Stop.INTERRUPTED if watch.interrupted() else Stop.TIME_LIMIT
            break
    if best is None:
        return too_long(stop)
    _, chosen, peak, parameters = best
    return _solution(problem, chosen, peak, stop, parameters)


def affordable_tries(problem: Problem) -> int:
    """How many sequences a strategy may try within a few seconds."""
    return max(20, min(100, 200_000 // problem.count))


def thinned(parameters: Sequence[int], most: int) -> list[int]:
    """At most about this many of the parameters, denser at the start; both ends included."""
    if len(parameters) <= most:
        return list(parameters)
    growth = (len(parameters) - 1) ** (1 / (most - 1))
    picks = {min(max(step, round(growth**step)), len(parameters) - 1) for step in range(most)}
    return [parameters[pick] for pick in sorted(picks | {0})]


def _solution(problem: Problem, sequence: tuple[int, ...], peak: int, stop: Stop, parameters: Parameters) -> Result:
    if peak <= problem.budget:
        return Result(Status.FEASIBLE, stop, sequence, provenance=parameters)
    reason = f"its peak of {format_bytes(peak)} exceeds the budget of {format_bytes(problem.budget)}"
    return Result(Status.UNKNOWN, stop, sequence, reason=reason, provenance=parameters)
