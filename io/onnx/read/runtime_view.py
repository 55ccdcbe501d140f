"""What onnxruntime knows about each tensor before the run, where it knows less than we do.

It keeps symbolic dimensions, and it does little shape arithmetic (how much depends on its version; we assume none except Shape itself):
after a Reshape to a computed shape it knows no shape at all. Whether it computes in place, and which tensors share a buffer, depends on
this. So we repeat its inference here, which is that of onnx.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Container, Mapping
from dataclasses import dataclass, field

from onnx import NodeProto, TypeProto

from ..proto.tensor_types import Dimension, shape_of, tensor_of
from .scope import Scope
from .shapes import ContradictionError, inferred_types


@dataclass(slots=True)
class RuntimeView:
    """Grows node by node, as the scope does."""

    types: dict[str, TypeProto] = field(default_factory=dict)
    """Only where they differ from those of the scope."""
    hidden: set[str] = field(default_factory=set)
    """Tensors whose contents only we know."""

    def type_of(self, scope: Scope, name: str) -> TypeProto | None:
        return self.types.get(name) or scope.types.get(name)

    def follow(self, node: NodeProto, scope: Scope, ir_version: int, found: Mapping[str, TypeProto], numbers: Container[str]) -> None:
        """Called after a node's outputs are defined in the scope: `found` are their inferred types, `numbers` those with known contents."""
        if node.op_type != "Shape" or not all(_is_known(self.type_of(scope, name)) for name in node.input):
            self.hidden.update(name for name in node.output if name in numbers)
        self.learn(scope, self.outputs_of(node, scope, ir_version, found))

    def outputs_of(self, node: NodeProto, scope: Scope, ir_version: int, found: Mapping[str, TypeProto]) -> dict[str, TypeProto]:
        """What onnxruntime knows about a node's outputs; `found` are the types inferred from all that we know."""
        if any(name in self.types or name in self.hidden for name in node.input):
            found = self._inferred(node, scope, ir_version)
        return {name: _merged(found.get(name), scope.declared.get(name)) for name in node.output if name}

    def learn(self, scope: Scope, types: Mapping[str, TypeProto]) -> None:
        for name, type_ in types.items():
            if shape_of(type_) is None or shape_of(type_) != shape_of(scope.types.get(name)):
                self.types[name] = type_

    def _inferred(self, node: NodeProto, scope: Scope, ir_version: int) -> Mapping[str, TypeProto]:
        numbers = {name: scope.numbers[name] for name in node.input if name in scope.numbers and name not in self.hidden}
        types = ChainMap(self.types, *scope.types.maps)
        try:
            return inferred_types(node, Scope(scope.opsets, types, numbers=ChainMap(numbers)), ir_version)
        except ContradictionError:
            return {}


def _is_known(type_: TypeProto | None) -> bool:
    return shape_of(type_) is not None


def _merged(inferred: TypeProto | None, declared: TypeProto | None) -> TypeProto:
    """Merge as onnxruntime does: prefer a number to a name, an inferred number to a declared one, a declared name to an inferred one."""
    found = None if inferred is None else tensor_of(inferred)
    stated = None if declared is None else tensor_of(declared)
    if inferred is None or found is None:
        return declared or inferred or TypeProto()
    if declared is None or stated is None or not stated.HasField("shape"):
        return inferred
    if not found.HasField("shape"):
        return declared
    if len(found.shape.dim) != len(stated.shape.dim):
        return inferred
    merged = TypeProto()
    merged.tensor_type.elem_type = found.elem_type or stated.elem_type
    merged.tensor_type.shape.dim.extend(_merged_dimension(*pair) for pair in zip(found.shape.dim, stated.shape.dim, strict=True))
    merged.tensor_type.shape.SetInParent()
    return merged


def _merged_dimension(inferred: Dimension, declared: Dimension) -> Dimension:
    if inferred.HasField("dim_value"):
        return inferred
    return declared if declared.HasField("dim_value") or declared.dim_param else inferred
