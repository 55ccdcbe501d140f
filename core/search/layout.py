"""What a search looks at: one stage per first computation, or, on large graphs, only what matters.

A real training graph is mostly small steps: statistics, masks, weight gradients tap by tap. Between two reads of something made long ago
nothing needs to be recomputed, so all first computations from one such read to the next can be one stage, and values that hardly take
memory are never dropped. What is in memory within a stage is still counted step by step: such a search sees fewer schedules, none wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..model.problem import Problem, horizons

LONG_AGO = 8
"""Operations since the last use of a value, from which on reading it may mean recomputing it."""
LONGEST_STAGE = 32


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """Stages of the search, and which values it leaves alone."""

    runs: tuple[range, ...]
    """The first computations of each stage; the last stage holds only what stands for the reader of the graph outputs."""
    always_kept: tuple[bool, ...]
    """Values that are never dropped."""
    until: tuple[int, ...]
    """The last first computation that can find a use for each value."""


def fine_layout(problem: Problem) -> Layout:
    """Everything is open."""
    last = horizons(problem)
    count = problem.count
    until = [
        max(producer, count if problem.kept[value] else -1, *(last[user] for user in problem.consumers[value]))
        for value, producer in enumerate(problem.producer)
    ]
    return Layout(tuple(range(index, index + 1) for index in range(count + 1)), (False,) * len(problem.size), tuple(until))


def coarse_layout(problem: Problem, small: float) -> Layout:
    """Values below `small` bytes stay, and stages begin where something made long ago is read."""
    count = problem.count
    always_kept = [size < small for size in problem.size]
    again = [not problem.pinned[i] and not all(always_kept[value] for value in problem.outputs[i]) for i in range(count)]
    last = list(range(count))
    until = [-1] * len(problem.size)
    for operation in reversed(range(count)):
        for value in problem.outputs[operation]:
            users = problem.consumers[value]
            needed = max((last[user] if again[user] else user for user in users), default=operation)
            until[value] = count if problem.kept[value] else needed
            if not always_kept[value]:
                last[operation] = max(last[operation], until[value])
    return Layout(_runs(problem, always_kept), tuple(always_kept), tuple(until))


def _runs(problem: Problem, always_kept: Sequence[bool]) -> tuple[range, ...]:
    used = list(problem.producer)
    runs: list[range] = []
    start = 0
    for operation in range(problem.count):
        values = [value for value in problem.inputs[operation] if not always_kept[value]]
        distant = any(used[value] < operation - LONG_AGO for value in values)
        if operation > start and (distant or operation - start >= LONGEST_STAGE):
            runs.append(range(start, operation))
            start = operation
        for value in values:
            used[value] = operation
    runs.append(range(start, problem.count))
    return (*(run for run in runs if run), range(problem.count, problem.count + 1))
