"""Make the order of a compiled model hold under any settings: every node waits for the one before it.

Where a node reads what the one before it made, it waits anyway; elsewhere a barrier is put between the two. Outputs that nobody reads are
left out or sunk, since onnxruntime frees what was read, and never what was not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass

from onnx import NodeProto

from .barriers import Barriers
from .captures import reads
from .compiled_tensors import CompiledTensors, is_constant
from .elements import BOOL, INT32, INT64
from .in_place import in_place_pairs
from .unread import blanked, unread_outputs

_RARELY_DATA = frozenset({BOOL, INT32, INT64})
"""Element types of shapes, axes and indices. A barrier there would hide them from onnxruntime's own shape arithmetic."""


@dataclass(slots=True)
class _Last:
    """What a node must wait for: that it reads one of `outputs`, or else a barrier on `late`."""

    outputs: Set[str] = frozenset()
    late: str | None = None
    nothing: str | None = None
    """An empty tensor made of `late` already."""


def anchored(
    nodes: Iterable[NodeProto], wanted: Set[str], tensors: CompiledTensors, barriers: Barriers, *, ordered: bool
) -> Iterator[NodeProto]:
    """The nodes with barriers between them if they shall be `ordered`, and with nothing left unread. `wanted` are the graph's outputs."""
    listed = list(nodes)
    read = {name for node in listed for name in reads(node)} | wanted
    last = _Last()
    for node in listed:
        tensors.learn(node)
        if is_constant(node):
            yield node
            continue
        blanked(node, read)
        if ordered and last.late is not None and last.outputs.isdisjoint(reads(node)):
            yield from _wait(node, last, tensors, barriers)
        yield node
        made = [name for name in node.output if name]
        late = next((name for name in made if barriers.can_anchor(name)), None)
        last = _Last(frozenset(made), late) if late is not None else _Last(frozenset(made), last.late, last.nothing)
        for name in unread_outputs(node, read):
            if barriers.can_anchor(name):
                yield from _sink(name, last, barriers, ordered)


def _wait(node: NodeProto, last: _Last, tensors: CompiledTensors, barriers: Barriers) -> Iterator[NodeProto]:
    """A barrier between what came last and this node, on the input that suits best."""
    name = _best_input(node, tensors, barriers)
    if name is None:
        return
    yield from _nothing(last, barriers)
    assert last.nothing is not None
    pairs = in_place_pairs(node, {name}, tensors.seen)
    pinned = any(tensors.declares(target) for _, target in pairs)
    held = barriers.held_back(name, last.nothing, own_dimension=not pinned)
    yield from held
    for position, used in enumerate(node.input):
        if used == name:
            node.input[position] = held[-1].output[0]


def _sink(name: str, last: _Last, barriers: Barriers, ordered: bool) -> Iterator[NodeProto]:
    """Read what nobody reads, so that it is freed; the next node waits for that."""
    if ordered and last.nothing is not None:
        held = barriers.held_back(name, last.nothing, own_dimension=True)
        yield from held
        name = held[-1].output[0]
    nodes = barriers.nothing_of(name)
    yield from nodes
    last.nothing = nodes[-1].output[0]
    last.late = name
    last.outputs = frozenset({last.nothing})


def _nothing(last: _Last, barriers: Barriers) -> Iterator[NodeProto]:
    if last.nothing is None and last.late is not None:
        nodes = barriers.nothing_of(last.late)
        last.nothing = nodes[-1].output[0]
        yield from nodes


def _best_input(node: NodeProto, tensors: CompiledTensors, barriers: Barriers) -> str | None:
    """Data before shapes, computed or fed before stored, first before later ones."""
    names = [name for name in dict.fromkeys(node.input) if name and barriers.can_anchor(name)]
    return min(names, key=lambda name: (name in tensors.stored, tensors.element(name) in _RARELY_DATA), default=None)
