"""Explain a schedule: what is in memory at its peak, what is recomputed, and how much memory each dropped tensor saves."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from ..model.problem import buffers
from ..schedule.schedule import expand
from ..schedule.sequence import prune
from ..schedule.simulate import simulate
from .examine import Examined


class Role(Enum):
    """Why a value is in memory while an operation runs."""

    INPUT = "input"
    """The operation reads it."""
    OUTPUT = "output"
    """The operation makes it."""
    HELD = "held"
    """It is kept for a later reader, or to the end."""


@dataclass(frozen=True, slots=True)
class Holding:
    """A value in memory at some moment."""

    value: int
    bytes: int
    role: Role
    reader: int | None = None
    """If it is held: the operation that reads it next; None if it is held as a graph output."""


@dataclass(frozen=True, slots=True)
class Peak:
    """The first moment at which memory is at its peak."""

    bytes: int
    computation: int
    operation: int
    again: bool
    """True if the operation is recomputed there."""
    fixed: int
    """Bytes of fixed memory."""
    reserve: int
    workspace: int
    holdings: tuple[Holding, ...]
    """Largest first."""

    def held(self, role: Role) -> int:
        """Bytes of all values in this role."""
        return sum(holding.bytes for holding in self.holdings if holding.role is role)


@dataclass(frozen=True, slots=True)
class Recomputation:
    """An operation that runs more than once."""

    operation: int
    repeats: int
    """Computations beyond the first."""
    cost: float
    """The cost of all recomputations together."""
    bytes: int
    """The bytes of its outputs, which are not in memory in between."""
    absent: int
    """How many computations ran while its result was dropped, between its first and its last computation."""


@dataclass(frozen=True, slots=True)
class Purchase:
    """What one recomputation saves: the schedule without it, with its result kept in memory instead."""

    recomputation: Recomputation
    peak_if_kept: int
    cost_if_kept: float
    """Also without what is recomputed only for it."""
    saved_bytes: int
    """At the peak."""
    saved_against_budget: int
    """By how much the schedule without the recomputation would exceed the budget."""


def explain_peak(examined: Examined) -> Peak:
    """What is in memory at the peak, and why."""
    graph, simulation = examined.graph, examined.simulation
    computations = examined.computations
    now = simulation.peak_computation
    operation = graph.operations[computations[now]]
    owners = buffers(graph)
    read = {owners[value] for value in operation.inputs}
    alive = [stay for stay in simulation.stays if stay.first <= now < stay.end]
    readers = _next_readers(examined, {stay.value: stay.end for stay in alive}, now)
    holdings = [
        Holding(stay.value, stay.bytes, Role.OUTPUT)
        if stay.value in operation.outputs
        else Holding(stay.value, stay.bytes, Role.INPUT)
        if stay.value in read
        else Holding(stay.value, stay.bytes, Role.HELD, readers.get(stay.value))
        for stay in alive
    ]
    return Peak(
        bytes=simulation.peak_bytes,
        computation=now,
        operation=computations[now],
        again=computations[now] in computations[:now],
        fixed=graph.fixed_bytes,
        reserve=examined.reserve,
        workspace=operation.workspace,
        holdings=tuple(sorted(holdings, key=lambda holding: (-holding.bytes, holding.value))),
    )


def _next_readers(examined: Examined, ends: dict[int, int], now: int) -> dict[int, int]:
    """For each of these buffers, the next operation that reads it, directly or through a view; at the latest the one that overwrites it."""
    graph, computations = examined.graph, examined.computations
    owners = buffers(graph)
    readers: dict[int, int] = {}
    for position in range(now + 1, len(computations)):
        operation = graph.operations[computations[position]]
        if operation.view:
            continue
        for value in operation.inputs:
            owner = owners[value]
            if owner is not None and position <= ends.get(owner, 0):
                readers.setdefault(owner, computations[position])
    return readers


def recomputations(examined: Examined) -> tuple[Recomputation, ...]:
    """All operations that run more than once, views not counted, the most expensive first."""
    graph, amounts = examined.graph, examined.problem.costs.amounts
    runs = Counter(examined.computations)
    absent = _absences(examined)
    found = [
        Recomputation(
            operation=index,
            repeats=runs[index] - 1,
            cost=(runs[index] - 1) * amounts[index],
            bytes=sum(graph.values[value].bytes for value in operation.outputs),
            absent=max((absent[value] for value in operation.outputs), default=0),
        )
        for index, operation in enumerate(graph.operations)
        if runs[index] > 1 and not operation.view
    ]
    return tuple(sorted(found, key=lambda entry: (-entry.cost, -entry.bytes, entry.operation)))


def _absences(examined: Examined) -> dict[int, int]:
    """For each value, the number of computations that ran while it was dropped and before it was recomputed."""
    left: dict[int, int] = {}
    absent: defaultdict[int, int] = defaultdict(int)
    for stay in examined.simulation.stays:
        if stay.value in left:
            absent[stay.value] += stay.first - left[stay.value]
        left[stay.value] = stay.end
    return absent


def largest_dropped(entries: Sequence[Recomputation], most: int = 5) -> tuple[Recomputation, ...]:
    """The largest results that are dropped and recomputed; among equal ones, the most expensive."""
    dropped = (entry for entry in entries if entry.bytes and entry.absent)
    return tuple(sorted(dropped, key=lambda entry: (-entry.bytes, -entry.cost, entry.operation))[:most])


def what_it_buys(examined: Examined, entry: Recomputation) -> Purchase:
    """Remove the recomputations, keep the result of the first computation, and replay the rest."""
    problem = examined.problem
    left_out = problem.graph_operation.index(entry.operation)
    remaining: list[int] = []
    seen = False
    for operation in examined.sequence:
        if operation == left_out:
            if seen:
                continue
            seen = True
        remaining.append(operation)
    schedule = expand(problem, prune(problem, remaining))
    kept = simulate(problem.graph, problem.costs, schedule, reserve=examined.reserve, memory_model=problem.memory_model)
    return Purchase(
        recomputation=entry,
        peak_if_kept=kept.peak_bytes,
        cost_if_kept=kept.cost,
        saved_bytes=max(0, kept.peak_bytes - examined.simulation.peak_bytes),
        saved_against_budget=max(0, kept.peak_bytes - problem.budget),
    )
