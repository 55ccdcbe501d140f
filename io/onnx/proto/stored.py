"""Tensors stored in the file: their sizes, and the contents of the few that determine shapes. Weights are never read.

External data must be inside the model's folder, so that a model cannot make checkmate read other files.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import GraphProto, TensorProto, ValueInfoProto, numpy_helper

from ....core.errors import InputError
from .elements import BOOL, DOUBLE, FLOAT, FLOAT16, INT32, INT64, STRING, tensor_bytes
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
    location = check_location(tensor) if external else None
    if not may_say_shape(tensor.data_type, tensor.dims):
        return None
    if location is not None:
        raw = None if folder is None else _external_bytes(tensor, location, folder)
        if raw is None:
            return None
        copy = TensorProto(name=tensor.name, data_type=tensor.data_type, dims=tensor.dims, raw_data=raw)
        tensor = copy
    return array_of(tensor)


def array_of(tensor: TensorProto) -> Array:
    """The contents of a tensor that is stored in the file itself."""
    try:
        return np.asarray(numpy_helper.to_array(tensor))
    except (ValueError, TypeError, KeyError) as error:
        raise InputError(f"tensor {tensor.name!r} is damaged: {one_line(error)}") from None


def check_location(tensor: TensorProto) -> PurePosixPath:
    """The path of external data, relative to the model's folder; never outside it."""
    entries = {entry.key: entry.value for entry in tensor.external_data}
    location = PurePosixPath(entries.get("location", "").replace("\\", "/"))
    if location == PurePosixPath() or location.is_absolute() or ".." in location.parts or ":" in location.parts[0]:
        raise InputError(f"tensor {tensor.name!r}: external data at {str(location)!r} is not inside the model's folder")
    return location


def _external_bytes(tensor: TensorProto, location: PurePosixPath, folder: Path) -> bytes | None:
    entries = {entry.key: entry.value for entry in tensor.external_data}
    path = folder / location
    expected = stored_bytes(tensor)
    try:
        if not path.resolve().is_relative_to(folder.resolve()):
            raise InputError(f"tensor {tensor.name!r}: external data at {str(location)!r} is not inside the model's folder")
        offset, length = int(entries.get("offset") or 0), int(entries.get("length") or expected)
        if offset < 0 or length != expected:
            raise InputError(f"tensor {tensor.name!r}: external data of {length} bytes at {offset}, but its shape takes {expected}")
        with path.open("rb") as file:
            file.seek(offset)
            raw = file.read(length)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, OverflowError) as error:
        raise InputError(f"tensor {tensor.name!r}: external data cannot be read: {one_line(error)}") from None
    if len(raw) != expected:
        raise InputError(f"tensor {tensor.name!r}: external data ends after {len(raw)} of {expected} bytes")
    return raw


def free_inputs(graph: GraphProto) -> list[ValueInfoProto]:
    """Graph inputs that a caller must feed; files of old IR versions list initializers as inputs too."""
    stored = {tensor.name for tensor in graph.initializer} | {sparse.values.name for sparse in graph.sparse_initializer}
    return [value for value in graph.input if value.name not in stored]
