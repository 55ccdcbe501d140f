"""Replay a schedule on the graph: memory at every step, peak, cost. Every number a user sees comes from here."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from .costs import Costs
from .errors import VerificationError
from .graph import Graph
from .schedule import Action, Schedule


@dataclass(frozen=True, slots=True)
class Simulation:
    """What happens when a schedule runs."""

    cost: float
    peak_bytes: int
    peak_computation: int
    """Which computation of the schedule takes the peak."""
    memory: tuple[int, ...]
    """Bytes while each computation runs, everything included."""
    recomputed: int
    """Computations beyond the first of each operation, views not counted."""


def simulate(graph: Graph, costs: Costs, schedule: Schedule, *, reserve: int = 0) -> Simulation:
    """Replay every step. A buffer lives from the computation that makes it until the last value that shares it is freed."""
    holders: Counter[int] = Counter()
    """How many live values share each buffer."""
    buffer_size: dict[int, int] = {}
    buffer_of: dict[int, int] = {}
    """The buffer of each live value; a view of fixed memory has none and is kept in `bufferless`."""
    bufferless: set[int] = set()
    made = 0
    live = graph.fixed_bytes + reserve
    memory: list[int] = []
    amounts: list[float] = []
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
            continue
        operation = graph.operations[step.index]
        for value in operation.inputs:
            if value not in buffer_of and value not in bufferless:
                raise VerificationError(f"step {number} computes {operation.name!r} without its input {graph.values[value].name!r}")
        for value in operation.outputs:
            if value in buffer_of or value in bufferless:
                raise VerificationError(f"step {number} makes {graph.values[value].name!r} again while it is in memory")
            base = graph.values[value].alias_of
            if operation.view and (base is None or base in bufferless):
                bufferless.add(value)
                continue
            if base is None:
                made += 1
                buffer_size[made] = graph.values[value].bytes
                live += graph.values[value].bytes
                buffer_of[value] = made
            else:
                buffer_of[value] = buffer_of[base]
            holders[buffer_of[value]] += 1
        memory.append(live + operation.workspace)
        amounts.append(costs.amounts[step.index])
    peak = max(memory, default=live)
    repeats = Counter(schedule.computations)
    recomputed = sum(count - 1 for index, count in repeats.items() if not graph.operations[index].view)
    return Simulation(sum(amounts), peak, memory.index(peak) if memory else 0, tuple(memory), recomputed)
