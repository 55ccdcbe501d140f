"""What is known of the tensors of a model that is being compiled: those of the original, copies of these, and what was inside functions."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping

import onnx
from onnx import NodeProto, TypeProto

from .files import plain_domain
from .reader import OnnxModel
from .runtime_view import RuntimeView, is_complete
from .scope import Scope
from .shapes import ContradictionError, inferred_types
from .tensor_types import tensor_of


class CompiledTensors:
    """Types as we know them (`types`) and as onnxruntime knew them in the original (`seen`), by the names of the compiled model."""

    def __init__(self, model: OnnxModel, opsets: Mapping[str, int], copies: Mapping[str, str]) -> None:
        self._model = model
        self._opsets = opsets
        self._original = copies
        self._declared: set[str] = set()
        self._types: dict[str, TypeProto] = dict(model.types)
        self._types.update((copy, model.types[name]) for copy, name in copies.items() if name in model.types)
        graph = model.proto.graph
        self.stored = {tensor.name for tensor in graph.initializer} | {tensor.values.name for tensor in graph.sparse_initializer}
        self.stored |= {node.output[0] for node in graph.node if is_constant(node) and node.output}

    def learn(self, node: NodeProto) -> None:
        """Types of what was inside a function follow from what went in."""
        if is_constant(node) and node.output:
            self.stored.add(node.output[0])
        if all(name in self._types for name in node.output if name):
            return
        try:
            found = inferred_types(node, Scope(self._opsets, ChainMap(self._types)), self._model.proto.ir_version)
        except ContradictionError:
            return
        for name, type_ in found.items():
            self._types.setdefault(name, type_)

    def add(self, name: str, type_: TypeProto, *, declared: bool = False) -> None:
        """A tensor the original does not have. Of a declared one onnxruntime knows what the file says and no more."""
        self._types[name] = type_
        if declared:
            self._declared.add(name)

    def element(self, name: str) -> int | None:
        """The element type of a tensor whose rank is known; None for anything else."""
        type_ = self._types.get(name)
        tensor = None if type_ is None or type_.WhichOneof("value") != "tensor_type" else tensor_of(type_)
        return tensor.elem_type if tensor is not None and tensor.HasField("shape") else None

    def type_of(self, name: str) -> TypeProto:
        return self._types[name]

    def rank(self, name: str) -> int:
        return len(self._types[name].tensor_type.shape.dim)

    def seen(self, name: str) -> TypeProto | None:
        """The type as onnxruntime knew it in the original."""
        original = self._original.get(name, name)
        return self._model.seen.get(original) or self._types.get(name)

    def declares(self, name: str) -> bool:
        """Is the shape known only because the file declares it?"""
        return name in self._declared or self._original.get(name, name) in self._model.declared

    def missing_declarations(self, graph: onnx.GraphProto) -> list[onnx.ValueInfoProto]:
        """Types that onnxruntime knew in the original and cannot find out in the compiled graph, where dimensions have other names."""
        scope = Scope(self._opsets, ChainMap(self._types), numbers=ChainMap(dict(self._model.numbers)))
        scope.declare(graph.value_info)
        scope.declare(graph.output)
        hidden = {name for name in self._model.numbers if name not in self.stored}
        hidden |= {copy for copy, name in self._original.items() if name in hidden}
        fed = {info.name for info in graph.input}
        view = RuntimeView({name: type_ for name, type_ in self._model.seen.items() if name in fed}, hidden)
        missing: list[onnx.ValueInfoProto] = []
        for node in graph.node:
            if is_constant(node):
                continue
            found = {name: self._types[name] for name in node.output if name in self._types and not self.declares(name)}
            view.follow(node, scope, self._model.proto.ir_version, found, ())
            for name in node.output:
                if not name or is_complete(view.type_of(scope, name)):
                    continue
                before = self.seen(name)
                if before is not None and is_complete(before):
                    missing.append(onnx.ValueInfoProto(name=name, type=before))
                    view.types[name] = before
        return missing


def is_constant(node: NodeProto) -> bool:
    return node.op_type == "Constant" and not plain_domain(node.domain)
