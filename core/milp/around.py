"""Schedules in stages: what each computes, what is carried from one to the next, and the neighbourhood of a schedule."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ..model.problem import Problem
from ..schedule.sequence import in_stage_order, profile, stages
from .stages import closing_run


def stage_sets(problem: Problem, sequence: Sequence[int], runs: Sequence[range]) -> list[set[int]]:
    """What a sequence computes in each stage, where a stage without first computations takes all that comes after the last of them."""
    fine = stages(problem, in_stage_order(problem, sequence))
    merged: list[set[int]] = []
    for run in runs:
        parts = fine[run.start : run.stop] if run else fine[run.start :]
        merged.append({operation for part in parts for operation in part})
    return merged


def carried(problem: Problem, computed: Sequence[set[int]]) -> list[set[int]] | None:
    """Which values each stage must find in memory, given what each computes; None if that cannot be (nothing made them)."""
    kept: list[set[int]] = [set() for _ in range(len(computed) + 1)]
    kept[-1] = {value for value, needed in enumerate(problem.kept) if needed}
    for stage in reversed(range(len(computed))):
        wanted = {value for value in kept[stage + 1] if problem.producer[value] not in computed[stage]}
        for operation in computed[stage]:
            wanted.update(value for value in problem.inputs[operation] if problem.producer[value] not in computed[stage])
        kept[stage] = wanted
    return None if kept[0] else kept


@dataclass(frozen=True, slots=True, eq=False)
class Around:
    """The neighbourhood of a schedule: of some operations it is free where they are computed and kept; the rest is as in the schedule."""

    runs: tuple[range, ...]
    computed: tuple[frozenset[int], ...]
    """By the schedule in each stage, first computations included."""
    kept: tuple[frozenset[int], ...]
    """By the schedule into each stage, and past the last."""
    operations: frozenset[int]
    """Those that are free."""

    @staticmethod
    def of(problem: Problem, sequence: Sequence[int], operations: frozenset[int], cuts: Iterable[int]) -> Around | None:
        """Around a sequence that makes first computations in order; None if it does not fit once it is in stage order.

        Stages begin with the first computations in `cuts`, and where the sequence recomputes something, so that it has a place in the model
        exactly as it is.
        """
        ordered = in_stage_order(problem, sequence)
        if profile(problem, ordered).peak > problem.budget:
            return None
        begin = {0, problem.count, *cuts}
        begin.update(first for first, part in enumerate(stages(problem, ordered)) if len(part) > 1 and first < problem.count)
        runs = (*(range(start, stop) for start, stop in pairwise(sorted(begin))), *closing_run(problem))
        computed = stage_sets(problem, ordered, runs)
        kept = carried(problem, computed)
        if kept is None:
            return None
        return Around(runs, tuple(map(frozenset, computed)), tuple(map(frozenset, kept)), operations)

    def fixed(self) -> Iterator[tuple[int, int]]:
        """The recomputations, stage and operation, that are not free."""
        for stage, operations in enumerate(self.computed):
            again = (operation for operation in operations if operation not in self.runs[stage])
            yield from ((stage, operation) for operation in again if operation not in self.operations)
