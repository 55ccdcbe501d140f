"""From sequences to a solution: does it fit, and which of several is best?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..events import Watch
from ..problem import Problem
from ..result import Solution, Status, Stop
from ..sequence import profile
from ..units import format_bytes

Parameters = dict[str, str | int | float]

SWEEP_TIMES = 10
"""A sweep does not follow up sequences in which each operation runs this often: too slow to try many of, and too dear to win."""


def judged(problem: Problem, sequence: Sequence[int]) -> Solution:
    """A solution with this sequence, whether or not it fits."""
    return _solution(problem, tuple(sequence), profile(problem, sequence).peak, Stop.FINISHED, {})


def too_long(stop: Stop = Stop.FINISHED) -> Solution:
    """The answer of a strategy that would recompute without end."""
    return Solution(Status.UNKNOWN, stop, reason="it would recompute so often that its schedule is not worth writing")


def not_a_chain(alternatives: str) -> Solution:
    """The answer of a strategy made for chains to any other graph."""
    return Solution(Status.UNKNOWN, Stop.FINISHED, reason=f"the forward pass is not a chain; use {alternatives}")


def cheapest(problem: Problem, tries: Iterable[tuple[Parameters, Sequence[int] | None]], watch: Watch) -> Solution:
    """The cheapest sequence that fits the budget, else the one with the lowest peak; None stands for one that grew too long.

    When time is up the best so far counts; one is always tried.
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
    """How many sequences a strategy may try: what takes a few seconds at most."""
    return max(20, min(100, 200_000 // problem.count))


def thinned(parameters: Sequence[int], most: int) -> list[int]:
    """At most about this many of the parameters, closer together at the start; both ends included."""
    if len(parameters) <= most:
        return list(parameters)
    growth = (len(parameters) - 1) ** (1 / (most - 1))
    picks = {min(max(step, round(growth**step)), len(parameters) - 1) for step in range(most)}
    return [parameters[pick] for pick in sorted(picks | {0})]


def _solution(problem: Problem, sequence: tuple[int, ...], peak: int, stop: Stop, parameters: Parameters) -> Solution:
    if peak <= problem.budget:
        return Solution(Status.FEASIBLE, stop, sequence, provenance=parameters)
    reason = f"its peak of {format_bytes(peak)} exceeds the budget of {format_bytes(problem.budget)}"
    return Solution(Status.UNKNOWN, stop, sequence, reason=reason, provenance=parameters)
