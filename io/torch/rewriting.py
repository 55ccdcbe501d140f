"""Write a schedule as a traced graph: its computations in their order, with a copy of a node for each recomputation.

The graph that comes out is functional like the one that went in: a recomputation is a node of its own, and torch frees every value after
its last reader, which is what a schedule assumes. Views and numbers are written where they are needed; the backward pass makes its own, so
that what the forward pass saves are storages and not views of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import torch
from torch.fx import Graph as FxGraph
from torch.fx import Node

from . import batch_norms
from .traced import TracedGraph

FORWARD, BACKWARD = "must_be_in_forward", "must_be_in_backward"
"""Marks of nodes that torch's partitioner obeys."""


@dataclass
class Rewritten:
    """The new graph."""

    graph: FxGraph
    saved: list[Node] = field(default_factory=list)
    """Tensors of the forward pass that the backward pass reads, in the order in which they were made."""
    saved_numbers: list[Node] = field(default_factory=list)
    recomputed: int = 0
    """Copies of nodes beyond the first of each."""


def rewrite(traced: TracedGraph, computations: Sequence[int], original: FxGraph) -> Rewritten:
    """The graph of a schedule, given by its computations: operations of the graph, views included."""
    return _Writer(traced, original).write(computations)


class _Writer:
    def __init__(self, traced: TracedGraph, original: FxGraph) -> None:
        self._traced = traced
        self._original = original
        self._graph = FxGraph()
        self._result = Rewritten(self._graph)
        self._now: dict[Node, Node] = {}
        """For each node of the original, its latest copy."""
        self._part: dict[Node, str] = {}
        """The part of the step that each copy is in."""
        self._current = FORWARD
        self._boundary = traced.boundary
        self._operation = {node: number for number, nodes in enumerate(traced.nodes) for node in nodes}
        self._done: set[int] = set()
        self._saved: set[Node] = set()
        self._held: dict[Node, Node] = {}
        """The outputs of the forward pass, as the caller gets them."""

    def write(self, computations: Sequence[int]) -> Rewritten:
        roles = self._traced.roles
        for node in self._original.nodes:
            if node.op == "placeholder":
                self._now[node] = self._graph.node_copy(node)
                self._part[self._now[node]] = BACKWARD if node in roles.tangents else FORWARD
        for number in computations:
            if number == self._boundary:
                self._held = {node: self._argument(node) for node in (*roles.held, *roles.written.values())}
                self._current = BACKWARD
            elif self._traced.nodes[number]:
                self._compute(number)
        self._output()
        place = {node: number for number, node in enumerate(self._graph.nodes)}
        self._result.saved.sort(key=place.__getitem__)
        return self._result

    def _compute(self, number: int) -> None:
        node, *items = self._traced.nodes[number]
        again = number in self._done and not self._traced.graph.operations[number].view
        if again and self._boundary is not None and batch_norms.updates_statistics(node):
            self._without_statistics(node, items)
        else:
            for source in (node, *items):
                self._copy(source)
        self._result.recomputed += again
        self._done.add(number)

    def _copy(self, node: Node) -> Node:
        return self._put(node, self._graph.node_copy(node, self._argument))

    def _put(self, node: Node, copied: Node) -> Node:
        if self._boundary is not None:
            copied.meta["partitioner_tag"] = self._current
        self._now[node] = copied
        self._part[copied] = self._current
        return copied

    def _without_statistics(self, node: Node, items: Iterable[Node]) -> None:
        """A recomputation of a batch normalization."""
        stated = batch_norms.arguments_without_statistics(node)
        arguments = tuple(self._argument(each) if isinstance(each, Node) else each for each in stated)
        copied = self._graph.call_function(batch_norms.WITHOUT_STATISTICS, arguments)
        copied.meta = {**node.meta, "val": tuple(node.meta["val"][: batch_norms.RESULTS])}
        self._put(node, copied)
        for item in items:
            if item.args[1] in range(batch_norms.RESULTS):
                self._copy(item)

    def _argument(self, node: Node) -> Node:
        """The copy of a node to read now."""
        node = self._traced.same.get(node, node)
        found = self._now.get(node)
        if found is not None and self._part[found] == self._current:
            return found
        number = self._operation.get(node)
        if number is not None and self._traced.graph.operations[number].view:
            self._compute(number)
            return self._now[node]
        if number is None and node.op != "placeholder":
            return self._copy(node)
        assert found is not None, f"{node.name} is read before it is computed"
        self._save(found)
        return found

    def _save(self, node: Node) -> None:
        if node not in self._saved:
            self._saved.add(node)
            is_tensor = isinstance(node.meta.get("val"), torch.Tensor)
            (self._result.saved if is_tensor else self._result.saved_numbers).append(node)

    def _output(self) -> None:
        """The outputs in their order: those of the forward pass as the caller got them, the others as they are now."""
        output = next(iter(self._original.find_nodes(op="output")))
        count = self._traced.roles.forward_count
        returned = [
            each if not isinstance(each, Node) else self._held[each] if place < count and each in self._held else self._argument(each)
            for place, each in enumerate(output.args[0])
        ]
        written = self._graph.output(type(output.args[0])(returned))
        written.meta = dict(output.meta)
