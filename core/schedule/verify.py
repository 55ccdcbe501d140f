"""The independent verifier: checks a schedule against the graph. It shares no code with the simulator, the solvers or the strategies.

It keeps no running total: it records when each copy of a value was made and freed, determines which copies share an allocation, and adds up
the allocations afterwards.
It trusts no number it is given: it reports its own numbers and names each violation.
"""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass

from ..model.graph import Graph
from ..model.memory_model import MemoryModel
from .schedule import Action, Schedule


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the verifier found; `violations` is empty if and only if the schedule is valid."""

    violations: tuple[str, ...]
    peak_bytes: int
    cost: float

    @property
    def passed(self) -> bool:
        return not self.violations


@dataclass(frozen=True, slots=True)
class Claim:
    """What a schedule claims. Claims that are None are not checked."""

    budget_bytes: int | None = None
    peak_bytes: int | None = None
    cost: float | None = None


@dataclass(slots=True)
class _Copy:
    """One copy of a value, from its computation until it is freed."""

    value: int
    made: int
    """The computation that made it, counted from 0."""
    gone: int | None = None
    """The first computation after it is freed; None if it was never freed."""
    view_of: _Copy | None = None
    bare: bool = False
    """A view of fixed memory: it has no allocation."""


def verify(
    graph: Graph,
    amounts: tuple[float, ...],
    schedule: Schedule,
    claim: Claim,
    *,
    reserve: int = 0,
    memory_model: MemoryModel = MemoryModel.GENERIC,
) -> Verdict:
    """Check that every step is legal, then add up the memory in use at each computation. Stops after twenty violations."""
    wrong: list[str] = []
    home: dict[int, _Copy] = {}
    """The values in memory."""
    copies: list[_Copy] = []
    read: list[dict[int, _Copy]] = []
    """For each computation, the copies that it may overwrite."""
    ran: list[int] = []
    for number, step in enumerate(schedule.steps):
        if len(wrong) >= 20:
            break
        if step.action is Action.FREE:
            if step.index not in home:
                wrong.append(f"step {number} frees value {_value(graph, step.index)}, which is not in memory")
                continue
            home.pop(step.index).gone = len(ran)
            continue
        if not 0 <= step.index < len(graph.operations):
            wrong.append(f"step {number} computes operation {step.index}, which the graph does not have")
            continue
        operation = graph.operations[step.index]
        absent = [value for value in operation.inputs if value not in home]
        if absent:
            wrong.append(f"step {number} computes {operation.name!r}, but its input {_value(graph, absent[0])} is not in memory")
            continue
        read.append({source: home[source] for source, _ in operation.in_place})
        for value in operation.outputs:
            if value in home:
                wrong.append(f"step {number} computes {operation.name!r} while its output {_value(graph, value)} is still in memory")
            shared = graph.values[value].alias_of
            base = None if shared is None else home[shared]
            made = _Copy(value, len(ran), view_of=base, bare=operation.view if base is None else base.bare)
            home[value] = made
            copies.append(made)
        ran.append(step.index)
    overwrites = memory_model is MemoryModel.ONNXRUNTIME
    peak = reserve + sum(graph.fixed.values()) + _most_alive(graph, ran, _Memory(graph, ran, read, overwrites).allocations(copies))
    cost = sum(amounts[index] for index in ran)
    _check_the_whole(graph, ran, set(home), wrong)
    _check_the_claim(claim, peak, cost, wrong)
    return Verdict(tuple(wrong), peak, cost)


@dataclass(slots=True)
class _Allocation:
    size: int
    born: int
    ends: tuple[int, int]
    """When the two of its copies that live longest are freed."""


class _Memory:
    """Which copies share an allocation: a view with its input, and a value that was written in place with the value that it overwrote."""

    def __init__(self, graph: Graph, ran: list[int], read: list[dict[int, _Copy]], overwrites: bool) -> None:
        self._graph = graph
        self._outputs = frozenset(graph.outputs)
        self._ran = ran
        self._read = read
        self._overwrites = overwrites
        self._place: dict[int, _Allocation] = {}
        """By identity of the copy."""

    def allocations(self, copies: list[_Copy]) -> list[_Allocation]:
        found: list[_Allocation] = []
        for copy in copies:
            if copy.bare:
                continue
            end = len(self._ran) if copy.gone is None else copy.gone
            place = self._place[id(copy.view_of)] if copy.view_of is not None else self._overwritten(copy)
            if place is None:
                place = _Allocation(self._graph.values[copy.value].bytes, copy.made, (end, -1))
                found.append(place)
            else:
                place.ends = (max(end, place.ends[0]), min(max(end, place.ends[1]), place.ends[0]))
            self._place[id(copy)] = place
        return found

    def _overwritten(self, copy: _Copy) -> _Allocation | None:
        """The allocation that this copy was written into: one of equal size that no later computation needs.

        A graph output that stays to the end has its own allocation.
        """
        operation = self._graph.operations[self._ran[copy.made]]
        if not self._overwrites or (copy.gone is None and copy.value in self._outputs):
            return None
        for source, target in operation.in_place:
            victim = self._read[copy.made].get(source)
            if target != copy.value or victim is None or victim.bare or victim.gone != copy.made + 1:
                continue
            place = self._place[id(victim)]
            if place.ends[0] == copy.made + 1 and place.ends[1] <= copy.made and place.size == self._graph.values[target].bytes:
                return place
        return None


def _most_alive(graph: Graph, ran: list[int], allocations: list[_Allocation]) -> int:
    """The most bytes allocated while one computation runs. An allocation exists until its last copy is freed."""
    change = [0] * (len(ran) + 1)
    for place in allocations:
        change[place.born] += place.size
        change[place.ends[0]] -= place.size
    alive = itertools.accumulate(change)
    return max((graph.operations[index].workspace + bytes_ for index, bytes_ in zip(ran, alive, strict=False)), default=0)


def _check_the_whole(graph: Graph, ran: list[int], home: set[int], wrong: list[str]) -> None:
    runs = Counter(ran)
    for index, operation in enumerate(graph.operations):
        if not runs[index]:
            wrong.append(f"operation {operation.name!r} is never computed")
        elif operation.pinned and runs[index] > 1:
            wrong.append(f"operation {operation.name!r} is computed {runs[index]} times, but it must run exactly once")
    wrong.extend(f"graph output {_value(graph, value)} is not in memory at the end" for value in graph.outputs if value not in home)


def _check_the_claim(claim: Claim, peak: int, cost: float, wrong: list[str]) -> None:
    if claim.budget_bytes is not None and peak > claim.budget_bytes:
        wrong.append(f"the peak of {peak} bytes exceeds the budget of {claim.budget_bytes} bytes by {peak - claim.budget_bytes}")
    if claim.peak_bytes is not None and peak != claim.peak_bytes:
        wrong.append(f"the peak is {peak} bytes, but {claim.peak_bytes} was claimed")
    if claim.cost is not None and abs(cost - claim.cost) > 1e-9 * max(abs(cost), abs(claim.cost)):
        wrong.append(f"the cost is {cost!r}, but {claim.cost!r} was claimed")


def _value(graph: Graph, index: int) -> str:
    return repr(graph.values[index].name) if 0 <= index < len(graph.values) else f"number {index}"
