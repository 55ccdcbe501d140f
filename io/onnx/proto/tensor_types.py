"""Helpers for `TypeProto`: its shape, its size, its free dimensions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from onnx import TensorShapeProto, TypeProto, helper

from .elements import tensor_bytes

Shape = tuple[int, ...]
Dimension = TensorShapeProto.Dimension


def tensor_type(element: int, shape: Iterable[int]) -> TypeProto:
    return helper.make_tensor_type_proto(element, tuple(shape))


def tensor_of(type_: TypeProto) -> TypeProto.Tensor | TypeProto.SparseTensor | None:
    """The tensor type of a type; sparse tensors are treated as dense, because onnxruntime stores sparse initializers as dense ones."""
    match type_.WhichOneof("value"):
        case "tensor_type":
            return type_.tensor_type
        case "sparse_tensor_type":
            return type_.sparse_tensor_type
    return None


def is_settled(dimension: Dimension) -> bool:
    return dimension.HasField("dim_value") and dimension.dim_value >= 0


def shape_of(type_: TypeProto | None) -> Shape | None:
    """The shape of a tensor if every dimension of it is a number."""
    tensor = None if type_ is None else tensor_of(type_)
    if tensor is None or not tensor.HasField("shape"):
        return None
    dimensions = tensor.shape.dim
    if not all(is_settled(dimension) for dimension in dimensions):
        return None
    return tuple(dimension.dim_value for dimension in dimensions)


def type_bytes(type_: TypeProto) -> int | None:
    """Bytes of a tensor, or of an optional tensor if it is present. None if unknown, and for strings, sequences and maps."""
    if type_.WhichOneof("value") == "optional_type":
        return type_bytes(type_.optional_type.elem_type)
    tensor = tensor_of(type_)
    shape = shape_of(type_)
    return None if tensor is None or shape is None else tensor_bytes(tensor.elem_type, shape)


def dimensions_of(type_: TypeProto) -> Iterator[Dimension]:
    """All dimensions of a type, also inside optionals and sequences."""
    match type_.WhichOneof("value"):
        case "tensor_type":
            yield from type_.tensor_type.shape.dim
        case "sparse_tensor_type":
            yield from type_.sparse_tensor_type.shape.dim
        case "optional_type":
            yield from dimensions_of(type_.optional_type.elem_type)
        case "sequence_type":
            yield from dimensions_of(type_.sequence_type.elem_type)


def completed(inferred: TypeProto | None, declaration: Callable[[], TypeProto | None]) -> TypeProto | None:
    """The inferred type, with gaps filled from the declared type. Inference has priority: the file may declare another batch size."""
    if shape_of(inferred) is not None:
        return inferred
    declared = declaration()
    if inferred is None or inferred.WhichOneof("value") is None:
        return declared
    if declared is None:
        return inferred
    found, stated = tensor_of(inferred), tensor_of(declared)
    if found is None or stated is None:
        return declared if type_bytes(declared) is not None else inferred
    if not stated.HasField("shape"):
        return inferred
    element = found.elem_type or stated.elem_type
    if not found.HasField("shape"):
        return _with_dimensions(element, stated.shape.dim)
    if len(found.shape.dim) != len(stated.shape.dim):
        return inferred
    pairs = zip(found.shape.dim, stated.shape.dim, strict=True)
    return _with_dimensions(element, (known if is_settled(known) else other for known, other in pairs))


def _with_dimensions(element: int, dimensions: Iterable[Dimension]) -> TypeProto:
    made = TypeProto()
    made.tensor_type.elem_type = element
    made.tensor_type.shape.SetInParent()
    made.tensor_type.shape.dim.extend(dimensions)
    return made
