"""What a model takes when onnxruntime runs it in the order of its file, node by node: the simulator's answer for the model's own graph.

The same for an original and for a compiled model. It holds for sessions opened by `io.runtime.session`; there it is exact to the byte for
models of standard operators that onnxruntime runs as they are. What it splits up (functions, half precision without a kernel of its own)
it may also run in another order.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...core.costs import unit_costs
from ...core.graph import Graph
from ...core.runtime import Runtime
from ...core.schedule import Action, Schedule, Step
from ...core.simulate import simulate
from .reader import OnnxModel


@dataclass(frozen=True, slots=True)
class NodeMemory:
    """Memory at one node."""

    name: str
    """Of the operation: the node's own where it has one."""
    live_bytes: int
    """Computed tensors when the node has just run and nothing is freed yet, its inputs and outputs included, without fixed memory:
    what onnxruntime's profiler calls `mem_bytes_requested_in_use`, less what that says before the first node."""
    peak_bytes: int
    """Everything while it runs: fixed memory, computed tensors, workspace."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """Memory at each node, in the order of the file; constants are no nodes."""

    nodes: tuple[NodeMemory, ...]
    base_bytes: int
    """Fixed memory: parameters, inputs, constants."""
    peak_bytes: int


def predict(model: OnnxModel) -> Prediction:
    """Run the model in thought, in the order of its file as far as that is topological."""
    graph = model.graph
    simulation = simulate(graph, unit_costs(graph), as_onnxruntime_frees(graph), runtime=Runtime.ONNXRUNTIME)
    nodes = tuple(
        NodeMemory(operation.name, memory - operation.workspace - graph.fixed_bytes, memory)
        for operation, memory in zip(graph.operations, simulation.memory, strict=True)
    )
    return Prediction(nodes, graph.fixed_bytes, max(simulation.peak_bytes, graph.fixed_bytes))


def as_onnxruntime_frees(graph: Graph) -> Schedule:
    """Every operation once, each value freed after its last reader. What nobody reads is never freed: it frees what was read."""
    last: dict[int, int] = {}
    for index, operation in enumerate(graph.operations):
        last.update(dict.fromkeys(operation.inputs, index))
    for output in graph.outputs:
        last.pop(output, None)
    freed: list[list[int]] = [[] for _ in graph.operations]
    for value, index in last.items():
        freed[index].append(value)
    steps: list[Step] = []
    for index, values in enumerate(freed):
        steps.append(Step(Action.COMPUTE, index))
        steps.extend(Step(Action.FREE, value) for value in sorted(values))
    return Schedule(tuple(steps))
