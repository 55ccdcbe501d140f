"""A schedule in its shortest form: the operations to compute, in order, repeats included.

Everything else follows. A value is best freed right after its last read before it is made again (or for good), because holding it longer
helps nobody; so a sequence has exactly one sensible way to free, one cost and one memory profile. Strategies make sequences of problem
operations; `core/schedule.py` expands them into schedules of the graph.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .problem import Problem


@dataclass(frozen=True, slots=True)
class Profile:
    """What a sequence costs and takes."""

    cost: float
    peak: int
    """Bytes, the base included."""
    memory: tuple[int, ...]
    """Bytes while each computation runs, the base included."""


def last_reads(problem: Problem, sequence: Sequence[int]) -> list[list[int]]:
    """For each position, the values to free after it: read there for the last time before they are made again or for good.

    A value nobody reads is freed where it was made. Graph outputs made for the last time are never freed.
    """
    frees: list[list[int]] = [[] for _ in sequence]
    awaited = [bool(kept) for kept in problem.kept]
    for position in reversed(range(len(sequence))):
        operation = sequence[position]
        for value in problem.outputs[operation]:
            if not awaited[value]:
                frees[position].append(value)
            awaited[value] = False
        for value in problem.inputs[operation]:
            if not awaited[value]:
                frees[position].append(value)
                awaited[value] = True
    return frees


def profile(problem: Problem, sequence: Sequence[int]) -> Profile:
    """Cost, peak and memory while each computation runs."""
    frees = last_reads(problem, sequence)
    live = problem.base
    memory: list[int] = []
    cost = 0.0
    size, outputs, workspace = problem.size, problem.outputs, problem.workspace
    for position, operation in enumerate(sequence):
        live += sum(size[value] for value in outputs[operation])
        memory.append(live + workspace[operation])
        live -= sum(size[value] for value in frees[position])
        cost += problem.cost[operation]
    return Profile(cost, max(memory, default=problem.base), tuple(memory))


def prune(problem: Problem, sequence: Sequence[int]) -> tuple[int, ...]:
    """Leave out recomputations whose results nobody reads; cost and memory can only fall."""
    awaited = [bool(kept) for kept in problem.kept]
    first = first_computations(problem.count, sequence)
    chosen: list[int] = []
    for position in reversed(range(len(sequence))):
        operation = sequence[position]
        if position != first[operation] and not any(awaited[value] for value in problem.outputs[operation]):
            continue
        chosen.append(operation)
        for value in problem.outputs[operation]:
            awaited[value] = False
        for value in problem.inputs[operation]:
            awaited[value] = True
    return tuple(reversed(chosen))


def stages(problem: Problem, sequence: Iterable[int]) -> list[list[int]]:
    """Cut at first computations: stage t ends with the first computation of the t-th operation to be computed at all.

    What is computed after the last of them (graph outputs made again) is one stage more.
    """
    seen = [False] * problem.count
    cut: list[list[int]] = [[]]
    for operation in sequence:
        cut[-1].append(operation)
        if not seen[operation]:
            seen[operation] = True
            cut.append([])
    if not cut[-1]:
        cut.pop()
    return cut


def in_stage_order(problem: Problem, sequence: Sequence[int]) -> tuple[int, ...]:
    """The same stages, each operation at most once in each and in topological order: the form the MILPs know.

    Needs first computations in the problem's order.
    """
    merged = (sorted(set(part)) for part in stages(problem, sequence))
    return prune(problem, [operation for part in merged for operation in part])


def just_in_time(problem: Problem, sequence: Sequence[int]) -> tuple[int, ...]:
    """Move every recomputation to right before its first reader. Often, not always, that lowers the peak."""
    first = first_computations(problem.count, sequence)
    latest = [-1] * problem.count
    reads: list[list[int]] = []
    """The computations each computation takes its inputs from, where these are recomputations."""
    for position, operation in enumerate(sequence):
        sources = {latest[problem.producer[value]] for value in problem.inputs[operation]}
        reads.append(sorted(source for source in sources if source != first[sequence[source]]))
        latest[operation] = position
    anchors = [position for position, operation in enumerate(sequence) if position == first[operation]]
    outputs = sorted({latest[problem.producer[value]] for value, kept in enumerate(problem.kept) if kept} - set(anchors))
    emitted = [False] * len(sequence)
    moved: list[int] = []
    for anchor in (*anchors, *outputs):
        pending = [anchor]
        while pending:
            position = pending[-1]
            missing = [source for source in reads[position] if not emitted[source]]
            if missing:
                pending.append(missing[0])
                continue
            pending.pop()
            if not emitted[position]:
                emitted[position] = True
                moved.append(sequence[position])
    return prune(problem, moved)


def first_computations(count: int, sequence: Sequence[int]) -> list[int]:
    """Where in a sequence each operation is computed for the first time."""
    first = [-1] * count
    for position, operation in enumerate(sequence):
        if first[operation] < 0:
            first[operation] = position
    return first
