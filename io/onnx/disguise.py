"""Names for dimensions that keep onnxruntime from knowing two tensors to be of one shape.

With default settings it puts a tensor into the buffer of an earlier one of the same shape, and holds that buffer from the first use of the
one to the last of the other: what rematerialization frees in between stays taken. It compares shapes as they are known beforehand, numbers
with numbers and names with names. So every tensor that gets memory of its own is declared with a dimension of a name that nothing else has.
What may be computed in place keeps the dimensions of what it overwrites.
"""

from __future__ import annotations

from collections.abc import Collection

from onnx import TypeProto, ValueInfoProto

from .compiled_tensors import CompiledTensors
from .tensor_types import tensor_of


class Disguise:
    """Declares tensors, each dimension name used once."""

    def __init__(self, tensors: CompiledTensors, taken: Collection[str]) -> None:
        """`taken` are the names of dimensions that the model has."""
        self._tensors = tensors
        self._prefix = "checkmate_"
        while any(name.startswith(self._prefix) for name in taken):
            self._prefix = f"_{self._prefix}"
        self._count = 0
        self.declarations: list[ValueInfoProto] = []

    def hide(self, name: str) -> None:
        """Let nothing be known of a tensor but its rank."""
        self._declare(name, self._nameless(name))

    def set_apart(self, name: str, known: TypeProto, *, alone: bool) -> None:
        """Declare what stayed open of a tensor's shape, and if it is `alone` in its memory, make one dimension differ from all others."""
        tensor = tensor_of(known)
        if tensor is None or not tensor.HasField("shape"):
            known = self._nameless(name)
        elif alone and not has_numbers_only(known):
            copy = TypeProto()
            copy.CopyFrom(known)
            next(dimension for dimension in copy.tensor_type.shape.dim if not dimension.HasField("dim_value")).Clear()
            known = copy
        if any(not dimension.HasField("dim_value") and not dimension.dim_param for dimension in known.tensor_type.shape.dim):
            self._declare(name, known)

    def _nameless(self, name: str) -> TypeProto:
        type_ = TypeProto()
        type_.tensor_type.elem_type = self._tensors.element(name) or 0
        type_.tensor_type.shape.SetInParent()
        for _ in range(self._tensors.rank(name)):
            type_.tensor_type.shape.dim.add()
        return type_

    def _declare(self, name: str, type_: TypeProto) -> None:
        declared = TypeProto()
        declared.CopyFrom(type_)
        for dimension in declared.tensor_type.shape.dim:
            if not dimension.HasField("dim_value") and not dimension.dim_param:
                self._count += 1
                dimension.dim_param = f"{self._prefix}{self._count}"
        self.declarations.append(ValueInfoProto(name=name, type=declared))
        self._tensors.declare(name, declared)


def has_numbers_only(type_: TypeProto) -> bool:
    """Is a shape known in full?"""
    tensor = tensor_of(type_)
    return tensor is not None and tensor.HasField("shape") and all(dimension.HasField("dim_value") for dimension in tensor.shape.dim)
