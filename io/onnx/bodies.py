"""What a node holds, read like a graph of its own: the body of a function, a branch, a loop."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from onnx import GraphProto, NodeProto, TypeProto

from ...core.costs import unit_costs
from ...core.graph import OperationSpec, assemble
from ...core.problem import build_problem
from ...core.sequence import profile
from .scope import Model, Scope
from .tensor_types import shape_of, tensor_of, type_bytes


class Describe(Protocol):
    """How `translate` reads a list of nodes."""

    def __call__(self, model: Model, scope: Scope, nodes: Sequence[NodeProto], outputs: Sequence[str]) -> list[OperationSpec]: ...


@dataclass(frozen=True, slots=True)
class Inside:
    """What was found inside a node."""

    types: Mapping[str, TypeProto] = field(default_factory=dict)
    """Types of the node's outputs, by name, where they are known."""
    flops: float | None = None
    workspace: int = 0
    troubles: Sequence[str] = ()
    """Why something stayed unknown."""


@dataclass(frozen=True, slots=True)
class Body:
    """What a list of nodes gives back, computes, and takes while it runs, besides what it gives back."""

    outputs: list[TypeProto | None]
    flops: float | None
    workspace: int


def subgraph_scope(model: Model, scope: Scope, graph: GraphProto) -> Scope:
    """What a subgraph sees before any of its nodes has run, its inputs aside."""
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
    """Bytes taken while the nodes run in order, less those of the outputs, which whoever calls counts anyway."""
    if not specs:
        return 0
    sizes = {made.name: made.bytes for spec in specs for made in spec.outputs}
    wanted = [name for name in dict.fromkeys(outputs) if name in sizes]
    graph = assemble("body", specs, wanted, {})
    problem = build_problem(graph, unit_costs(graph))
    return max(0, profile(problem, range(problem.count)).peak - sum(sizes[name] for name in wanted))


def by_name(names: Iterable[str], types: Iterable[TypeProto | None]) -> dict[str, TypeProto]:
    """The known ones of the types, by output name."""
    return {name: type_ for name, type_ in zip(names, types, strict=False) if name and type_ is not None}


def agree(first: TypeProto | None, second: TypeProto | None) -> bool:
    """Are both known and the same?"""
    if first is None or second is None or type_bytes(first) is None:
        return False
    one, other = tensor_of(first), tensor_of(second)
    if one is None or other is None:
        return first == second
    return one.elem_type == other.elem_type and shape_of(first) == shape_of(second)
