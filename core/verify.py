"""The independent checker: judges a schedule by the graph alone and shares nothing with the simulator, the solvers or the strategies.

It never keeps a running total: it notes when each allocation was born and when its last holder was freed, and adds them up afterwards.
It believes no number it is given: it says what it found and names each thing that is wrong.
"""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass

from .graph import Graph
from .schedule import Action, Schedule


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the checker found; `violations` is empty if and only if the schedule is good."""

    violations: tuple[str, ...]
    peak_bytes: int
    cost: float

    @property
    def passed(self) -> bool:
        return not self.violations


@dataclass(frozen=True, slots=True)
class Claim:
    """What a schedule is said to be. None is not checked."""

    budget_bytes: int | None = None
    peak_bytes: int | None = None
    cost: float | None = None


def verify(graph: Graph, amounts: tuple[float, ...], schedule: Schedule, claim: Claim, *, reserve: int = 0) -> Verdict:
    """Walk through the steps once for what is legal, then add up what was alive when. Stops at twenty violations."""
    wrong: list[str] = []
    home: dict[int, int | None] = {}
    """The values in memory, each with its allocation; None for a view of fixed memory."""
    size: list[int] = []
    born: list[int] = []
    died: list[int] = []
    """Of each allocation: bytes, the computation that made it, and the computation after which its last holder was freed."""
    ran: list[int] = []
    for number, step in enumerate(schedule.steps):
        if len(wrong) >= 20:
            break
        if step.action is Action.FREE:
            if step.index not in home:
                wrong.append(f"step {number} frees value {_value(graph, step.index)}, which is not in memory")
                continue
            place = home.pop(step.index)
            if place is not None:
                died[place] = len(ran)
            continue
        if not 0 <= step.index < len(graph.operations):
            wrong.append(f"step {number} computes operation {step.index}, which the graph does not have")
            continue
        operation = graph.operations[step.index]
        absent = [value for value in operation.inputs if value not in home]
        if absent:
            wrong.append(f"step {number} computes {operation.name!r}, but its input {_value(graph, absent[0])} is not in memory")
            continue
        for value in operation.outputs:
            if value in home:
                wrong.append(f"step {number} computes {operation.name!r} while its output {_value(graph, value)} is still in memory")
            shared = graph.values[value].alias_of
            if shared is not None:
                home[value] = home[shared]
            elif operation.view:
                home[value] = None
            else:
                home[value] = len(size)
                size.append(graph.values[value].bytes)
                born.append(len(ran))
                died.append(len(ran))
        ran.append(step.index)
    for place in home.values():
        if place is not None:
            died[place] = len(ran)
    peak = reserve + sum(graph.fixed.values()) + _most_alive(graph, ran, size, born, died)
    cost = sum(amounts[index] for index in ran)
    _check_the_whole(graph, ran, home, wrong)
    _check_the_claim(claim, peak, cost, wrong)
    return Verdict(tuple(wrong), peak, cost)


def _most_alive(graph: Graph, ran: list[int], size: list[int], born: list[int], died: list[int]) -> int:
    """The most bytes allocated while one computation runs: each allocation is there from its birth until just before its death."""
    change = [0] * (len(ran) + 1)
    for bytes_, start, end in zip(size, born, died, strict=True):
        change[start] += bytes_
        change[end] -= bytes_
    alive = itertools.accumulate(change)
    return max((graph.operations[index].workspace + bytes_ for index, bytes_ in zip(ran, alive, strict=False)), default=0)


def _check_the_whole(graph: Graph, ran: list[int], home: dict[int, int | None], wrong: list[str]) -> None:
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
