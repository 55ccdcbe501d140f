"""From a traced graph of torch, forward and backward pass in one, to a graph of operations and values.

Values are storages: an operation that returns views of what it reads is a view, and an item of a tuple is a value of the operation that
made the tuple. Computations that are equal are merged, as torch's own partitioner does before it decides what to save.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch.fx import Graph as FxGraph
from torch.fx import Node

from ...core.errors import InputError
from ...core.model.graph import Graph, OperationSpec, ValueSpec, Work, assemble
from . import batch_norms
from .boundary import BOUNDARY, LEFT, boundary_operation, is_held_by_engine
from .flop_counts import flops_of
from .internals import at_sizes, is_higher_order, is_operator, size_hint
from .pinning import can_be_merged, has_order, runs_once
from .roles import CONSTANTS, Roles
from .storages import Storages, is_nested, tensors_in


@dataclass(frozen=True)
class TracedGraph:
    """A graph, and the nodes behind its operations."""

    graph: Graph
    nodes: tuple[tuple[Node, ...], ...]
    """For each operation of the graph, the node that computes it and the nodes that take the items of its tuple; empty for the boundary and
    for operations that write nothing."""
    same: dict[Node, Node]
    """For each node that was merged into an equal one, that one."""
    roles: Roles
    device: torch.device
    sizes: Mapping[Any, Any] = field(default_factory=dict)
    """Symbols and their values, if it was read at other sizes than it was traced with."""

    @property
    def boundary(self) -> int | None:
        """The operation between forward and backward pass; None for a program that runs in one part."""
        return next((number for number, found in enumerate(self.graph.operations) if found.name == BOUNDARY), None)

    def node(self, number: int) -> Node | None:
        """The node that computes an operation."""
        return self.nodes[number][0] if self.nodes[number] else None


def read_traced(graph: FxGraph, roles: Roles, name: str, sizes: Mapping[Any, Any] | None = None, *, merge: bool = True) -> TracedGraph:
    """Read a traced graph whose nodes have fake tensors in `meta["val"]`, at these sizes of its symbols or at those it was traced with.
    With `merge`, equal computations are one; without, a recomputation in the graph stays one."""
    if not sizes:
        return _Reader(graph, roles, name, merge).read()
    with at_sizes(sizes):
        return replace(_Reader(graph, roles, name, merge).read(), sizes=sizes)


def graph_device(placeholders: Iterable[Node]) -> torch.device:
    """The device that holds most of the fixed memory; memory is planned there."""
    sizes: dict[torch.device, int] = {}
    for node in placeholders:
        value = node.meta.get("val")
        if isinstance(value, torch.Tensor):
            sizes[value.device] = sizes.get(value.device, 0) + value.element_size() * (size_hint(value.numel()) or 0)
    return max(sizes, key=lambda device: sizes[device], default=torch.device("cpu"))


@dataclass
class _Found:
    """An operation as it is read."""

    spec: OperationSpec
    nodes: list[Node] = field(default_factory=list)


class _Reader:
    def __init__(self, graph: FxGraph, roles: Roles, name: str, merge: bool) -> None:
        self._fx = graph
        self._merge = merge
        self._roles = roles
        self._name = name
        self._placeholders = [node for node in graph.nodes if node.op == "placeholder"]
        self._storages = Storages(graph_device(self._placeholders))
        self._fixed: dict[int, str] = {}
        """Storages of fixed memory, and their kinds."""
        self._fixed_bytes: dict[str, int] = {}
        self._owner: dict[int, str] = {}
        """The value that a storage belongs to."""
        self._values: dict[Node, tuple[str, ...]] = {}
        """What must be in memory so that a node can be read: one value, or several for a tuple. Nothing for fixed memory and numbers."""
        self._items: dict[Node, dict[int, str]] = {}
        """The values of an operation that returns a tuple, by place."""
        self._same: dict[Node, Node] = {}
        self._seen: dict[Any, Node] = {}
        self._found: dict[str, _Found] = {}
        self._producer: dict[str, str] = {}
        self._owners: dict[str, str | None] = {}
        """For each value the one whose storage it is or shares; None for a view of fixed memory."""
        self._order: str | None = None
        self._forward_order: str | None = None
        """The value that the next operation with a fixed place among its like reads; and that of the last one in the forward pass."""
        self._before_boundary: list[str] = []
        """Values without bytes that make an operation run in the first part."""
        self._written = {self._storages.identity(node.meta["val"]) for node in roles.written}
        self._outputs = self._output_storages()
        self._tangents = frozenset(roles.tangents)

    def read(self) -> TracedGraph:
        for node in self._placeholders:
            self._placeholder(node)
        for node in self._fx.nodes:
            if node.op == "get_attr":
                self._constant(node)
            elif node.op == "call_function":
                self._call(node)
            elif node.op not in ("placeholder", "output"):
                raise InputError(f"{self._name}: a node of kind {node.op!r} ({node.name}) is not supported")
        if self._roles.tangents:
            self._open_backward()
            self._pin_held()
        found = self._found
        held = (*self._roles.held, *self._roles.returned, *filter(is_held_by_engine, self._roles.tangents))
        outputs = [value for node in held for value in self._read(node)]
        outputs += [LEFT] if LEFT in self._producer else []
        graph = assemble(self._name, (each.spec for each in found.values()), outputs, self._fixed_bytes)
        nodes = tuple(tuple(found[operation.name].nodes) for operation in graph.operations)
        return TracedGraph(graph, nodes, self._same, self._roles, self._storages.device)

    # Placeholders and constants

    def _placeholder(self, node: Node) -> None:
        value = node.meta.get("val")
        if node not in self._tangents and isinstance(value, torch.Tensor):
            self._hold(node, value, self._roles.fixed.get(node, "inputs"))

    def _constant(self, node: Node) -> None:
        value = node.meta.get("val")
        if isinstance(value, torch.Tensor):
            self._hold(node, value, CONSTANTS)

    def _hold(self, node: Node, value: torch.Tensor, kind: str) -> None:
        """Fixed memory; tensors that share a storage count once."""
        identity = self._storages.identity(value)
        if identity not in self._fixed:
            self._fixed[identity] = kind
            self._fixed_bytes[kind] = self._fixed_bytes.get(kind, 0) + self._storages.bytes(value, node.name)

    # Operations

    def _call(self, node: Node) -> None:
        if self._reads_tangents(node):
            self._open_backward()
        value = node.meta.get("val")
        source = self._same.get(node.args[0], node.args[0]) if node.args and isinstance(node.args[0], Node) else None
        if node.target is operator.getitem and source in self._items:
            self._item(node, source, value)
            return
        if not tensors_in(value) and not self._reads(node):
            return
        if is_nested(value):
            raise InputError(f"{self._name}: {node.name} ({node.target}) returns a tuple in a tuple, which is not supported")
        if self._merged(node, value):
            return
        reads = self._reads(node)
        made, alias, is_view = self._outputs_of(node, value, reads)
        if is_view and not self._is_effect(node):
            self._add(node, OperationSpec(node.name, str(node.target), reads, alias, view=True, backward=node in self._roles.backward))
        else:
            self._operation(node, value, reads, made)

    def _item(self, node: Node, source: Node, value: Any) -> None:
        """One item of a tuple."""
        place = node.args[1]
        kept = self._seen.setdefault((source, place), node)
        if kept is not node:
            self._same[node] = kept
        elif isinstance(place, int):
            found = self._items[source].get(place)
            self._values[node] = () if found is None else (found,)
            self._found[source.name].nodes.append(node)

    def _merged(self, node: Node, value: Any) -> bool:
        """True if an equal computation was read before; then this one is it. What is returned to the caller stays apart."""
        if (
            not self._merge
            or not can_be_merged(node)
            or any(self._storages.identity(tensor) in self._outputs for _, tensor in tensors_in(value))
        ):
            return False
        key = (node.target, _hashable(node.args, self._same), _hashable(node.kwargs, self._same))
        kept = self._seen.setdefault(key, node)
        if kept is node:
            return False
        self._same[node] = kept
        for (_, duplicate), (_, original) in zip(tensors_in(value), tensors_in(kept.meta["val"]), strict=True):
            self._storages.join(duplicate, original)
        return True

    def _outputs_of(self, node: Node, value: Any, reads: tuple[str, ...]) -> tuple[tuple[ValueSpec, ...], tuple[ValueSpec, ...], bool]:
        """What it makes as an operation and as a view, and whether all of it lies in memory that is in use already."""
        made: list[ValueSpec] = []
        alias: list[ValueSpec] = []
        is_view = True
        for place, tensor in tensors_in(value):
            name = node.name if place is None else f"{node.name}.{place}"
            identity = self._storages.identity(tensor)
            owner = self._owner.get(identity)
            base = None if owner is None else next((read for read in reads if self._owners[read] == owner), None)
            made.append(ValueSpec(name, 0 if identity in self._fixed else self._storages.bytes(tensor, node.name)))
            alias.append(ValueSpec(name, 0, base))
            is_view &= identity in self._fixed or base is not None
        return tuple(made), tuple(alias), bool(made) and is_view

    def _operation(self, node: Node, value: Any, reads: tuple[str, ...], made: tuple[ValueSpec, ...]) -> None:
        for (_, tensor), each in zip(tensors_in(value), made, strict=True):
            self._owner.setdefault(self._storages.identity(tensor), each.name)
        made = made or (ValueSpec(node.name, 0),)
        extra: list[ValueSpec] = []
        once = runs_once(node) or not tensors_in(value)
        if has_order(node):
            reads = (*reads, *([self._order] if self._order else []))
            self._order = f"{node.name}.order"
            extra.append(ValueSpec(self._order, 0))
        if self._roles.tangents and batch_norms.updates_statistics(node):
            reads = (*reads, self._statistics(node, made))
            made = batch_norms.without_statistics(made)
        elif BOUNDARY not in self._found and self._reads_written(node):
            once = True
            extra.append(ValueSpec(f"{node.name}.read", 0))
            self._before_boundary.append(extra[-1].name)
        work = Work(flops=flops_of(node, value), moved_bytes=self._moved_bytes(node, value))
        spec = OperationSpec(
            name=node.name,
            kind=_kind(node),
            inputs=reads,
            outputs=(*made, *extra),
            work=work,
            backward=node in self._roles.backward,
            pinned=once,
        )
        self._add(node, spec)

    def _add(self, node: Node, spec: OperationSpec) -> None:
        self._register(spec, [node])
        tensors = tensors_in(node.meta.get("val"))
        if tensors and tensors[0][0] is not None:
            names = {place: f"{node.name}.{place}" for place, _ in tensors if place is not None}
            self._items[node] = names
            self._values[node] = tuple(names.values())
        else:
            self._values[node] = (node.name,) if spec.outputs else ()

    def _statistics(self, node: Node, made: tuple[ValueSpec, ...]) -> str:
        """The new running statistics are values of an operation of their own, which runs once; see `batch_norms`."""
        spec = batch_norms.statistics_operation(node, made, tuple(self._read_all(batch_norms.running_statistics(node))))
        self._register(spec)
        return spec.outputs[-1].name

    def _register(self, spec: OperationSpec, nodes: Iterable[Node] = ()) -> None:
        self._found[spec.name] = _Found(spec, list(nodes))
        for made in spec.outputs:
            self._producer[made.name] = spec.name
            self._owners[made.name] = (None if made.alias_of is None else self._owners[made.alias_of]) if spec.view else made.name

    # The boundary

    def _open_backward(self) -> None:
        if not self._roles.tangents or BOUNDARY in self._found:
            return
        tangents = [ValueSpec(node.name, self._storages.bytes(node.meta["val"], node.name)) for node in self._roles.tangents]
        roles = self._roles
        self._register(boundary_operation([], tangents, inner_peak_bytes=roles.inner_peak_bytes, inner_left_bytes=roles.inner_left_bytes))
        for node, made in zip(roles.tangents, tangents, strict=True):
            self._owner[self._storages.identity(node.meta["val"])] = made.name
            self._values[node] = (made.name,)
        self._forward_order = self._order

    def _pin_held(self) -> None:
        """Complete the boundary, now that every output of the forward pass is known."""
        reads = [value for node in (*self._roles.held, *self._roles.written.values()) for value in self._read(node)]
        order = [self._forward_order] if self._forward_order else []
        boundary = self._found[BOUNDARY]
        boundary.spec = replace(boundary.spec, inputs=tuple(dict.fromkeys((*reads, *self._before_boundary, *order))))
        for node in self._roles.held:
            for value in self._read(node):
                found = self._found[self._producer[self._owners[value] or value]]
                if not found.spec.view:
                    found.spec = replace(found.spec, pinned=True)

    # What a node reads

    def _read(self, node: Node) -> tuple[str, ...]:
        return self._values.get(self._same.get(node, node), ())

    def _read_all(self, nodes: Iterable[Node]) -> Iterator[str]:
        for node in nodes:
            yield from self._read(node)

    def _reads(self, node: Node) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self._read_all(node.all_input_nodes)))

    def _reads_tangents(self, node: Node) -> bool:
        return BOUNDARY not in self._found and any(source in self._tangents for source in node.all_input_nodes)

    def _reads_written(self, node: Node) -> bool:
        """True if it reads fixed memory that the step writes to after the forward pass, itself or through a view."""
        if not self._written:
            return False
        tensors = (tensor for source in node.all_input_nodes for _, tensor in tensors_in(source.meta.get("val")))
        return any(self._storages.identity(tensor) in self._written for tensor in tensors)

    def _is_effect(self, node: Node) -> bool:
        return is_higher_order(node.target) or (is_operator(node.target) and node.target._schema.is_mutable)

    def _moved_bytes(self, node: Node, value: Any) -> int:
        tensors = [tensor for source in node.all_input_nodes for _, tensor in tensors_in(source.meta.get("val"))]
        tensors += [tensor for _, tensor in tensors_in(value)]
        return sum(self._storages.bytes(tensor, node.name) for tensor in tensors)

    def _output_storages(self) -> set[int]:
        nodes = (*self._roles.held, *self._roles.returned, *self._roles.written.values())
        return {self._storages.identity(tensor) for node in nodes for _, tensor in tensors_in(node.meta.get("val"))}


def _kind(node: Node) -> str:
    return str(node.target) if is_operator(node.target) else getattr(node.target, "__name__", str(node.target))


def _hashable(argument: Any, same: dict[Node, Node]) -> Any:
    """An argument as a key. Types count: 1 and 1.0 are equal but not the same argument."""
    if isinstance(argument, Node):
        return same.get(argument, argument)
    if isinstance(argument, (tuple, list)):
        return tuple(_hashable(item, same) for item in argument)
    if isinstance(argument, dict):
        return tuple((key, _hashable(item, same)) for key, item in argument.items())
    if isinstance(argument, slice):
        return ("slice", _hashable((argument.start, argument.stop, argument.step), same))
    return type(argument), repr(argument)
