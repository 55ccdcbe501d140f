"""A schedule: which operation to compute and which value to free, step by step, views included.

Schedules are simulated, verified, written and compiled. `expand` makes a schedule from a sequence of problem operations and adds the views.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from ..model.graph import Graph
from ..model.problem import Problem, buffers


class Action(Enum):
    COMPUTE = "compute"
    FREE = "free"


@dataclass(frozen=True, slots=True)
class Step:
    """Compute an operation or free a value, by its number in the graph."""

    action: Action
    index: int


@dataclass(frozen=True, slots=True)
class Schedule:
    """Steps that start with empty memory and end with all graph outputs in memory."""

    steps: tuple[Step, ...]

    @property
    def computations(self) -> tuple[int, ...]:
        """Operations in the order they are computed, recomputations included."""
        return tuple(step.index for step in self.steps if step.action is Action.COMPUTE)


def expand(problem: Problem, sequence: Sequence[int]) -> Schedule:
    """Add the views to a sequence of problem operations, and free every value after its last read."""
    return with_frees(problem.graph, with_views(problem, sequence))


def with_views(problem: Problem, sequence: Sequence[int]) -> list[int]:
    """Recompute each view right before it is read, if its buffer has been recomputed."""
    graph = problem.graph
    owners = buffers(graph)
    producers = graph.producers()
    version = [0] * len(graph.values)
    """How many times each buffer was computed, and to which of these copies each view belongs."""
    computations: list[int] = []
    done = [False] * len(graph.operations)

    def compute(operation: int) -> None:
        computations.append(operation)
        done[operation] = True
        for value in graph.operations[operation].outputs:
            owner = owners[value]
            version[value] = 1 if owner is None else (version[value] + 1 if owner == value else version[owner])

    def refresh(value: int) -> None:
        """Recompute a view if it is out of date; its input may be a view too."""
        chain: list[int] = []
        while graph.operations[producers[value]].view:
            owner = owners[value]
            if done[producers[value]] and (owner is None or version[value] == version[owner]):
                break
            chain.append(producers[value])
            sources = graph.operations[producers[value]].inputs
            base = graph.values[value].alias_of
            if base is None:
                for source in sources:
                    refresh(source)
                break
            for source in sources:
                if source != base:
                    refresh(source)
            value = base
        for operation in reversed(chain):
            compute(operation)

    for position in sequence:
        operation = problem.graph_operation[position]
        for value in graph.operations[operation].inputs:
            refresh(value)
        compute(operation)
    for value in graph.outputs:
        refresh(value)
    return _with_unread_views(graph, computations, done)


def _with_unread_views(graph: Graph, computations: list[int], done: list[bool]) -> list[int]:
    """Views that nothing reads still run once, as soon as their inputs are in memory. They may read each other."""
    unread = [index for index, finished in enumerate(done) if not finished]
    if not unread:
        return computations
    producers = graph.producers()
    missing: dict[int, int] = {}
    followers: dict[int, list[int]] = {}
    for index in unread:
        needs = {producers[value] for value in graph.operations[index].inputs}
        missing[index] = len(needs)
        for need in needs:
            followers.setdefault(need, []).append(index)
    result: list[int] = []
    placed: set[int] = set()
    for operation in (*(index for index in unread if not missing[index]), *computations):
        pending = [operation]
        while pending:
            current = pending.pop()
            result.append(current)
            if current in placed:
                continue
            placed.add(current)
            for follower in reversed(followers.get(current, ())):
                missing[follower] -= 1
                if not missing[follower]:
                    pending.append(follower)
    return result


def with_frees(graph: Graph, computations: Sequence[int]) -> Schedule:
    """Free every value right after the last read of each copy; the last copies of graph outputs stay."""
    outputs = set(graph.outputs)
    awaited = [value in outputs for value in range(len(graph.values))]
    backwards: list[Step] = []
    for index in reversed(computations):
        operation = graph.operations[index]
        frees = [value for value in operation.outputs if not awaited[value]]
        for value in operation.outputs:
            awaited[value] = False
        for value in operation.inputs:
            if not awaited[value]:
                frees.append(value)
                awaited[value] = True
        backwards.extend(Step(Action.FREE, value) for value in sorted(frees, reverse=True))
        backwards.append(Step(Action.COMPUTE, index))
    return Schedule(tuple(reversed(backwards)))
