"""Make a compiled model hold its promise under any settings: every node waits for the one before it, and no buffers are tied together.

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
from .disguise import Disguise, has_numbers_only
from .elements import BOOL, INT32, INT64
from .in_place import in_place_pairs
from .rebinding import NOTHING
from .unread import blanked, unread_outputs
from .views import is_view

_RARELY_DATA = frozenset({BOOL, INT32, INT64})
"""Element types of shapes, axes and indices. A barrier there would hide them from onnxruntime's own shape arithmetic."""
_SMALL = 1024
"""Bytes below which it does not matter whether a buffer is tied to another."""


@dataclass(slots=True)
class _Last:
    """What a node must wait for: that it reads one of `outputs`, or else a barrier on `late`."""

    outputs: Set[str] = frozenset()
    late: str | None = None
    token: str | None = None
    """What barriers on `late` are made of, once there was one."""


class Anchors:
    """Puts nodes in a chain, one after the other."""

    def __init__(self, tensors: CompiledTensors, barriers: Barriers, disguise: Disguise, wanted: Set[str], read: Set[str]) -> None:
        """`wanted` are the outputs of the graph, `read` the tensors that some node reads."""
        self._tensors = tensors
        self._barriers = barriers
        self._disguise = disguise
        self._wanted = wanted
        self._read = read | wanted
        self._last = _Last()
        self._casts: set[str] = set()

    def chained(self, nodes: Iterable[NodeProto]) -> Iterator[NodeProto]:
        """The nodes in their order, with all that keeps them in it."""
        for node in nodes:
            self._tensors.learn(node)
            if is_constant(node):
                yield node
                continue
            blanked(node, self._read)
            free = is_view(node, NOTHING) and not self._barriers.can_hold_views
            if self._last.late is not None and not free:
                for name in self._held_back(node):
                    yield from self._barrier(name, node)
            yield node
            self._set_apart(node)
            if node.op_type == "Cast":
                self._casts.update(node.output)
            if free:
                continue
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
        """The inputs a node must read through a barrier, so that it waits and so that its outputs are not known too well."""
        best = self._best_input(node)
        waits = not self._last.outputs.isdisjoint(reads(node))
        if best is None or (waits and not self._could_be_tied(node) and not self._could_be_left_out(node)):
            return []
        telling = [name for name in dict.fromkeys(node.input) if self._tells_shape(name)] if self._gets_memory(node) else []
        return telling or [best]

    def _barrier(self, name: str, node: NodeProto) -> Iterator[NodeProto]:
        """Let a node read an input only after what came last, and whatever follows wait for that in turn."""
        if self._last.token is None and self._last.late is not None:
            yield from self._token_of(self._last.late)
        assert self._last.token is not None
        held = self._barriers.held_back(name, self._last.token)
        yield from held
        after = held[-1].output[0]
        self._disguise.hide(after)
        for position, used in enumerate(node.input):
            if used == name:
                node.input[position] = after
        self._last = _Last(late=after)

    def _sink(self, name: str) -> Iterator[NodeProto]:
        """Read what nobody reads, so that it is freed; the next node waits for that."""
        if self._last.token is not None:
            held = self._barriers.held_back(name, self._last.token)
            yield from held
            name = held[-1].output[0]
            self._disguise.hide(name)
        yield from self._token_of(name)
        assert self._last.token is not None
        self._last.outputs = frozenset({self._last.token})

    def _token_of(self, name: str) -> Iterator[NodeProto]:
        nodes = self._barriers.token_of(name)
        self._last.token = nodes[-1].output[0]
        yield from nodes

    def _best_input(self, node: NodeProto) -> str | None:
        """Data before shapes, computed or fed before stored, first before later ones."""
        names = [name for name in dict.fromkeys(node.input) if name and self._barriers.can_anchor(name)]
        stored, element = self._tensors.stored, self._tensors.element
        return min(names, key=lambda name: (name in stored, element(name) in _RARELY_DATA), default=None)

    def _tells_shape(self, name: str) -> bool:
        """Is this a large computed or fed tensor whose shape onnxruntime knows in full?"""
        if not name or name in self._tensors.stored or not self._barriers.can_anchor(name):
            return False
        seen = self._tensors.seen(name)
        return seen is not None and has_numbers_only(seen) and self._tensors.bytes(name) >= _SMALL

    def _could_be_tied(self, node: NodeProto) -> bool:
        """Will onnxruntime know the whole shape of something that gets memory here?"""
        if not self._gets_memory(node):
            return False
        known = self._tensors.outputs_of(node)
        large = (name for name in known if self._tensors.bytes(name) >= _SMALL)
        return any(has_numbers_only(known[name]) and self._may_be_disguised(name) for name in large)

    def _could_be_left_out(self, node: NodeProto) -> bool:
        """Of two casts in a row onnxruntime leaves out what it thinks makes no difference, whatever the settings."""
        return node.op_type == "Cast" and node.input[0] in self._casts

    def _may_be_disguised(self, name: str) -> bool:
        return self._tensors.element(name) is not None and name not in self._wanted and not self._tensors.is_declared(name)

    def _gets_memory(self, node: NodeProto) -> bool:
        return not is_view(node, self._wanted) and not in_place_pairs(node, set(node.input), self._tensors.known)

    def _set_apart(self, node: NodeProto) -> None:
        known = self._tensors.outputs_of(node)
        self._tensors.follow(known)
        alone = self._gets_memory(node)
        for name, type_ in known.items():
            if self._may_be_disguised(name):
                self._disguise.set_apart(name, type_, alone=alone)


def with_sinks(nodes: Iterable[NodeProto], barriers: Barriers, tensors: CompiledTensors, read: Set[str]) -> Iterator[NodeProto]:
    """The nodes in their order, which is left to the session, with nothing unread. `read` are all tensors that are read or given back."""
    for node in nodes:
        tensors.learn(node)
        blanked(node, read)
        yield node
        for name in () if is_constant(node) else unread_outputs(node, read):
            if barriers.can_anchor(name):
                yield from barriers.token_of(name)
