"""Predict the memory of a model at each node when onnxruntime runs it in the order of its file, by simulating the model's own graph.

The same for an original and for a compiled model. It holds for sessions opened by `io.onnxruntime.session`, and is exact to the byte for
standard operators that onnxruntime runs unchanged. Nodes that onnxruntime expands (functions, half precision without its own kernel) may
also run in another order.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

from ...core.model.costs import unit_costs
from ...core.model.graph import Graph
from ...core.model.memory_model import MemoryModel
from ...core.model.problem import buffers
from ...core.schedule.schedule import Action, Schedule, Step
from ...core.schedule.simulate import simulate
from ..onnx.read.reader import OnnxModel

_BEFORE_OTHERS = frozenset({"Shape", "Size"})
"""onnxruntime runs these as soon as possible, independent of the order, so that their inputs can be freed."""


@dataclass(frozen=True, slots=True)
class NodeMemory:
    """Memory at one node."""

    name: str
    """The name of the operation: that of the node, if it has one."""
    live_bytes: int
    """Bytes of computed tensors right after the node has run and before anything is freed, its inputs and outputs included, without fixed
    memory: `mem_bytes_requested_in_use` of onnxruntime's profiler, minus its value before the first node."""
    peak_bytes: int
    """Everything while it runs: fixed memory, computed tensors, workspace."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """Memory at each node, in the order in which they run; constants are not nodes."""

    nodes: tuple[NodeMemory, ...]
    base_bytes: int
    """Fixed memory: parameters, inputs, constants."""
    peak_bytes: int


def predict(model: OnnxModel) -> Prediction:
    """Predict the memory of a model."""
    graph = model.graph
    order = execution_order(model)
    simulation = simulate(graph, unit_costs(graph), as_onnxruntime_frees(graph, order), memory_model=MemoryModel.ONNXRUNTIME)
    nodes = tuple(
        NodeMemory(graph.operations[index].name, memory - graph.operations[index].workspace - graph.fixed_bytes, memory)
        for index, memory in zip(order, simulation.memory, strict=True)
    )
    return Prediction(nodes, graph.fixed_bytes, max(simulation.peak_bytes, graph.fixed_bytes))


def execution_order(model: OnnxModel) -> list[int]:
    """Operations in the order in which onnxruntime runs them: that of the file, but Shape and Size run as soon as possible."""
    operations = model.graph.operations
    producers = model.graph.producers()
    needs = [{producers[value] for value in operation.inputs} for operation in operations]
    missing = [len(need) for need in needs]
    followers: list[list[int]] = [[] for _ in operations]
    for index, need in enumerate(needs):
        for producer in need:
            followers[producer].append(index)

    def rank(index: int) -> tuple[bool, int, int]:
        return operations[index].kind not in _BEFORE_OTHERS, model.node_of[index], index

    ready = [rank(index) for index, count in enumerate(missing) if not count]
    heapq.heapify(ready)
    order: list[int] = []
    while ready:
        *_, index = heapq.heappop(ready)
        order.append(index)
        for follower in followers[index]:
            missing[follower] -= 1
            if not missing[follower]:
                heapq.heappush(ready, rank(follower))
    return order


def as_onnxruntime_frees(graph: Graph, order: Sequence[int]) -> Schedule:
    """Every operation once, each value freed after its last reader.

    A value that nothing reads is never freed, unless it shares the buffer of another value: a buffer is freed after the last reader of all
    values that share it.
    """
    last: dict[int, int] = {}
    for position, index in enumerate(order):
        last.update(dict.fromkeys(graph.operations[index].inputs, position))
    forever = len(order)
    last.update(dict.fromkeys(graph.outputs, forever))
    owners = buffers(graph)
    held: dict[int, int] = {}
    """The last read of each buffer."""
    for value, position in last.items():
        owner = owners[value]
        if owner is not None:
            held[owner] = max(position, held.get(owner, -1))
    steps: list[Step] = []
    for position, index in enumerate(order):
        operation = graph.operations[index]
        steps.append(Step(Action.COMPUTE, index))
        freed = [value for value in operation.inputs if last[value] == position]
        overwritten = {target for source, target in operation.in_place if (owner := owners[source]) is not None and held[owner] == position}
        freed += [value for value in operation.outputs if value not in last and (operation.view or value in overwritten)]
        steps.extend(Step(Action.FREE, value) for value in sorted(freed))
    return Schedule(tuple(steps))
