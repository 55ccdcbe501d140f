"""The nodes inside a node, read like a graph: the body of a function, a branch, a loop."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from onnx import GraphProto, NodeProto, TypeProto

from ....core.model.costs import unit_costs
from ....core.model.graph import OperationSpec, assemble
from ....core.model.problem import build_problem
from ....core.schedule.sequence import profile
from ..proto.tensor_types import shape_of, tensor_of, type_bytes
from .scope import Model, Scope


class Describe(Protocol):
    """The function `translate`, which reads a list of nodes."""

    def __call__(self, model: Model, scope: Scope, nodes: Sequence[NodeProto], outputs: Sequence[str]) -> list[OperationSpec]: ...


@dataclass(frozen=True, slots=True)
class Inside:
    """What was found inside a node."""

    types: Mapping[str, TypeProto] = field(default_factory=dict)
    """Types of the node's outputs, by name, where they are known."""
    flops: float | None = None
    workspace: int = 0
    troubles: Sequence[str] = ()
    """Why a type is unknown."""
    impossible: bool = False
    """It cannot run, because sizes contradict each other."""


@dataclass(frozen=True, slots=True)
class Body:
    """The outputs of a list of nodes, its work, and the memory it needs while it runs, without the outputs."""

    outputs: list[TypeProto | None]
    flops: float | None
    workspace: int


def subgraph_scope(model: Model, scope: Scope, graph: GraphProto) -> Scope:
    """The scope of a subgraph before its first node, without its inputs."""
    inner = scope.inner()
    inner.declare(graph.output)
    inner.declare(graph.value_info)
    inner.add_stored(graph, model.folder)
    return inner


def read_subgraph(model: Model, inner: Scope, outer: Scope, graph: GraphProto, describe: Describe) -> Body:
    body = read_body(model, inner, graph.node, [value.name for value in graph.output], describe)
    outer.fixed.update(inner.fixed)
    return body


def read_body(model: Model, scope: Scope, nodes: Sequence[NodeProto], outputs: Sequence[str], describe: Describe) -> Body:
    specs = describe(model, scope, nodes, outputs)
    types = [scope.types.get(name) for name in outputs]
    counted = [spec.work.flops for spec in specs if spec.work.flops is not None]
    return Body(types, sum(counted) if counted else None, _peak_beyond_outputs(specs, outputs))


def _peak_beyond_outputs(specs: Sequence[OperationSpec], outputs: Iterable[str]) -> int:
    """The peak of bytes while the nodes run in order, without the outputs, which the caller counts."""
    if not specs:
        return 0
    sizes = {made.name: made.bytes for spec in specs for made in spec.outputs}
    wanted = [name for name in dict.fromkeys(outputs) if name in sizes]
    graph = assemble("body", specs, wanted, {})
    problem = build_problem(graph, unit_costs(graph))
    return max(0, profile(problem, range(problem.count)).peak - sum(sizes[name] for name in wanted))


def by_name(names: Iterable[str], types: Iterable[TypeProto | None]) -> dict[str, TypeProto]:
    """The known types, by output name."""
    return {name: type_ for name, type_ in zip(names, types, strict=False) if name and type_ is not None}


def agree(first: TypeProto | None, second: TypeProto | None) -> bool:
    """True if both types are known and equal."""
    if first is None or second is None or type_bytes(first) is None:
        return False
    one, other = tensor_of(first), tensor_of(second)
    if one is None or other is None:
        return first == second
    return one.elem_type == other.elem_type and shape_of(first) == shape_of(second)
