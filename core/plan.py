"""A schedule in the paper's view: stages, and what is carried from stage to stage (its R and S matrices, as lists)."""

from __future__ import annotations

from dataclasses import dataclass

from .graph import Graph
from .schedule import Action, Schedule


@dataclass(frozen=True, slots=True)
class Kept:
    """A value in memory when each of the stages `first` to `last` begins."""

    value: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Plan:
    """Operations and values by their number in the graph, stages counted from 0."""

    stages: tuple[tuple[int, ...], ...]
    """What each stage computes, in order. Every stage ends with the first computation of an operation; the last may go on."""
    kept: tuple[Kept, ...]
    """By value, then by stage."""


def plan_of(graph: Graph, schedule: Schedule) -> Plan:
    """Cut a schedule at first computations. A value freed right after the last computation of a stage does not enter the next one.

    Works on faulty schedules too: what it says about them is as good as they are.
    """
    stages: list[list[int]] = [[]]
    seen: set[int] = set()
    complete = False
    """Has the stage had its first computation? The next computation then opens a new one, if any operation is still to come."""
    made: dict[int, int] = {}
    """The stage in which each value in memory was made."""
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
