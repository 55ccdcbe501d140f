"""The short form of a schedule: the operations to compute, in order, recomputations included.

Everything else follows from it. Each copy of a value is freed right after its last read, because keeping it longer has no use. So a
sequence determines the steps to free, the cost and the memory profile. Strategies return sequences of problem operations;
`core/schedule/schedule.py` expands them into schedules of the graph.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..model.problem import Problem


@dataclass(frozen=True, slots=True)
class Profile:
    """The cost and the memory of a sequence."""

    cost: float
    peak: int
    """Bytes, the base included."""
    memory: tuple[int, ...]
    """Bytes while each computation runs, the base included."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A sequence with its cost and its peak in the model of the problem, and what found it. It may exceed the budget."""

    sequence: tuple[int, ...]
    cost: float
    peak: int
    """Bytes, the base included."""
    found_by: str = ""

    def fits(self, problem: Problem) -> bool:
        return self.peak <= problem.budget


def candidate(problem: Problem, sequence: Iterable[int], found_by: str = "") -> Candidate:
    """Weigh a sequence."""
    operations = tuple(sequence)
    made = profile(problem, operations)
    return Candidate(operations, made.cost, made.peak, found_by)


def cheaper(one: Candidate | None, other: Candidate | None) -> Candidate | None:
    """The cheaper of two; the first of equals."""
    if one is None or other is None:
        return one or other
    return other if other.cost < one.cost else one


def last_reads(problem: Problem, sequence: Sequence[int]) -> list[list[int]]:
    """For each position, the values to free after it: those whose current copy is read there for the last time.

    A value that nothing reads is freed right after it was made. The last copies of graph outputs are never freed.
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
    """Remove recomputations whose results nothing reads; cost and memory can only fall."""
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


def drop_unread(problem: Problem, sequence: Sequence[int]) -> tuple[int, ...]:
    """Leave out every computation whose results nobody reads before they are computed again, first computations too.

    A schedule that computes an operation, frees it unread and computes it later need not have done so at first; what is left is the first
    computation then, in another order. An operation that nobody reads at all stays where it was first. Cost and memory can only fall.
    """
    awaited = [bool(kept) for kept in problem.kept]
    first = first_computations(problem.count, sequence)
    runs = [False] * problem.count
    chosen: list[int] = []
    for position in reversed(range(len(sequence))):
        operation = sequence[position]
        is_last_chance = position == first[operation] and not runs[operation]
        if not is_last_chance and not any(awaited[value] for value in problem.outputs[operation]):
            continue
        runs[operation] = True
        chosen.append(operation)
        for value in problem.outputs[operation]:
            awaited[value] = False
        for value in problem.inputs[operation]:
            awaited[value] = True
    return tuple(reversed(chosen))


def completed(problem: Problem, sequence: Sequence[int]) -> tuple[int, ...]:
    """With what is read before it was ever computed computed first: programs leave out reads that take no memory, such as a view's
    shape."""
    computed = [False] * problem.count
    complete: list[int] = []
    given = set(sequence)
    missing_outputs = [producer for value, producer in enumerate(problem.producer) if problem.kept[value] and producer not in given]
    for wanted in (*sequence, *dict.fromkeys(missing_outputs)):
        waiting = [wanted]
        while waiting:
            operation = waiting[-1]
            missing = [problem.producer[value] for value in problem.inputs[operation] if not computed[problem.producer[value]]]
            if missing:
                waiting += missing
                continue
            waiting.pop()
            if not computed[operation] or not waiting:
                computed[operation] = True
                complete.append(operation)
    return tuple(complete)


def stages(problem: Problem, sequence: Iterable[int]) -> list[list[int]]:
    """Split at first computations: stage t ends with the t-th first computation.

    Computations after the last first computation (recomputed graph outputs) are one more stage.
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
    """The same stages, with each operation at most once per stage and in topological order: the form of the MILPs.

    First computations must be in the problem's order.
    """
    merged = (sorted(set(part)) for part in stages(problem, sequence))
    return prune(problem, [operation for part in merged for operation in part])


def just_in_time(problem: Problem, sequence: Sequence[int]) -> tuple[int, ...]:
    """Move every recomputation to right before its first reader. This often lowers the peak, but not always."""
    first = first_computations(problem.count, sequence)
    latest = [-1] * problem.count
    reads: list[list[int]] = []
    """For each computation, the recomputations that it reads from."""
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
    """The position of the first computation of each operation in a sequence."""
    first = [-1] * count
    for position, operation in enumerate(sequence):
        if first[operation] < 0:
            first[operation] = position
    return first
