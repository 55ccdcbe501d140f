"""The tensors of a model that is being compiled: those of the original, their copies, and those inside functions."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterable, Mapping

from onnx import NodeProto, TypeProto, ValueInfoProto

from ..proto.model_file import plain_domain
from ..proto.tensor_types import shape_of, tensor_of, type_bytes
from ..read.reader import OnnxModel
from ..read.runtime_view import RuntimeView
from ..read.scope import Scope
from ..read.shapes import ContradictionError, inferred_types


class CompiledTensors:
    """Types by the names of the compiled model, as we know them and as onnxruntime will know them."""

    def __init__(self, model: OnnxModel, opsets: Mapping[str, int], copies: Mapping[str, str]) -> None:
        graph = model.proto.graph
        self._ir_version = model.proto.ir_version
        self._original = copies
        self._declared = model.declared
        self._types: dict[str, TypeProto] = dict(model.types)
        self._types.update((copy, model.types[name]) for copy, name in copies.items() if name in model.types)
        self._scope = Scope(opsets, ChainMap(self._types), numbers=ChainMap(dict(model.numbers)))
        self._scope.declare(graph.output)
        self.stored = {tensor.name for tensor in graph.initializer} | {tensor.values.name for tensor in graph.sparse_initializer}
        self.stored |= {node.output[0] for node in graph.node if is_constant(node) and node.output}
        fed = {info.name for info in graph.input}
        hidden = {name for name in model.numbers if name not in self.stored}
        hidden |= {copy for copy, name in copies.items() if name in hidden}
        self._view = RuntimeView({name: type_ for name, type_ in model.seen.items() if name in fed}, hidden)

    def learn(self, node: NodeProto) -> None:
        """Infer the types of tensors inside a function from its inputs."""
        if is_constant(node) and node.output:
            self.stored.add(node.output[0])
        if all(name in self._types for name in node.output if name):
            return
        try:
            found = inferred_types(node, self._scope, self._ir_version)
        except ContradictionError:
            return
        for name, type_ in found.items():
            self._types.setdefault(name, type_)

    def add(self, name: str, type_: TypeProto) -> None:
        """Add a tensor that the original does not have."""
        self._types[name] = type_

    def keep_declared(self, infos: Iterable[ValueInfoProto]) -> None:
        """Declarations of the original that stay in the file."""
        self._scope.declare(infos)

    def declare(self, name: str, type_: TypeProto) -> None:
        """Record a new declaration, which onnxruntime will read."""
        self._view.types[name] = type_

    def hide(self, name: str) -> None:
        """Record that onnxruntime will not know the shape."""
        hidden = TypeProto()
        hidden.tensor_type.elem_type = self._types[name].tensor_type.elem_type
        self._view.types[name] = hidden

    def element(self, name: str) -> int | None:
        """The element type of a tensor whose rank is known; None for anything else."""
        type_ = self._types.get(name)
        tensor = None if type_ is None or type_.WhichOneof("value") != "tensor_type" else tensor_of(type_)
        return tensor.elem_type if tensor is not None and tensor.HasField("shape") else None

    def rank(self, name: str) -> int:
        return len(self._types[name].tensor_type.shape.dim)

    def type_of(self, name: str) -> TypeProto:
        return self._types[name]

    def known(self, name: str) -> TypeProto | None:
        return self._types.get(name)

    def bytes(self, name: str) -> int:
        return (type_bytes(self._types[name]) if name in self._types else None) or 0

    def is_declared(self, name: str) -> bool:
        """True if the size is known only because the file declares it."""
        return self._original.get(name, name) in self._declared

    def seen(self, name: str) -> TypeProto | None:
        """The type as onnxruntime will infer it from the nodes so far."""
        return self._view.type_of(self._scope, name)

    def outputs_of(self, node: NodeProto) -> dict[str, TypeProto]:
        """The types of a node's outputs as onnxruntime will know them."""
        known = (name for name in node.output if shape_of(self._types.get(name)) is not None and not self.is_declared(name))
        found = {name: self._types[name] for name in known}
        return self._view.outputs_of(node, self._scope, self._ir_version, found)

    def follow(self, types: Mapping[str, TypeProto]) -> None:
        self._view.learn(self._scope, types)


def is_constant(node: NodeProto) -> bool:
    return node.op_type == "Constant" and not plain_domain(node.domain)
