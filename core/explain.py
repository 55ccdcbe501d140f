"""Why a schedule is as it is: what its peak is made of, what is made again, and what each tensor that is dropped buys."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from .examine import Examined
from .problem import buffers
from .schedule import expand
from .sequence import prune
from .simulate import simulate


class Role(Enum):
    """Why a value is in memory while an operation runs."""

    INPUT = "input"
    """The operation reads it."""
    OUTPUT = "output"
    """The operation makes it."""
    HELD = "held"
    """It waits for a later reader, or for the end."""


@dataclass(frozen=True, slots=True)
class Holding:
    """A value in memory at some moment."""

    value: int
    bytes: int
    role: Role
    reader: int | None = None
    """Where it is held: the operation that reads it next; None if it is held as an output of the graph."""


@dataclass(frozen=True, slots=True)
class Peak:
    """The first moment of the most memory."""

    bytes: int
    computation: int
    operation: int
    again: bool
    """Is the operation computed for a second time there, or later?"""
    fixed: int
    """Bytes that are always there, whatever the schedule."""
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
    """Of all repeats together."""
    bytes: int
    """Of what it makes: gone from memory in between."""
    absent: int
    """How many computations found its result gone, between the first time it was made and the last."""


@dataclass(frozen=True, slots=True)
class Purchase:
    """What one recomputation buys: the schedule without it, its result kept in memory instead."""

    recomputation: Recomputation
    peak_if_kept: int
    cost_if_kept: float
    """Without what is computed again for its sake only, too."""
    saved_bytes: int
    """At the peak."""
    saved_against_budget: int
    """By how much the schedule would exceed the budget."""


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
    """The next operation to read each of these buffers, directly or through a view: at the latest the one that writes over it."""
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
    """Everything that runs more than once, views not counted; what costs most first."""
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
    """How many computations found each value gone that had been there and was there again later."""
    left: dict[int, int] = {}
    absent: defaultdict[int, int] = defaultdict(int)
    for stay in examined.simulation.stays:
        if stay.value in left:
            absent[stay.value] += stay.first - left[stay.value]
        left[stay.value] = stay.end
    return absent


def largest_dropped(entries: Sequence[Recomputation], most: int = 5) -> tuple[Recomputation, ...]:
    """The largest results that are dropped and made again; of equal ones, those that cost most."""
    dropped = (entry for entry in entries if entry.bytes and entry.absent)
    return tuple(sorted(dropped, key=lambda entry: (-entry.bytes, -entry.cost, entry.operation))[:most])


def what_it_buys(examined: Examined, entry: Recomputation) -> Purchase:
    """Leave the repeats out, keep the result from the first time on, and replay what is left."""
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
    kept = simulate(problem.graph, problem.costs, schedule, reserve=examined.reserve, runtime=problem.runtime)
    return Purchase(
        recomputation=entry,
        peak_if_kept=kept.peak_bytes,
        cost_if_kept=kept.cost,
        saved_bytes=max(0, kept.peak_bytes - examined.simulation.peak_bytes),
        saved_against_budget=max(0, kept.peak_bytes - problem.budget),
    )
