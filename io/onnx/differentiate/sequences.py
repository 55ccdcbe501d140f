"""Replace sequences of tensors by the tensors themselves, where each element is known.

`torch.chunk` and `torch.split` are exported as SplitToSequence and one SequenceAt per part: this is one Split. Stacks and concatenations of
lists are exported as SequenceConstruct and ConcatFromSequence: this is Concat.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import NodeProto, helper, numpy_helper

from ..build.known_tensors import Tensors
from ..proto.attributes import integer
from ..proto.captures import reads
from ..proto.model_file import plain_domain
from ..proto.stored import Array
from ..read.containers import split_sizes
from .forward_model import Forward

_MAKERS = ("SplitToSequence", "SequenceConstruct")


def replace_sequences(forward: Forward) -> None:
    """Sequences that are graph outputs, or read by other operators, stay as they are."""
    if any(node.op_type in _MAKERS and not plain_domain(node.domain) for node in forward.nodes):
        forward.nodes = _Rewriting(forward).nodes()


class _Rewriting:
    """One pass over the nodes, in topological order."""

    def __init__(self, forward: Forward) -> None:
        self._forward = forward
        self._tensors: Tensors = forward.tensors()
        self._contents: dict[str, list[str]] = {}
        """Sequence -> the names of its tensors."""
        self._readers: dict[str, list[NodeProto]] = {}
        for node in forward.nodes:
            for name in reads(node):
                self._readers.setdefault(name, []).append(node)
        self._outputs = {value.name for value in forward.outputs}
        self._taken = set(self._tensors.names()) | {node.name for node in forward.nodes}
        self._made: list[NodeProto] = []

    def nodes(self) -> list[NodeProto]:
        for node in self._forward.nodes:
            if plain_domain(node.domain) or not self._replaced(node):
                self._made.append(node)
        return self._made

    def _replaced(self, node: NodeProto) -> bool:
        contents = self._contents.get(node.input[0]) if node.input else None
        match node.op_type:
            case "SplitToSequence":
                return self._split(node)
            case "SequenceConstruct" if self._can_go(node.output[0]):
                self._contents[node.output[0]] = list(node.input)
                return True
            case "SequenceAt" if contents is not None:
                part = contents[self._index(node)]
                if part != node.output[0]:
                    self._add("Identity", [part], node.output[0], node.name)
                return True
            case "ConcatFromSequence" if contents is not None:
                self._concatenate(node, contents)
                return True
        return False

    def _can_go(self, sequence: str) -> bool:
        """True if every reader can be given the tensors instead."""
        readers = self._readers.get(sequence, ())
        return sequence not in self._outputs and all(
            reader.op_type == "ConcatFromSequence" or (reader.op_type == "SequenceAt" and self._index_or_none(reader) is not None)
            for reader in readers
        )

    def _index_or_none(self, node: NodeProto) -> int | None:
        numbers = self._tensors.numbers(node.input[1])
        return None if numbers is None or numbers.size != 1 else int(numbers.reshape(-1)[0])

    def _index(self, node: NodeProto) -> int:
        index = self._index_or_none(node)
        assert index is not None
        return index

    def _split(self, node: NodeProto) -> bool:
        sequence = node.output[0]
        shape = self._tensors.shape(node.input[0])
        axis = integer(node, "axis", 0)
        if not -len(shape) <= axis < len(shape) or not isinstance(shape[axis], int) or not self._can_go(sequence):
            return False
        stated: Array | None = self._tensors.numbers(node.input[1]) if len(node.input) > 1 and node.input[1] else None
        known = tuple(size if isinstance(size, int) else 0 for size in shape)
        sizes = split_sizes(node, known, stated)
        takers = [reader for reader in self._readers.get(sequence, ()) if reader.op_type == "SequenceAt"]
        if not sizes or any(not -len(sizes) <= self._index(reader) < len(sizes) for reader in takers):
            return False
        squeezed = (len(node.input) < 2 or not node.input[1]) and integer(node, "keepdims", 1) == 0
        names = self._part_names(sequence, len(sizes), [] if squeezed else takers)
        lengths = self._unused(f"{sequence}/split")
        self._forward.initializers[lengths] = numpy_helper.from_array(np.asarray(sizes, np.int64), lengths)
        self._made.append(helper.make_node("Split", [node.input[0], lengths], names, name=node.name, axis=axis))
        self._contents[sequence] = [self._squeezed(name, axis) for name in names] if squeezed else names
        return True

    def _part_names(self, sequence: str, count: int, takers: Sequence[NodeProto]) -> list[str]:
        """The first SequenceAt of a part gives it its name, so that values keep the names they have in the file."""
        names: dict[int, str] = {}
        for reader in takers:
            names.setdefault(self._index(reader) % count, reader.output[0])
        return [names.get(index) or self._unused(f"{sequence}/part_{index}") for index in range(count)]

    def _concatenate(self, node: NodeProto, contents: Sequence[str]) -> None:
        axis = integer(node, "axis", 0)
        parts = list(contents)
        if integer(node, "new_axis", 0):
            axes = self._constant(f"{node.output[0]}/axes", np.asarray([axis], np.int64))
            parts = [self._add("Unsqueeze", [part, axes], self._unused(f"{node.output[0]}/part")) for part in parts]
        self._made.append(helper.make_node("Concat", parts, list(node.output), name=node.name, axis=axis))

    def _squeezed(self, name: str, axis: int) -> str:
        return self._add("Squeeze", [name, self._constant(f"{name}/axes", np.asarray([axis], np.int64))], self._unused(f"{name}/squeezed"))

    def _add(self, operator: str, inputs: Sequence[str], output: str, name: str = "") -> str:
        self._made.append(helper.make_node(operator, list(inputs), [output], name=name or output))
        return output

    def _constant(self, name: str, numbers: Array) -> str:
        name = self._unused(name)
        self._forward.initializers[name] = numpy_helper.from_array(numbers, name)
        return name

    def _unused(self, name: str) -> str:
        while name in self._taken:
            name += "_"
        self._taken.add(name)
        return name
