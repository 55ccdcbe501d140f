"""From what a program computes in each stage to sequences, and where such a sequence takes too much memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..model.problem import Problem
from ..params import PARAMS
from ..schedule.sequence import completed, first_computations, just_in_time, prune


def replays(problem: Problem, chain: Sequence[int], stages: Sequence[Sequence[int]]) -> tuple[tuple[int, ...], ...]:
    """Stage by stage, a breakpoint first in its stage; the same with recomputations as late as can be; and that thinned, if it takes
    less."""
    sequence: list[int] = []
    for stage, operations in enumerate(stages):
        first = [chain[stage - 1]] if stage else []
        sequence += first
        sequence += [operation for operation in operations if operation not in first]
    complete = completed(problem, sequence)
    late = just_in_time(problem, complete)
    return (complete, late, *_thinned(problem, late))


def _thinned(problem: Problem, sequence: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Without some of the recomputations whose values wait long until they are read: kept instead, they let the others come late.

    A stage recomputes a chain, such as the residual stream of a transformer, from its beginning, and all of it is then in memory until it
    is read. If every m-th of its values is kept from the first time, each part is recomputed when it is needed. On 358 blocks of a
    transformer, at half its peak, a replay takes 1.8 instead of 18 % too much, and costs a little less.
    """
    waiting = _waiting_long(problem, sequence)
    best, lowest = [], max(_memory(problem, sequence), default=0)
    if lowest <= problem.available:
        return []
    for every in (2**power for power in range(1, len(waiting).bit_length())):
        dropped = set(waiting[::every])
        fewer = prune(problem, [operation for place, operation in enumerate(sequence) if place not in dropped])
        thin = just_in_time(problem, fewer)
        peak = max(_memory(problem, thin))
        if peak < lowest:
            best, lowest = [thin], peak
    return best


def _waiting_long(problem: Problem, sequence: Sequence[int]) -> list[int]:
    """The places of recomputations whose values are last read long after."""
    long = len(sequence) // PARAMS.long_wait
    firsts = first_computations(problem.count, sequence)
    last_read = [len(sequence) if kept else -1 for kept in problem.kept]
    waiting: list[int] = []
    for place in reversed(range(len(sequence))):
        operation = sequence[place]
        if firsts[operation] != place and max(last_read[value] for value in problem.outputs[operation]) - place > long:
            waiting.append(place)
        for value in problem.outputs[operation]:
            last_read[value] = -1
        for value in problem.inputs[operation]:
            last_read[value] = max(last_read[value], place)
    return waiting[::-1]


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
