"""Predict what a process takes that runs a compiled model with `checkmate.session`: more than the tensors.

- The arena: tensors lie in one block, with gaps between them. The block is simulated (`arena`), and the session is opened with it.
- The arena's own lists, 8 bytes for every 256 bytes of its block.
- What kernels allocate outside of the arena.
- The session itself: the graph, a kernel for every node, threads, and code that is loaded when it first runs.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ...core.model.costs import unit_costs
from ...core.model.graph import Graph
from ...core.model.memory_model import MemoryModel
from ...core.schedule.schedule import Schedule
from ...core.schedule.simulate import Simulation, simulate
from ..onnx.proto.tensor_types import shape_of
from ..onnx.read.reader import OnnxModel
from .arena import HANDLE_BYTES, LARGEST_BLOCK, UNIT, Arena, ArenaSettings, Event

_WASTES = (1, *(2**power for power in range(9, 28)))
"""How much of a chunk may stay unused instead of being split off; which of these leaves the smallest gaps depends on the model: by up to
20 % of the block in 7 training graphs, at 0.1 to 0.5 s for all of them."""
_SESSION_BYTES = 12_000_000
"""Of a session without nodes: 8.7 MB when it is opened, 2.3 to 3.6 MB when it first runs (onnxruntime 1.31, 2 threads, 15 models)."""
_NODE_BYTES, _BARRIER_NODE_BYTES = 5_100, 4_100
"""Of each node: 4.9 to 5.2 kB, and 4.0 to 4.1 kB if it belongs to a barrier or a sink."""
_WORKSPACE = -1
_INDEX_BYTES = 8


@dataclass(frozen=True, slots=True)
class ArenaPlan:
    """How to open the arena, and what it will take."""

    block_bytes: int
    """Computed tensors and workspace, with the gaps between them."""
    most_waste: int
    """The setting `max_dead_bytes_per_chunk`."""

    @property
    def handle_bytes(self) -> int:
        return self.block_bytes // UNIT * HANDLE_BYTES


@dataclass(frozen=True, slots=True)
class ProcessMemory:
    """What the process takes, everything included."""

    fixed_bytes: int
    """Inputs, parameters and constants."""
    arena: ArenaPlan
    heap_bytes: int
    """What a kernel takes outside of the arena, at most."""
    session_bytes: int

    @property
    def arena_bytes(self) -> int:
        """Fixed memory and the block of the arena."""
        return self.fixed_bytes + self.arena.block_bytes

    @property
    def process_bytes(self) -> int:
        return self.arena_bytes + self.arena.handle_bytes + self.heap_bytes + self.session_bytes


def predict_process(model: OnnxModel, schedule: Schedule, *, nodes: int, barrier_nodes: int = 0) -> ProcessMemory:
    """For a schedule of a model, compiled into this many nodes, of which some belong to barriers and sinks."""
    session = _SESSION_BYTES + _NODE_BYTES * (nodes - barrier_nodes) + _BARRIER_NODE_BYTES * barrier_nodes
    return ProcessMemory(model.graph.fixed_bytes, plan_arena(model.graph, schedule), _heap_bytes(model), session)


def plan_arena(graph: Graph, schedule: Schedule) -> ArenaPlan:
    """The setting that leaves the smallest gaps, and the block that the schedule then needs."""
    simulation = simulate(graph, unit_costs(graph), schedule, memory_model=MemoryModel.ONNXRUNTIME)
    events = list(allocation_events(graph, schedule.computations, simulation))
    return min((ArenaPlan(block_needed(events, waste), waste) for waste in _WASTES), key=lambda plan: plan.block_bytes)


def block_needed(events: Sequence[Event], most_waste: int) -> int:
    """The smallest block in which no further region is needed, or nearly so: in a block of unlimited size, chunks are never cut from a
    small rest at its end, so a little more may be needed in a real one."""
    size = _touched(events, ArenaSettings(_UNLIMITED, most_waste))
    for _ in range(_TRIES):
        if size > LARGEST_BLOCK:
            break
        arena = Arena(ArenaSettings(size, most_waste))
        arena.run(events)
        if len(arena.regions) <= 1:
            break
        size += max(UNIT, size // _STEP // UNIT * UNIT)
    return size


_UNLIMITED = 2**48
_TRIES, _STEP = 16, 64
"""A block that is too small grows by 1/64 at most 16 times."""


def _touched(events: Sequence[Event], settings: ArenaSettings) -> int:
    arena = Arena(settings)
    arena.run(events)
    return max(arena.touched_bytes, UNIT)


def allocation_events(graph: Graph, computations: Sequence[int], simulation: Simulation) -> Iterator[Event]:
    """What onnxruntime asks of its arena: a node allocates its outputs in their order, then its workspace; afterwards, values are freed."""
    begun: dict[int, list[int]] = defaultdict(list)
    ended: dict[int, list[int]] = defaultdict(list)
    sizes: dict[int, int] = {}
    ends: dict[int, int] = {}
    for stay in simulation.stays:
        if stay.buffer not in sizes:
            sizes[stay.buffer] = stay.bytes
            begun[stay.first].append(stay.buffer)
        ends[stay.buffer] = stay.end
    for buffer, end in ends.items():
        ended[end].append(buffer)
    for number, index in enumerate(computations):
        yield from (Event(buffer, None) for buffer in ended.get(number, ()))
        yield from (Event(buffer, sizes[buffer]) for buffer in sorted(begun.get(number, ())))
        if graph.operations[index].workspace:
            yield Event(_WORKSPACE, graph.operations[index].workspace)
            yield Event(_WORKSPACE, None)


def _heap_bytes(model: OnnxModel) -> int:
    """ScatterElements copies its indices into a list of its own."""
    indices = (node.input[1] for node in model.proto.graph.node if node.op_type == "ScatterElements" and len(node.input) > 1)
    shapes = (shape_of(model.types.get(name)) for name in indices)
    return max((_INDEX_BYTES * math.prod(shape) for shape in shapes if shape is not None), default=0)
