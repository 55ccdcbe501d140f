"""Compile a schedule into an ONNX model: the same graph, with nodes in the order of the schedule and one node for each recomputation.

Every computation becomes a node. The first keeps the names of the original; the k-th recomputation is called `name__recompute<k>`, and so
are its tensors. Every node reads the latest copy of its inputs. A graph output must keep its name, so there the last copy, which is in
memory at the end, has the original name.

By default, onnxruntime merges equal nodes and chooses its own order. So copies have a private attribute that makes them differ, and
`anchors` enforces the order; the settings with which memory is exact are in the metadata.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

import onnx

from .... import __version__
from ....core.errors import VerificationError
from ....core.schedule.schedule import Schedule
from ..proto.captures import reads
from ..proto.functions import calls_any, local_functions
from ..proto.model_file import opset_versions
from ..proto.rebinding import all_names, rename_reads
from ..proto.tensor_types import dimensions_of
from ..read.metadata import COMPILED_KEY, THREADS_KEY
from ..read.reader import OnnxModel
from ..read.statistics import freeze_unread_statistics
from .anchor_modes import Anchor
from .anchors import Anchors, with_sinks
from .barriers import Barriers
from .compiled_tensors import CompiledTensors, is_constant
from .disguise import Disguise
from .exact_settings import EXACT_SETTINGS
from .inlining import Inliner
from .unread import without_unread

ANCHOR_KEY = "checkmate.anchor"
SETTING_PREFIX = "checkmate.session."
RECOMPUTE_ATTRIBUTE = "__checkmate_recompute"
"""Runtimes ignore attributes that start with two underscores, but do not merge nodes that differ in them."""


_FUSED_WITH_GEMM = frozenset(
    {
        *(
            "Affine",
            "Elu",
            "HardSigmoid",
            "LeakyRelu",
            "ParametricSoftplus",
            "Relu",
            "ScaledTanh",
            "Selu",
            "Sigmoid",
            "Softplus",
            "Softsign",
        ),
        *("Tanh", "ThresholdedRelu"),
    }
)


def compile_model(
    model: OnnxModel, schedule: Schedule, *, anchor: Anchor = Anchor.NONE, metadata: Mapping[str, str] | None = None
) -> onnx.ModelProto:
    """The compiled model. Reads neither weights nor files."""
    compiled = onnx.ModelProto()
    compiled.CopyFrom(model.proto)
    computations = without_unread(model.graph, schedule.computations)
    naming = _Naming(model, computations)
    copies = _computations(model, computations, naming)
    repeated = [copy.node for copy in copies if naming.runs[copy.operation] > 1]
    freeze_unread_statistics([copy.node for copy in copies], [info.name for info in compiled.graph.output], repeated)
    del compiled.graph.node[:]
    compiled.graph.node.extend(_unscheduled(model))
    _describe_copies(compiled.graph, naming.copies)
    _anchor(compiled, model, copies, naming, anchor)
    settings = {f"{SETTING_PREFIX}{setting}": value for setting, value in EXACT_SETTINGS.items()}
    noted = {COMPILED_KEY: __version__, ANCHOR_KEY: anchor.value, THREADS_KEY: str(model.threads), **settings, **(metadata or {})}
    note(compiled, noted)
    return compiled


@dataclass(frozen=True, slots=True)
class _Copy:
    """One computation of an operation."""

    node: onnx.NodeProto
    operation: int
    run: int


def _computations(model: OnnxModel, computations: Sequence[int], naming: _Naming) -> list[_Copy]:
    current: dict[str, str] = {}
    """The current name of each tensor of the original."""
    done: Counter[int] = Counter()
    copies: list[_Copy] = []
    for operation in computations:
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
    """Add the nodes and, depending on `anchor`, what keeps the recomputations and their order with any settings."""
    graph = compiled.graph
    opsets = opset_versions(model.proto.opset_import)
    functions = local_functions(model.proto)
    inliner = Inliner(functions, opsets, naming.unused)
    nodes = list(graph.node)
    runs = [0] * len(nodes)
    for copy in copies:
        inside = list(inliner.expanded(copy.node))
        nodes += inside
        runs += [copy.run] * len(inside)
    if anchor is not Anchor.NONE:
        _mark_copies(nodes, runs)
    if not calls_any(nodes, functions):
        del compiled.functions[:]
    compiled.opset_import.extend(onnx.helper.make_opsetid(domain, version) for domain, version in inliner.imports.items())
    tensors = CompiledTensors(model, opsets | inliner.imports, naming.copies)
    barriers = Barriers(tensors, opsets.get("", 0) or inliner.imports.get("", 0), naming.unused)
    wanted = {info.name for info in graph.output}
    read = {name for node in nodes for name in reads(node)}
    del graph.node[:]
    if anchor is not Anchor.FULL:
        graph.node.extend(with_sinks(nodes, barriers, tensors, read | wanted))
        graph.initializer.extend(barriers.stored)
        return
    disguise = Disguise(tensors, _dimension_names(model.proto.graph))
    _keep_declarations(graph, tensors, {name for node in nodes for name in node.output})
    graph.node.extend(Anchors(tensors, barriers, disguise, wanted, read).chained(nodes))
    graph.initializer.extend(barriers.stored)
    graph.value_info.extend(disguise.declarations)


def _mark_copies(nodes: Sequence[onnx.NodeProto], runs: Sequence[int]) -> None:
    """Make every copy differ from its original by an attribute.

    Not an activation that is the only reader of its input: no node could be merged with it, but onnxruntime may fuse it with the Gemm
    before it, and then fails because of the attribute.
    """
    readers = Counter(name for node in nodes for name in reads(node))
    for node, run in zip(nodes, runs, strict=True):
        if not run or is_constant(node) or (node.op_type in _FUSED_WITH_GEMM and readers[node.input[0]] == 1):
            continue
        node.attribute.append(onnx.helper.make_attribute(RECOMPUTE_ATTRIBUTE, run))


def _keep_declarations(graph: onnx.GraphProto, tensors: CompiledTensors, made: Set[str]) -> None:
    """Only the declarations that are needed: declared numbers would reveal the shapes that `disguise` hides."""
    kept = [info for info in graph.value_info if info.name not in made or tensors.is_declared(info.name)]
    del graph.value_info[:]
    graph.value_info.extend(kept)
    tensors.keep_declared(kept)


def _dimension_names(graph: onnx.GraphProto) -> set[str]:
    infos = (*graph.input, *graph.output, *graph.value_info)
    return {dimension.dim_param for info in infos for dimension in dimensions_of(info.type) if dimension.dim_param}


class _Naming:
    """Unique names for copies."""

    def __init__(self, model: OnnxModel, computations: Sequence[int]) -> None:
        self._names = [operation.name for operation in model.graph.operations]
        self._taken = all_names(model.proto.graph) | set(self._names)
        self._outputs = {info.name for info in model.proto.graph.output}
        self.runs = Counter(computations)
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
        """A unique name, equal or similar to this one; it is then taken."""
        while name in self._taken:
            name += "_"
        self._taken.add(name)
        return name

    def _copy_name(self, name: str, run: int) -> str:
        return self.unused(f"{name}__recompute{run}")


def _unscheduled(model: OnnxModel) -> Iterator[onnx.NodeProto]:
    """Nodes that are not operations: constants. They have no inputs, so they can all be first."""
    scheduled = set(model.node_of)
    return (node for index, node in enumerate(model.proto.graph.node) if index not in scheduled)


def _describe_copies(graph: onnx.GraphProto, copies: Mapping[str, str]) -> None:
    """A copy has the same type, shape and quantization as its original."""
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


def note(model: onnx.ModelProto, notes: Mapping[str, str]) -> None:
    """Set entries of the model's metadata; replace older ones with the same key."""
    kept = [entry for entry in model.metadata_props if entry.key not in notes]
    added = [onnx.StringStringEntryProto(key=key, value=value) for key, value in notes.items()]
    del model.metadata_props[:]
    model.metadata_props.extend([*kept, *added])
