"""A schedule in the paper's form: stages, and the values kept from stage to stage (the matrices R and S, as lists)."""

from __future__ import annotations

from dataclasses import dataclass

from ..model.graph import Graph
from .schedule import Action, Schedule


@dataclass(frozen=True, slots=True)
class Kept:
    """A value that is in memory at the beginning of each of the stages `first` to `last`."""

    value: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Plan:
    """Operations and values by their number in the graph, stages counted from 0."""

    stages: tuple[tuple[int, ...], ...]
    """The computations of each stage, in order. Every stage ends with a first computation; the last one may have more after it."""
    kept: tuple[Kept, ...]
    """Sorted by value, then by stage."""


def plan_of(graph: Graph, schedule: Schedule) -> Plan:
    """Split a schedule at first computations. A value that is freed right after the last computation of a stage is not kept for the next.

    Also accepts invalid schedules; the plan is then not meaningful.
    """
    stages: list[list[int]] = [[]]
    seen: set[int] = set()
    complete = False
    """True if the stage has had its first computation: the next computation starts a new stage, if a first computation is still to come."""
    made: dict[int, int] = {}
    """For each value in memory, the stage in which it was made."""
    kept: list[Kept] = []

    def drop(value: int) -> None:
        last = len(stages) - 1
        first = made.pop(value, last) + 1
        if first <= last:
            kept.append(Kept(value, first, last))

    for step in schedule.steps:
        if step.action is Action.FREE:
            drop(step.index)
            continue
        if complete and len(seen) < len(graph.operations):
            stages.append([])
        complete = step.index not in seen
        seen.add(step.index)
        stages[-1].append(step.index)
        for value in graph.operations[step.index].outputs:
            drop(value)
            made[value] = len(stages) - 1
    for value in list(made):
        drop(value)
    kept.sort(key=lambda span: (span.value, span.first))
    return Plan(tuple(tuple(stage) for stage in stages if stage), tuple(kept))
