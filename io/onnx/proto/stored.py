"""Tensors stored in the file: their sizes, and the contents of the few that determine shapes. Weights are never read."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import GraphProto, TensorProto, ValueInfoProto, numpy_helper

from ....core.errors import InputError
from .elements import BOOL, DOUBLE, FLOAT, FLOAT16, INT32, INT64, STRING, tensor_bytes
from .external_data import check_external, read_external
from .model_file import one_line

_LARGEST_SHAPE_TENSOR = {INT32: 1024, INT64: 1024, BOOL: 1024, FLOAT: 16, FLOAT16: 16, DOUBLE: 16}
"""Element type -> the most elements of a tensor that may determine a shape (axes, sizes, scales) and is not a weight."""

Array = npt.NDArray[Any]


def may_say_shape(element: int, shape: Iterable[int]) -> bool:
    """True if a tensor is small enough, and of a type, to be sizes, axes or scales."""
    return 0 <= math.prod(shape) <= _LARGEST_SHAPE_TENSOR.get(element, -1)


def stored_bytes(tensor: TensorProto) -> int:
    """The bytes of a stored tensor, from its dimensions, or from its text if it contains strings."""
    if any(size < 0 for size in tensor.dims):
        raise InputError(f"tensor {tensor.name!r} has a negative dimension: {list(tensor.dims)}")
    size = tensor_bytes(tensor.data_type, tensor.dims)
    if size is None:
        if tensor.data_type != STRING:
            raise InputError(f"tensor {tensor.name!r} has element type {tensor.data_type}, which is unknown")
        return sum(map(len, tensor.string_data))
    return size


def shape_numbers(tensor: TensorProto, folder: Path | None) -> Array | None:
    """The contents of a tensor that may determine a shape; None for weights, and for missing external data."""
    external = tensor.data_location == TensorProto.EXTERNAL
    if external:
        check_external(tensor, folder)
    if not may_say_shape(tensor.data_type, tensor.dims):
        return None
    return external_array(tensor, folder) if external else array_of(tensor)


def external_array(tensor: TensorProto, folder: Path | None) -> Array | None:
    """The contents of a tensor with external data; None if the file is missing."""
    data = None if folder is None else read_external(tensor, folder)
    if data is None:
        return None
    return array_of(TensorProto(name=tensor.name, data_type=tensor.data_type, dims=tensor.dims, raw_data=data))


def array_of(tensor: TensorProto) -> Array:
    """The contents of a tensor that is stored in the file itself."""
    try:
        return np.asarray(numpy_helper.to_array(tensor))
    except (ValueError, TypeError, KeyError) as error:
        raise InputError(f"tensor {tensor.name!r} is damaged: {one_line(error)}") from None


def free_inputs(graph: GraphProto) -> list[ValueInfoProto]:
    """Graph inputs that a caller must feed; files of old IR versions list initializers as inputs too."""
    stored = {tensor.name for tensor in graph.initializer} | {sparse.values.name for sparse in graph.sparse_initializer}
    return [value for value in graph.input if value.name not in stored]
