"""Compile a schedule into an ONNX model: the same graph, nodes in the order of the schedule, computed again where it says so.

Every computation becomes a node. The first keeps the names of the original; the k-th recomputation is called `name__recompute<k>`, and so
are its tensors. Whatever is read is the latest copy at that point. A graph output must be called what it was, so there it is the last copy,
the one alive at the end, that keeps the name of the tensor.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

import onnx

from ... import __version__
from ...core.errors import VerificationError
from ...core.schedule import Schedule
from .reader import OnnxModel
from .rebinding import all_names, rename_reads
from .statistics import freeze_unread_statistics, updates_statistics

VERSION_KEY = "checkmate.version"


def compile_model(model: OnnxModel, schedule: Schedule, *, metadata: Mapping[str, str] | None = None) -> onnx.ModelProto:
    """The model that computes what the schedule says, in its order. Neither weights nor files are touched."""
    compiled = onnx.ModelProto()
    compiled.CopyFrom(model.proto)
    del compiled.graph.node[:]
    compiled.graph.node.extend(_unscheduled(model))
    naming = _Naming(model, schedule)
    current: dict[str, str] = {}
    """What each tensor of the original is called at this point."""
    done: Counter[int] = Counter()
    repeated: list[onnx.NodeProto] = []
    for operation in schedule.computations:
        original = model.proto.graph.node[model.node_of[operation]]
        missing = [
            model.value_names[value] for value in model.graph.operations[operation].inputs if model.value_names[value] not in current
        ]
        if missing:
            raise VerificationError(f"the schedule computes {naming.node(operation, 0)!r} before its input {missing[0]!r}")
        node = compiled.graph.node.add()
        node.CopyFrom(original)
        rename_reads(node, current)
        node.name = naming.node(operation, done[operation])
        for position, name in enumerate(original.output):
            if name:
                current[name] = node.output[position] = naming.tensor(name, operation, done[operation])
        done[operation] += 1
        if naming.runs[operation] > 1 and updates_statistics(node):
            repeated.append(node)
    freeze_unread_statistics(compiled.graph, repeated)
    _describe_copies(compiled.graph, naming.copies)
    _note(compiled, {VERSION_KEY: __version__, **(metadata or {})})
    return compiled


class _Naming:
    """Names for copies, none of them taken."""

    def __init__(self, model: OnnxModel, schedule: Schedule) -> None:
        self._names = [operation.name for operation in model.graph.operations]
        self._taken = all_names(model.proto.graph) | set(self._names)
        self._outputs = {info.name for info in model.proto.graph.output}
        self.runs = Counter(schedule.computations)
        self.copies: dict[str, str] = {}
        """The original of each tensor with a new name."""

    def node(self, operation: int, run: int) -> str:
        return self._copy_name(self._names[operation], run) if run else self._names[operation]

    def tensor(self, name: str, operation: int, run: int) -> str:
        keeper = self.runs[operation] - 1 if name in self._outputs else 0
        if run == keeper:
            return name
        copy = self._copy_name(name, run)
        self.copies[copy] = name
        return copy

    def _copy_name(self, name: str, run: int) -> str:
        copy = f"{name}__recompute{run}"
        while copy in self._taken:
            copy += "_"
        self._taken.add(copy)
        return copy


def _unscheduled(model: OnnxModel) -> Iterator[onnx.NodeProto]:
    """Nodes that are no operations, which is to say constants: they read nothing, so they can all come first."""
    scheduled = set(model.node_of)
    return (node for index, node in enumerate(model.proto.graph.node) if index not in scheduled)


def _describe_copies(graph: onnx.GraphProto, copies: Mapping[str, str]) -> None:
    """Types, shapes and quantization are known for a copy as they are for its original."""
    infos = {info.name: info for info in (*graph.output, *graph.value_info)}
    annotations = {annotation.tensor_name: annotation for annotation in graph.quantization_annotation}
    for copy, name in copies.items():
        if name in infos:
            info = graph.value_info.add()
            info.CopyFrom(infos[name])
            info.name = copy
        if name in annotations:
            annotation = graph.quantization_annotation.add()
            annotation.CopyFrom(annotations[name])
            annotation.tensor_name = copy


def _note(model: onnx.ModelProto, notes: Mapping[str, str]) -> None:
    """Set entries of the model's metadata, in place of older ones with the same key."""
    kept = [entry for entry in model.metadata_props if entry.key not in notes]
    added = [onnx.StringStringEntryProto(key=key, value=value) for key, value in notes.items()]
    del model.metadata_props[:]
    model.metadata_props.extend([*kept, *added])
