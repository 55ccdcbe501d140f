"""Make a compiled model keep order and memory in any session: every node waits for the one before it, and tensors share no buffers.

If a node reads an output of the one before it, it waits anyway; otherwise a barrier is added between the two. Views wait for nothing: they
allocate nothing, and what they show is in memory anyway. Outputs that nothing reads are removed, or read by an extra node, because
onnxruntime frees only values that were read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass

from onnx import NodeProto

from ..proto.captures import reads
from ..proto.elements import BOOL, INT32, INT64
from ..proto.rebinding import NOTHING
from ..proto.view_operators import is_view
from ..read.in_place import in_place_pairs
from .barriers import EMPTYING, Barriers
from .compiled_tensors import CompiledTensors, is_constant
from .disguise import Disguise, is_complete
from .unread import blanked, unread_outputs

_RARELY_DATA = frozenset({BOOL, INT32, INT64})
"""Element types of shapes, axes and indices. A barrier would hide them from onnxruntime's own shape arithmetic."""
_SMALL = 1024
"""Bytes below which it does not matter whether a buffer is shared."""


@dataclass(slots=True)
class _Last:
    """How a node waits for the one before it: it reads one of `outputs`, or a barrier on `late`."""

    outputs: Set[str] = frozenset()
    late: str | None = None
    token: str | None = None
    """The token of barriers on `late`, after the first barrier was made."""


class Anchors:
    """Makes every node wait for the one before it."""

    def __init__(self, tensors: CompiledTensors, barriers: Barriers, disguise: Disguise, wanted: Set[str], read: Set[str]) -> None:
        """`wanted` are the graph outputs, `read` the tensors that a node reads."""
        self._tensors = tensors
        self._barriers = barriers
        self._disguise = disguise
        self._wanted = wanted
        self._read = read | wanted
        self._last = _Last()
        self._casts: set[str] = set()

    def chained(self, nodes: Iterable[NodeProto]) -> Iterator[NodeProto]:
        """The nodes in their order, with the nodes that enforce it."""
        for node in nodes:
            self._tensors.learn(node)
            if is_constant(node):
                yield node
                continue
            blanked(node, self._read)
            if is_view(node, self._wanted if self._barriers.can_hold_views else NOTHING):
                yield node
                self._tensors.follow(self._tensors.outputs_of(node))
                if node.input[0] in self._last.outputs:
                    self._last.outputs |= {*node.output}
                continue
            if self._last.late is not None:
                for name in self._held_back(node):
                    yield from self._barrier(name, node)
            self._tell_shape_of_what_is_overwritten(node)
            yield node
            self._tensors.follow(self._tensors.outputs_of(node))
            if node.op_type == "Cast":
                self._casts.update(node.output)
            made = [name for name in node.output if name]
            late = next((name for name in made if self._barriers.can_anchor(name)), None)
            if late is None:
                self._last.outputs = frozenset(made)
            else:
                self._last = _Last(frozenset(made), late)
            for name in unread_outputs(node, self._read):
                if self._barriers.can_anchor(name):
                    yield from self._sink(name)

    def _held_back(self, node: NodeProto) -> list[str]:
        """The inputs that a node must read through a barrier: to make it wait, and to hide the shapes of its outputs."""
        best = self._best_input(node)
        waits = not self._last.outputs.isdisjoint(reads(node))
        if best is None or (waits and not self._could_be_tied(node) and not self._could_be_left_out(node)):
            return []
        telling = [name for name in dict.fromkeys(node.input) if self._tells_shape(name)] if self._gets_memory(node) else []
        return telling or [best]

    def _barrier(self, name: str, node: NodeProto) -> Iterator[NodeProto]:
        """Let a node read an input only after the last node, and let later nodes wait for this one."""
        if self._last.token is None and self._last.late is not None:
            yield from self._token_of(self._last.late)
        assert self._last.token is not None
        held = self._barriers.held_back(name, self._last.token)
        yield from held
        after = held[-1].output[0]
        for position, used in enumerate(node.input):
            if used == name:
                node.input[position] = after
        self._last = _Last(late=after)

    def _sink(self, name: str) -> Iterator[NodeProto]:
        """Read values that nothing else reads, so that they are freed; the next node waits for this."""
        if self._last.token is not None:
            held = self._barriers.held_back(name, self._last.token)
            yield from held
            name = held[-1].output[0]
        yield from self._token_of(name)
        assert self._last.token is not None
        self._last.outputs = frozenset({self._last.token})

    def _token_of(self, name: str) -> Iterator[NodeProto]:
        nodes = self._barriers.token_of(name)
        for node in nodes:
            if node.op_type in EMPTYING:
                self._disguise.empty(node.output[0], self._tensors.element(node.output[0]) or 0)
        self._last.token = nodes[-1].output[0]
        yield from nodes

    def _best_input(self, node: NodeProto) -> str | None:
        """Order of preference: data before shapes, computed or fed values before stored ones, earlier inputs before later ones."""
        names = [name for name in dict.fromkeys(node.input) if name and self._barriers.can_anchor(name)]
        stored, element = self._tensors.stored, self._tensors.element
        return min(names, key=lambda name: (name in stored, element(name) in _RARELY_DATA), default=None)

    def _tells_shape(self, name: str) -> bool:
        """True for a large computed or fed tensor whose complete shape onnxruntime knows."""
        if not name or name in self._tensors.stored or not self._barriers.can_anchor(name):
            return False
        seen = self._tensors.seen(name)
        return is_complete(seen) and self._tensors.bytes(name) >= _SMALL

    def _could_be_tied(self, node: NodeProto) -> bool:
        """True if onnxruntime will know the complete shape of an output that allocates memory."""
        if not self._gets_memory(node):
            return False
        known = self._tensors.outputs_of(node)
        large = (name for name in known if self._tensors.bytes(name) >= _SMALL)
        return any(is_complete(known[name]) and self._may_be_hidden(name) for name in large)

    def _could_be_left_out(self, node: NodeProto) -> bool:
        """onnxruntime removes one of two consecutive casts if it considers it redundant, with any settings."""
        return node.op_type == "Cast" and node.input[0] in self._casts

    def _may_be_hidden(self, name: str) -> bool:
        return self._tensors.element(name) is not None and name not in self._wanted and not self._tensors.is_declared(name)

    def _gets_memory(self, node: NodeProto) -> bool:
        return not in_place_pairs(node, set(node.input), self._tensors.known)

    def _tell_shape_of_what_is_overwritten(self, node: NodeProto) -> None:
        """Behind a barrier, onnxruntime does not know that an output has the shape of the input it could overwrite."""
        for source, target in in_place_pairs(node, set(node.input), self._tensors.known):
            hidden = source not in self._tensors.stored and not is_complete(self._tensors.seen(source))
            if hidden and self._tensors.element(source) is not None and target not in self._wanted:
                self._disguise.tell(source)


def with_sinks(nodes: Iterable[NodeProto], barriers: Barriers, tensors: CompiledTensors, read: Set[str]) -> Iterator[NodeProto]:
    """The nodes without unread outputs; the session chooses the order. `read` are all tensors that are read or are graph outputs."""
    for node in nodes:
        tensors.learn(node)
        blanked(node, read)
        yield node
        for name in () if is_constant(node) else unread_outputs(node, read):
            if barriers.can_anchor(name):
                yield from barriers.nothing_of(name)
