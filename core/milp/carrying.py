"""Schedules in stages: what each computes, and what is carried from one to the next."""

from __future__ import annotations

from collections.abc import Sequence

from ..model.problem import Problem
from ..schedule.sequence import in_stage_order, stages


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
