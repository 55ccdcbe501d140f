"""Names for dimensions that hide from onnxruntime that two tensors have the same shape.

With default settings onnxruntime reuses the buffer of an earlier tensor of the same shape, and holds that buffer from the first use of the
one to the last use of the other: memory that rematerialization frees in between stays allocated. It compares the shapes that are known
before the run, numbers with numbers and names with names. So every tensor with its own memory is declared with a dimension of a unique
name. A tensor that may be computed in place keeps the dimensions of the tensor that it overwrites.
"""

from __future__ import annotations

from collections.abc import Collection

from onnx import TypeProto, ValueInfoProto

from ..proto.tensor_types import tensor_of
from .compiled_tensors import CompiledTensors


class Disguise:
    """Declares tensors, each dimension name used once."""

    def __init__(self, tensors: CompiledTensors, taken: Collection[str]) -> None:
        """`taken` are the names of dimensions in the model."""
        self._tensors = tensors
        self._prefix = "checkmate_"
        while any(name.startswith(self._prefix) for name in taken):
            self._prefix = f"_{self._prefix}"
        self._count = 0
        self.declarations: list[ValueInfoProto] = []

    def hide(self, name: str) -> None:
        """Declare only the rank of a tensor."""
        self._declare(name, self._nameless(name))

    def set_apart(self, name: str, known: TypeProto, *, alone: bool) -> None:
        """Declare the unknown dimensions of a tensor and, if it is `alone` in its memory, give one dimension a unique name."""
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
    """True if a shape is known completely."""
    tensor = tensor_of(type_)
    return tensor is not None and tensor.HasField("shape") and all(dimension.HasField("dim_value") for dimension in tensor.shape.dim)
