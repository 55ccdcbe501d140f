"""Exchange tensors between processes: each tensor as raw bytes in a file, with its name, element type and shape.

Raw bytes, because numpy has neither bfloat16 nor eight-bit floats, and because outputs are compared bit by bit.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ...core.errors import InputError

Array = npt.NDArray[Any]

BFLOAT16 = 16
NUMPY_TYPES: Mapping[int, str] = {
    1: "float32",
    2: "uint8",
    3: "int8",
    4: "uint16",
    5: "int16",
    6: "int32",
    7: "int64",
    9: "bool",
    10: "float16",
    11: "float64",
    12: "uint32",
    13: "uint64",
    14: "complex64",
    15: "complex128",
}
"""Element types of ONNX that numpy has; bfloat16 is stored as uint16."""
FLOATS = frozenset({1, 10, 11, BFLOAT16})


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor in a file."""

    name: str
    element: int
    shape: tuple[int, ...]
    file: str

    def fields(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_fields(fields: Mapping[str, Any]) -> Tensor:
        return Tensor(fields["name"], fields["element"], tuple(fields["shape"]), fields["file"])


def storage_type(element: int, name: str) -> np.dtype[Any]:
    """The numpy type in which an element type is stored."""
    if element == BFLOAT16:
        return np.dtype("uint16")
    if element not in NUMPY_TYPES:
        raise InputError(f"tensor {name!r} has element type {element}, which cannot be passed to onnxruntime from Python")
    return np.dtype(NUMPY_TYPES[element])


def write_tensors(arrays: Mapping[str, tuple[int, Array]], folder: Path, prefix: str) -> tuple[Tensor, ...]:
    """Write each array, with its element type, to its own file."""
    written = []
    for number, (name, (element, array)) in enumerate(arrays.items()):
        path = folder / f"{prefix}{number}.bin"
        np.ascontiguousarray(array).tofile(path)
        written.append(Tensor(name, element, tuple(array.shape), str(path)))
    return tuple(written)


def read_tensor(tensor: Tensor) -> Array:
    """The stored form; see `storage_type`."""
    kind = storage_type(tensor.element, tensor.name)
    if not math.prod(tensor.shape):
        return np.empty(tensor.shape, kind)
    return np.fromfile(tensor.file, kind).reshape(tensor.shape)


def numbers_of(tensor: Tensor) -> Array | None:
    """The values in double precision; None for types that numpy does not have."""
    if tensor.element == BFLOAT16:
        return (read_tensor(tensor).astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    if tensor.element not in NUMPY_TYPES:
        return None
    array = read_tensor(tensor)
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def total_bytes(tensors: Iterable[Tensor]) -> int:
    return sum(Path(tensor.file).stat().st_size for tensor in tensors)
