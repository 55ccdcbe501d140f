"""Read an ONNX model as a `Graph`.

`OnnxModel.proto` is the file, with operators expanded that onnxruntime would expand itself, and `OnnxModel` maps each operation to its
node, so that a writer can reorder and repeat nodes without losing anything. Parameters, inputs and constants are fixed memory; operations
make everything else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from onnx import ModelProto, TypeProto, ValueInfoProto

from ....core.errors import InputError
from ....core.model.graph import Graph, assemble
from ..proto.dimensions import bind
from ..proto.functions import local_functions
from ..proto.model_file import imported_opsets, load_model
from ..proto.naming import operation_names
from ..proto.randomness import Randomness
from ..proto.stored import Array, free_inputs
from ..proto.tensor_types import shape_of, type_bytes
from .backward_passes import with_backward_pass
from .barrier_tensors import barrier_bytes
from .kernelless import expand_functions
from .runtime_view import RuntimeView
from .scope import Model, Scope
from .threads import threads_for
from .translate import describe
from .unknown import free_inputs_error

_NO_DIMS: Mapping[str, int] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class OnnxModel:
    """A model as it is in the file, and its graph."""

    proto: ModelProto
    """As in the file: nodes in file order, symbolic dimensions, external data not loaded. Operators without a kernel are expanded."""
    graph: Graph
    node_of: tuple[int, ...]
    """For each operation of the graph, its index in `proto.graph.node`."""
    value_names: tuple[str, ...]
    """For each value of the graph, its tensor name."""
    path: Path | None
    """The path of the file; external data is relative to it."""
    types: Mapping[str, TypeProto] = field(default_factory=dict)
    """The types of all tensors by name, with a number for each known dimension."""
    numbers: Mapping[str, Array] = field(default_factory=dict)
    """The contents of the small tensors that determine shapes, stored or computed."""
    declared: frozenset[str] = frozenset()
    """Computed tensors whose size is known only because the file declares it."""
    seen: Mapping[str, TypeProto] = field(default_factory=dict)
    """Types as onnxruntime knows them before the run, where it knows less than `types`."""
    threads: int = 1
    """Threads of the session that workspaces were counted for."""


def read_onnx(
    source: Path | bytes | ModelProto,
    *,
    name: str = "",
    dims: Mapping[str, int] = _NO_DIMS,
    batch_size: int | None = None,
    threads: int | None = None,
) -> OnnxModel:
    """Read a model from a file, from bytes or from a `ModelProto`.

    `dims` maps symbolic dimensions to sizes, `batch_size` is the size of the first dimension that is still free. `threads` is the number of
    threads of the session, by default the one that a compiled model was made for, or that of this machine.
    """
    path = source if isinstance(source, Path) else None
    label = name or (str(path) if path else "ONNX model")
    try:
        return _read(source, path, label, name, dims, batch_size, threads)
    except RecursionError:
        raise InputError(f"{label}: functions and subgraphs are nested too deeply") from None


def _read(
    source: Path | bytes | ModelProto,
    path: Path | None,
    label: str,
    name: str,
    dims: Mapping[str, int],
    batch_size: int | None,
    threads: int | None,
) -> OnnxModel:
    proto = source if isinstance(source, ModelProto) else load_model(source, label)
    opsets = imported_opsets(proto, label)
    functions = local_functions(proto)
    proto = expand_functions(proto)
    threads = threads_for(proto) if threads is None else threads
    inputs = free_inputs(proto.graph)
    dimensions = bind(proto.graph, inputs, dims, batch_size)
    folder = None if path is None else path.parent
    view = RuntimeView()
    model = Model(functions, dimensions, folder, proto.ir_version, Randomness(functions), threads, view)
    scope = Scope(opsets)
    scope.fixed.update(parameters=0, inputs=0, constants=0)
    scope.add_stored(proto.graph, folder)
    _add_inputs(scope, model, view, inputs)
    scope.declare(proto.graph.value_info)
    scope.declare(proto.graph.output)
    outputs = [value.name for value in proto.graph.output]
    specs = describe(model, scope, proto.graph.node, outputs)
    specs = with_backward_pass(specs, {value.name for value in inputs}, outputs, scope.types)
    added = barrier_bytes(proto, opsets.get("", 0), scope.types)
    if added:
        scope.fixed["barriers"] = added
    made = {value.name for spec in specs for value in spec.outputs}
    computed = [output for output in outputs if output in made or output not in scope.types]
    graph = assemble(name or (path.stem if path else proto.graph.name) or "model", specs, computed, scope.fixed)
    index = {operation: position for position, operation in enumerate(operation_names(proto.graph.node))}
    return OnnxModel(
        proto=proto,
        graph=graph,
        node_of=tuple(index[operation.name] for operation in graph.operations),
        value_names=tuple(value.name for value in graph.values),
        path=path,
        types=dict(scope.types),
        numbers=dict(scope.numbers),
        declared=frozenset(scope.relied),
        seen=view.types,
        threads=threads,
    )


def _add_inputs(scope: Scope, model: Model, view: RuntimeView, inputs: list[ValueInfoProto]) -> None:
    """Graph inputs are fixed memory; every one must have a size."""
    open_: list[ValueInfoProto] = []
    for value in inputs:
        settled = ValueInfoProto(name=value.name, type=model.dimensions.settled(value.type, value.name))
        size = type_bytes(settled.type)
        if size is None:
            open_.append(settled)
        else:
            scope.define_new(value.name, settled.type, size, "inputs")
            if shape_of(value.type) is None:
                view.types[value.name] = value.type
    if open_:
        raise free_inputs_error(open_, batch_given=model.dimensions.batch_given)
