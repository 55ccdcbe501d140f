"""Read the forward model: functions inlined, nodes sorted, sizes set. Weights are referenced, never copied."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, inliner

from ....core.errors import InputError
from ..build.known_tensors import Tensors
from ..build.sampling import Samples, free_symbols, name_free_dimensions
from ..proto.captures import reads
from ..proto.dimensions import bind, missing_sizes
from ..proto.functions import local_functions
from ..proto.model_file import imported_opsets
from ..proto.naming import operation_names
from ..proto.stored import free_inputs
from ..proto.tensor_types import dimensions_of, is_settled

OLDEST_OPSET = 18
"""The opset of the gradients: reductions take their axes as an input, scatters can add."""
OLDEST_IR = 8
"""The IR version that opset 18 needs."""


@dataclass(slots=True)
class Forward:
    """A forward graph for the engine."""

    name: str
    nodes: list[NodeProto]
    """In topological order, with unique names. They are copies and may be changed."""
    inputs: list[ValueInfoProto]
    """The inputs that a caller feeds, without initializers."""
    outputs: list[ValueInfoProto]
    initializers: dict[str, TensorProto]
    value_info: list[ValueInfoProto]
    opsets: dict[str, int]
    ir_version: int
    samples: Samples
    new_batch: int | None = None
    """The batch size that was asked for, if the file has another one, as a fixed number."""
    metadata: dict[str, str] = field(default_factory=dict)
    parameters: frozenset[str] = frozenset()
    """Stored tensors that are known to be parameters."""
    constants: frozenset[str] = frozenset()
    """Stored floating-point tensors that are known to be no parameters."""
    warnings: list[str] = field(default_factory=list)
    """What the user should know about the file."""

    @property
    def opset(self) -> int:
        return self.opsets[""]

    def forget_declared_types(self) -> None:
        """The types that the file declares may be for another size."""
        self.value_info = []
        self.outputs = [ValueInfoProto(name=value.name) for value in self.outputs]

    def tensors(self) -> Tensors:
        """Types of everything stored, fed and computed."""
        tensors = Tensors(self.samples, self.opsets, self.ir_version)
        tensors.add_stored(list(self.initializers.values()))
        tensors.add_inputs(self.inputs)
        tensors.declare([*self.value_info, *self.outputs])
        tensors.add_nodes(self.nodes, [value.name for value in self.outputs])
        return tensors


def read_forward(model: ModelProto, dims: Mapping[str, int], batch_size: int | None) -> Forward:
    opsets = {"": OLDEST_OPSET} | imported_opsets(model, "the model")
    if model.graph.sparse_initializer:
        raise InputError(f"initializer {model.graph.sparse_initializer[0].values.name!r} is sparse: store it as a dense tensor to train it")
    inputs = [_copied(value) for value in free_inputs(model.graph)]
    nodes = _inlined(model) if local_functions(model) else list(model.graph.node)
    initializers = {tensor.name: tensor for tensor in model.graph.initializer}
    rebatched = batch_size is not None and _is_fixed(inputs)
    dimensions = bind(model.graph, inputs, dims, None if rebatched else batch_size)
    for value in inputs:
        value.type.CopyFrom(dimensions.settled(value.type, value.name))
    name_free_dimensions(inputs)
    samples = Samples(free_symbols(inputs))
    if len(samples.symbols) > samples.most:
        raise InputError(
            f"the inputs have {len(samples.symbols)} free dimensions, more than {samples.most}: set some of {missing_sizes(inputs)}"
        )
    forward = Forward(
        name=model.graph.name or "model",
        nodes=named_apart(nodes),
        inputs=inputs,
        outputs=[_copied(value) for value in model.graph.output],
        initializers=initializers,
        value_info=list(model.graph.value_info),
        opsets=opsets,
        ir_version=max(model.ir_version, OLDEST_IR),
        samples=samples,
        new_batch=batch_size if rebatched else None,
        metadata={entry.key: entry.value for entry in model.metadata_props},
    )
    _sort(forward)
    if dimensions.given:
        forward.forget_declared_types()
    return forward


def _is_fixed(inputs: Sequence[ValueInfoProto]) -> bool:
    """True if every dimension of the inputs is a number."""
    return all(is_settled(dimension) for value in inputs for dimension in dimensions_of(value.type))


def _copied(value: ValueInfoProto) -> ValueInfoProto:
    copy = ValueInfoProto()
    copy.CopyFrom(value)
    return copy


def named_apart(nodes: Sequence[NodeProto]) -> list[NodeProto]:
    """Copies of the nodes with unique names, the same names as in `read_onnx`."""
    copies = []
    for node, name in zip(nodes, operation_names(nodes), strict=True):
        copy = NodeProto()
        copy.CopyFrom(node)
        copy.name = name
        copies.append(copy)
    return copies


def _inlined(model: ModelProto) -> list[NodeProto]:
    """Inline model-local functions, without copying the weights."""
    skeleton = ModelProto()
    skeleton.ir_version = model.ir_version
    skeleton.opset_import.extend(model.opset_import)
    skeleton.functions.extend(model.functions)
    skeleton.graph.name = model.graph.name
    skeleton.graph.node.extend(model.graph.node)
    skeleton.graph.output.extend(model.graph.output)
    skeleton.graph.input.extend(free_inputs(model.graph))
    skeleton.graph.input.extend(ValueInfoProto(name=tensor.name) for tensor in model.graph.initializer)
    try:
        return list(inliner.inline_local_functions(skeleton, convert_version=True).graph.node)
    except (RuntimeError, ValueError) as error:
        raise InputError(f"the model's functions cannot be inlined: {' '.join(str(error).split())}") from None


def _sort(forward: Forward) -> None:
    """Sort nodes topologically, because files may have them in any order; stable, so that a sorted file is not changed."""
    ready = {value.name for value in forward.inputs} | set(forward.initializers)
    made: set[str] = set()
    for node in forward.nodes:
        for name in node.output:
            if name and (name in made or name in ready):
                raise InputError(f"tensor {name!r} is made twice: tensor names must be unique")
            made.add(name)
    made.discard("")
    waiting = {index: {name for name in reads(node) if name in made} for index, node in enumerate(forward.nodes)}
    readers: dict[str, list[int]] = {}
    for index, names in waiting.items():
        for name in names:
            readers.setdefault(name, []).append(index)
    missing = next((name for node in forward.nodes for name in reads(node) if name not in made and name not in ready), None)
    if missing is not None:
        raise InputError(f"tensor {missing!r} is used, but no node makes it")

    queue = [index for index, names in waiting.items() if not names]
    heapq.heapify(queue)
    order = []
    while queue:
        index = heapq.heappop(queue)
        order.append(index)
        for name in forward.nodes[index].output:
            for reader in readers.get(name, ()):
                waiting[reader].discard(name)
                if not waiting[reader]:
                    heapq.heappush(queue, reader)
    if len(order) < len(forward.nodes):
        raise InputError("the graph has a cycle: it cannot be differentiated")
    forward.nodes = [forward.nodes[index] for index in order]
