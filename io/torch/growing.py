"""A training step at any batch size, from its traces at three.

Sizes of values grow linearly with the batch, so two traces say what the graph is at any size, and the third one checks it. If the structure
or a size is not as predicted, every size is traced for itself. Workspace is measured at these small sizes, and is taken to grow with the
batch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import ceil

from ...core.model.graph import Graph, Operation, Value, Work

SIZES = (2, 4, 7)
"""Not 1: torch treats tensors of one row as a case of its own."""


class GrowingGraph:
    """The graph at any size. `trace` returns it at one, without workspace; `workspaces` measures them by name."""

    def __init__(self, trace: Callable[[int], Graph], workspaces: Callable[[int], Mapping[str, int]]) -> None:
        self._trace = trace
        self._known: dict[int, Graph] = {size: trace(size) for size in SIZES}
        self.is_linear = self._predicted(SIZES[2]) == self._known[SIZES[2]]
        measured = {size: workspaces(size) for size in SIZES[1:]}
        names = {name for found in measured.values() for name in found}
        self._rates = {name: max(found.get(name, 0) / size for size, found in measured.items()) for name in names}

    def at(self, size: int) -> Graph:
        """The graph at a size, with the workspace that is expected there."""
        if size not in self._known:
            predicted = self._predicted(size) if self.is_linear and size >= min(SIZES) else None
            self._known[size] = self._trace(size) if predicted is None else predicted
        return self.with_workspace(self._known[size], size)

    def with_workspace(self, graph: Graph, size: int) -> Graph:
        """A graph of this size, with the workspace that is expected there."""
        operations = (replace(each, workspace=each.workspace + ceil(self._rates.get(each.name, 0.0) * size)) for each in graph.operations)
        return replace(graph, operations=tuple(operations))

    def _predicted(self, size: int) -> Graph | None:
        """None if the two traces do not have the same structure."""
        low, high = (self._known[each] for each in SIZES[:2])
        if len(low.operations) != len(high.operations) or len(low.values) != len(high.values) or low.outputs != high.outputs:
            return None
        share = (size - SIZES[0]) / (SIZES[1] - SIZES[0])
        operations = [_operation(one, two, share) for one, two in zip(low.operations, high.operations, strict=True)]
        values = [_value(one, two, share) for one, two in zip(low.values, high.values, strict=True)]
        fixed = {kind: _between(low.fixed[kind], high.fixed.get(kind, 0), share) for kind in low.fixed}
        if any(each is None for each in (*operations, *values)) or set(low.fixed) != set(high.fixed):
            return None
        return replace(low, operations=tuple(filter(None, operations)), values=tuple(filter(None, values)), fixed=fixed)


def _between(low: int, high: int, share: float) -> int:
    return max(0, low + round((high - low) * share))


def _operation(low: Operation, high: Operation, share: float) -> Operation | None:
    one, two = low.work, high.work
    flops = None if one.flops is None or two.flops is None else max(0.0, one.flops + (two.flops - one.flops) * share)
    moved = None if one.moved_bytes is None else _between(one.moved_bytes, two.moved_bytes or 0, share)
    grown = replace(low, workspace=_between(low.workspace, high.workspace, share), work=Work(None, flops, moved))
    return grown if replace(grown, workspace=0, work=Work()) == replace(high, workspace=0, work=Work()) else None


def _value(low: Value, high: Value, share: float) -> Value | None:
    return replace(low, bytes=_between(low.bytes, high.bytes, share)) if replace(low, bytes=0) == replace(high, bytes=0) else None
