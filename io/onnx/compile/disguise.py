"""Declare shapes that barriers hide from onnxruntime, where it must know them: it computes in place only if it knows that the output has
the shape of the input.

What is behind a barrier has no shape for onnxruntime. This is wanted: with default settings it would give the buffer of an earlier tensor
to a later one of the same shape and hold it in between, which is memory that rematerialization frees. So dimensions are declared with
unique names, not with numbers, and only for what is overwritten.
"""

from __future__ import annotations

from collections.abc import Collection

from onnx import TypeProto, ValueInfoProto

from ..proto.tensor_types import tensor_of, tensor_type
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

    def empty(self, name: str, element: int) -> None:
        """Declare a tensor without elements. onnxruntime then finds a buffer for it at once; without a known shape it would compare it with
        all buffers that were ever freed, which takes minutes in large models."""
        self._declare(name, tensor_type(element, (0,)))

    def tell(self, name: str) -> None:
        """Declare a tensor with unique names for its dimensions."""
        type_ = TypeProto()
        type_.tensor_type.elem_type = self._tensors.element(name) or 0
        type_.tensor_type.shape.SetInParent()
        for _ in range(self._tensors.rank(name)):
            self._count += 1
            type_.tensor_type.shape.dim.add().dim_param = f"{self._prefix}{self._count}"
        self._declare(name, type_)

    def _declare(self, name: str, type_: TypeProto) -> None:
        self.declarations.append(ValueInfoProto(name=name, type=type_))
        self._tensors.declare(name, type_)


def is_complete(type_: TypeProto | None) -> bool:
    """True if every dimension is known, by number or by name."""
    tensor = None if type_ is None else tensor_of(type_)
    return (
        tensor is not None
        and tensor.HasField("shape")
        and all(dimension.HasField("dim_value") or dimension.dim_param for dimension in tensor.shape.dim)
    )
