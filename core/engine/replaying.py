"""From what a program computes in each stage to sequences, and where such a sequence takes too much memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..model.problem import Problem
from ..schedule.sequence import just_in_time


def replays(problem: Problem, chain: Sequence[int], stages: Sequence[Sequence[int]]) -> tuple[tuple[int, ...], ...]:
    """Stage by stage, a breakpoint first in its stage; and the same with recomputations as late as can be."""
    sequence: list[int] = []
    for stage, operations in enumerate(stages):
        first = [chain[stage - 1]] if stage else []
        sequence += first
        sequence += [operation for operation in operations if operation not in first]
    complete = _completed(problem, sequence)
    return complete, just_in_time(problem, complete)


def _completed(problem: Problem, sequence: Sequence[int]) -> tuple[int, ...]:
    """With what is read before it was ever computed computed first: programs leave out reads that take no memory, such as a view's
    shape."""
    computed = [False] * problem.count
    complete: list[int] = []
    for wanted in sequence:
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


def excesses(problem: Problem, sequence: Sequence[int]) -> Iterator[tuple[int, int]]:
    """For each first computation, how many bytes too much are taken at most since the one before it, if any."""
    over = [taken - problem.available for taken in _memory(problem, sequence)]
    seen = [False] * problem.count
    worst = 0
    for position, operation in enumerate(sequence):
        worst = max(worst, over[position])
        if not seen[operation]:
            seen[operation] = True
            if worst > 0:
                yield worst, operation
            worst = 0


def _memory(problem: Problem, sequence: Sequence[int]) -> list[int]:
    """Bytes while each computation runs, base not included, everything freed as soon as can be."""
    size = problem.size
    awaited = [bool(kept) for kept in problem.kept]
    live = sum(bytes_ for bytes_, kept in zip(size, awaited, strict=True) if kept)
    memory = [0] * len(sequence)
    for position in reversed(range(len(sequence))):
        operation = sequence[position]
        read, made = problem.inputs[operation], problem.outputs[operation]
        absent = sum(size[value] for value in (*read, *made) if not awaited[value])
        memory[position] = live + absent + problem.workspace[operation]
        for value in made:
            if awaited[value]:
                awaited[value] = False
                live -= size[value]
        for value in read:
            if not awaited[value]:
                awaited[value] = True
                live += size[value]
    return memory
