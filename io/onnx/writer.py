"""Compile a schedule into an ONNX model: the same graph, nodes in the order of the schedule, computed again where it says so.

Every computation becomes a node. The first keeps the names of the original; the k-th recomputation is called `name__recompute<k>`, and so
are its tensors. Whatever is read is the latest copy at that point. A graph output must be called what it was, so there it is the last copy,
the one alive at the end, that keeps the name of the tensor.

onnxruntime merges equal nodes and chooses an order of its own, unless it is told otherwise. So copies carry a private attribute that makes
them differ, and `anchors` makes the order hold; the settings under which memory is exact are noted in the metadata.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import onnx

from ... import __version__
from ...core.errors import VerificationError
from ...core.schedule import Schedule
from ..runtime.session import EXACT_SETTINGS
from .anchoring import Anchor
from .anchors import anchored
from .barriers import Barriers
from .compiled_tensors import CompiledTensors, is_constant
from .files import opset_versions
from .functions import local_functions
from .inlining import Inliner
from .reader import OnnxModel
from .rebinding import all_names, rename_reads
from .statistics import freeze_unread_statistics

VERSION_KEY = "checkmate.version"
ANCHOR_KEY = "checkmate.anchor"
SETTING_PREFIX = "checkmate.session."
RECOMPUTE_ATTRIBUTE = "__checkmate_recompute"
"""Attributes that begin with two underscores are ignored by every runtime, but nodes that differ in them are not merged."""


def compile_model(
    model: OnnxModel, schedule: Schedule, *, anchor: Anchor = Anchor.NONE, metadata: Mapping[str, str] | None = None
) -> onnx.ModelProto:
    """The model that computes what the schedule says, in its order. Neither weights nor files are touched."""
    compiled = onnx.ModelProto()
    compiled.CopyFrom(model.proto)
    naming = _Naming(model, schedule)
    copies = _computations(model, schedule, naming)
    repeated = [copy.node for copy in copies if naming.runs[copy.operation] > 1]
    freeze_unread_statistics([copy.node for copy in copies], [info.name for info in compiled.graph.output], repeated)
    del compiled.graph.node[:]
    compiled.graph.node.extend(_unscheduled(model))
    if anchor is Anchor.NONE:
        compiled.graph.node.extend(copy.node for copy in copies)
    _describe_copies(compiled.graph, naming.copies)
    if anchor is not Anchor.NONE:
        _anchor(compiled, model, copies, naming, anchor)
    settings = {f"{SETTING_PREFIX}{setting}": value for setting, value in EXACT_SETTINGS.items()}
    _note(compiled, {VERSION_KEY: __version__, ANCHOR_KEY: anchor.value, **settings, **(metadata or {})})
    return compiled


@dataclass(frozen=True, slots=True)
class _Copy:
    """One computation of an operation."""

    node: onnx.NodeProto
    operation: int
    run: int


def _computations(model: OnnxModel, schedule: Schedule, naming: _Naming) -> list[_Copy]:
    current: dict[str, str] = {}
    """What each tensor of the original is called at this point."""
    done: Counter[int] = Counter()
    copies: list[_Copy] = []
    for operation in schedule.computations:
        original = model.proto.graph.node[model.node_of[operation]]
        missing = [
            model.value_names[value] for value in model.graph.operations[operation].inputs if model.value_names[value] not in current
        ]
        if missing:
            raise VerificationError(f"the schedule computes {naming.node(operation, 0)!r} before its input {missing[0]!r}")
        node = onnx.NodeProto()
        node.CopyFrom(original)
        rename_reads(node, current)
        node.name = naming.node(operation, done[operation])
        for position, name in enumerate(original.output):
            if name:
                current[name] = node.output[position] = naming.tensor(name, operation, done[operation])
        copies.append(_Copy(node, operation, done[operation]))
        done[operation] += 1
    return copies


def _anchor(compiled: onnx.ModelProto, model: OnnxModel, copies: Sequence[_Copy], naming: _Naming, anchor: Anchor) -> None:
    """Make repeats and, if wanted, order hold under any settings."""
    graph = compiled.graph
    opsets = opset_versions(model.proto.opset_import)
    inliner = Inliner(local_functions(model.proto), opsets, naming.unused)
    nodes = list(graph.node)
    for copy in copies:
        for node in inliner.expanded(copy.node):
            if copy.run and not is_constant(node):
                node.attribute.append(onnx.helper.make_attribute(RECOMPUTE_ATTRIBUTE, copy.run))
            nodes.append(node)
    compiled.opset_import.extend(onnx.helper.make_opsetid(domain, version) for domain, version in inliner.imports.items())
    tensors = CompiledTensors(model, opsets | inliner.imports, naming.copies)
    barriers = Barriers(tensors, opsets.get("", 0) or inliner.imports.get("", 0), naming.unused)
    ordered = anchor is Anchor.FULL
    settled = list(anchored(nodes, {info.name for info in graph.output}, tensors, barriers, ordered=ordered))
    del graph.node[:]
    graph.node.extend(settled)
    graph.initializer.extend(barriers.stored)
    if ordered:
        _leave_shapes_to_inference(graph, tensors)
    graph.value_info.extend(barriers.declarations)
    if ordered:
        graph.value_info.extend(tensors.missing_declarations(graph))


def _leave_shapes_to_inference(graph: onnx.GraphProto, tensors: CompiledTensors) -> None:
    """Declared numbers would overrule the dimensions that barriers rename, and let onnxruntime tie buffers again."""
    made = {name for node in graph.node for name in node.output}
    kept = [info for info in graph.value_info if info.name not in made or tensors.declares(info.name)]
    del graph.value_info[:]
    graph.value_info.extend(kept)


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

    def unused(self, name: str) -> str:
        """The name, or one like it, that nothing has; from now on it is taken."""
        while name in self._taken:
            name += "_"
        self._taken.add(name)
        return name

    def _copy_name(self, name: str, run: int) -> str:
        return self.unused(f"{name}__recompute{run}")


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
