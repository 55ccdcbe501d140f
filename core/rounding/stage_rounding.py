"""From solutions of relaxations to schedules, which may take a little too much; and where they do."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence, Set

import numpy as np
from numpy.typing import NDArray

from ..milp.relaxation import Reduced, Relaxation
from ..model.problem import Problem
from ..schedule.sequence import first_computations, just_in_time, profile, prune
from .lp_rounding import complete

MOST_PLACES = 6
"""Moments around which stages are made to end after an integer program."""


def rounded(reduced: Reduced, relaxation: Relaxation, values: NDArray[np.float64]) -> tuple[int, ...]:
    """The schedule that keeps whatever the fractions keep more than half of."""
    padded = np.append(values, 0.0)
    free = np.flatnonzero(~reduced.counted).tolist()
    kept = [{*np.flatnonzero(padded[row] > 0.5).tolist(), *free} for row in relaxation.keep[:-1]]
    return just_in_time(reduced.problem, complete(reduced.problem, relaxation.runs, kept))


def as_sequence(problem: Problem, relaxation: Relaxation, values: NDArray[np.float64]) -> tuple[int, ...]:
    """The recomputations of each stage, then its first computations; in zones, those of the way that is gone."""
    padded = np.append(values, 0.0)
    sequence: list[int] = []
    for stage, run in enumerate(relaxation.runs):
        sequence.extend(np.flatnonzero(padded[relaxation.compute[stage]] > 0.5).tolist())
        sequence.extend((relaxation.way(stage, values).operations if stage in relaxation.zones else ()) or run)
    return just_in_time(problem, prune(problem, sequence))


def where_it_exceeds(problem: Problem, sequence: Sequence[int], ends: Set[int], covered: Callable[[int], bool]) -> set[int]:
    """Around the worst moment of every stage in which a schedule takes too much, but for first computations that are covered."""
    memory = profile(problem, sequence).memory
    upcoming = problem.count
    firsts = first_computations(problem.count, sequence)
    edges = sorted(ends)
    worst: dict[int, tuple[int, int]] = {}
    for position in reversed(range(len(sequence))):
        if firsts[sequence[position]] == position:
            upcoming = sequence[position]
        if memory[position] > problem.budget and not covered(upcoming):
            stage = bisect_right(edges, upcoming)
            worst[stage] = max(worst.get(stage, (0, 0)), (memory[position], upcoming))
    places = [place for _, place in sorted(worst.values(), reverse=True)[:MOST_PLACES]]
    return {cut for place in places for cut in (place, place + 1) if 0 < cut < problem.count} - ends
