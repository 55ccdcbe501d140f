"""Replay a schedule on the graph: memory at every step, peak, cost. Every number a user sees comes from here."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from ..errors import VerificationError
from ..model.costs import Costs
from ..model.graph import Graph, Operation
from ..model.memory_model import MemoryModel
from .schedule import Action, Schedule


@dataclass(frozen=True, slots=True)
class Stay:
    """The time that a value stays in memory. Values that share a buffer are one stay; a value that overwrites another starts a new one."""

    value: int
    bytes: int
    first: int
    """The computation that makes the value."""
    end: int
    """The first computation after the value is freed."""
    buffer: int = 0
    """The buffer that holds it; a value that overwrites another takes over its buffer."""


@dataclass(frozen=True, slots=True)
class Simulation:
    """The memory and the cost of a schedule."""

    cost: float
    peak_bytes: int
    peak_computation: int
    """The computation at the peak."""
    memory: tuple[int, ...]
    """Bytes while each computation runs, everything included."""
    recomputed: int
    """Computations beyond the first of each operation, views not counted."""
    stays: tuple[Stay, ...]
    """What is in memory, sorted by first computation: together with fixed memory, reserve and workspace these add up to `memory`."""


def simulate(
    graph: Graph, costs: Costs, schedule: Schedule, *, reserve: int = 0, memory_model: MemoryModel = MemoryModel.GENERIC
) -> Simulation:
    """Replay every step. A buffer exists from the computation that makes it until the last value that shares it is freed."""
    holders: Counter[int] = Counter()
    """How many values in memory share each buffer."""
    buffer_size: dict[int, int] = {}
    buffer_of: dict[int, int] = {}
    """The buffer of each value in memory; views of fixed memory have none and are in `bufferless`."""
    bufferless: set[int] = set()
    register = _Register()
    made = 0
    live = graph.fixed_bytes + reserve
    memory: list[int] = []
    amounts: list[float] = []
    overwrites = _Overwrites(graph, schedule) if memory_model is MemoryModel.ONNXRUNTIME else None
    for number, step in enumerate(schedule.steps):
        if step.action is Action.FREE:
            if step.index in bufferless:
                bufferless.remove(step.index)
                continue
            if step.index not in buffer_of:
                raise VerificationError(f"step {number} frees {graph.values[step.index].name!r}, which is not in memory")
            buffer = buffer_of.pop(step.index)
            holders[buffer] -= 1
            if not holders[buffer]:
                live -= buffer_size.pop(buffer)
                register.leave(buffer, len(memory))
            continue
        operation = graph.operations[step.index]
        for value in operation.inputs:
            if value not in buffer_of and value not in bufferless:
                raise VerificationError(f"step {number} computes {operation.name!r} without its input {graph.values[value].name!r}")
        chosen = overwrites.choose(number, operation, buffer_of, holders, buffer_size) if overwrites and operation.in_place else {}
        for value in operation.outputs:
            if value in buffer_of or value in bufferless:
                raise VerificationError(f"step {number} makes {graph.values[value].name!r} again while it is in memory")
            if value in chosen:
                register.leave(chosen[value], len(memory))
                register.enter(chosen[value], value, buffer_size[chosen[value]], len(memory))
                buffer_of[value] = chosen[value]
                holders[chosen[value]] += 1
                continue
            base = graph.values[value].alias_of
            if operation.view and (base is None or base in bufferless):
                bufferless.add(value)
                continue
            if base is None:
                made += 1
                buffer_size[made] = graph.values[value].bytes
                live += graph.values[value].bytes
                register.enter(made, value, graph.values[value].bytes, len(memory))
                buffer_of[value] = made
            else:
                buffer_of[value] = buffer_of[base]
            holders[buffer_of[value]] += 1
        memory.append(live + operation.workspace)
        amounts.append(costs.amounts[step.index])
    peak = max(memory, default=live)
    repeats = Counter(schedule.computations)
    recomputed = sum(count - 1 for index, count in repeats.items() if not graph.operations[index].view)
    return Simulation(sum(amounts), peak, memory.index(peak) if memory else 0, tuple(memory), recomputed, register.close(len(memory)))


class _Register:
    """Which value is in which buffer, and since which computation."""

    def __init__(self) -> None:
        self._present: dict[int, tuple[int, int, int]] = {}
        self._past: list[Stay] = []

    def enter(self, buffer: int, value: int, size: int, now: int) -> None:
        self._present[buffer] = (value, size, now)

    def leave(self, buffer: int, now: int) -> None:
        self._past.append(Stay(*self._present.pop(buffer), now, buffer))

    def close(self, end: int) -> tuple[Stay, ...]:
        """All stays, including those that last to the end."""
        for buffer in list(self._present):
            self.leave(buffer, end)
        return tuple(sorted(self._past, key=lambda stay: (stay.first, stay.value)))


class _Overwrites:
    """Decides what onnxruntime computes in place: an output overwrites an input of equal size that is freed right afterwards and shares its
    buffer with no other value.

    The last copy of a graph output has its own buffer; earlier copies are not graph outputs in the compiled model.
    """

    def __init__(self, graph: Graph, schedule: Schedule) -> None:
        self._graph = graph
        self._steps = schedule.steps
        self._outputs = frozenset(graph.outputs)
        self._last = {step.index: number for number, step in enumerate(schedule.steps) if step.action is Action.COMPUTE}

    def choose(
        self, number: int, operation: Operation, buffer_of: dict[int, int], holders: Counter[int], buffer_size: dict[int, int]
    ) -> dict[int, int]:
        """For each output that overwrites an input, the buffer it takes over."""
        freed = self._freed_after(number)
        last = self._last[self._steps[number].index] == number
        chosen: dict[int, int] = {}
        for source, target in operation.in_place:
            buffer = buffer_of.get(source)
            if buffer is None or source not in freed or holders[buffer] != 1 or buffer_size[buffer] != self._graph.values[target].bytes:
                continue
            if target not in chosen and buffer not in chosen.values() and not (last and target in self._outputs):
                chosen[target] = buffer
        return chosen

    def _freed_after(self, number: int) -> set[int]:
        """The values that are freed before the next computation."""
        freed: set[int] = set()
        for following in range(number + 1, len(self._steps)):
            step = self._steps[following]
            if step.action is Action.COMPUTE:
                break
            freed.add(step.index)
        return freed
