"""The external data of a tensor: a part of a file inside the model's folder, checked before it is opened.

A model may come from anywhere, so it must not make checkmate read or copy other files of the user: the file is inside the model's folder
even after following links, it is a regular file (opening a pipe would wait forever), and it is long enough.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from onnx import TensorProto

from ....core.errors import InputError
from .elements import tensor_bytes
from .model_file import one_line


@dataclass(frozen=True, slots=True)
class Part:
    """Where the data of a tensor is."""

    location: PurePosixPath
    offset: int
    bytes: int


def check_location(tensor: TensorProto) -> PurePosixPath:
    """The path of external data, relative to the model's folder; never outside it."""
    entries = {entry.key: entry.value for entry in tensor.external_data}
    text = entries.get("location", "")
    location = PurePosixPath(text.replace("\\", "/"))
    if (
        location == PurePosixPath()
        or location.is_absolute()
        or ".." in location.parts
        or ":" in location.parts[0]
        or not text.isprintable()
    ):
        raise _outside(tensor, location)
    return location


def part_of(tensor: TensorProto) -> Part:
    """The part of the file, as the model states it."""
    location = check_location(tensor)
    entries = {entry.key: entry.value for entry in tensor.external_data}
    expected = tensor_bytes(tensor.data_type, tensor.dims)
    if expected is None or any(size < 0 for size in tensor.dims):
        raise InputError(f"tensor {tensor.name!r}: external data of element type {tensor.data_type} cannot be read")
    try:
        offset, length = int(entries.get("offset") or 0), int(entries.get("length") or expected)
    except ValueError:
        raise InputError(f"tensor {tensor.name!r}: the offset or length of its external data is not a number") from None
    if offset < 0 or length != expected:
        raise InputError(f"tensor {tensor.name!r}: external data of {length} bytes at {offset}, but its shape takes {expected}")
    return Part(location, offset, expected)


def check_external(tensor: TensorProto, folder: Path | None) -> None:
    """Refuse a tensor whose data cannot be right. A file that is missing is no error here: a graph is known without its weights."""
    part = part_of(tensor)
    if folder is None:
        return
    path = folder / part.location
    try:
        status = path.stat()
        if not is_inside(path, folder):
            return  # refused when it would be read or copied
    except (OSError, ValueError):
        return
    _check_file(tensor, part, status)


def read_external(tensor: TensorProto, folder: Path) -> bytes | None:
    """The data of a tensor; None if the file is missing."""
    part = part_of(tensor)
    try:
        with open_inside(folder, part.location, tensor.name) as file:
            _check_file(tensor, part, os.fstat(file.fileno()))
            file.seek(part.offset)
            data = file.read(part.bytes)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, OverflowError) as error:
        raise InputError(f"tensor {tensor.name!r}: external data cannot be read: {one_line(error)}") from None
    if len(data) != part.bytes:
        raise InputError(f"tensor {tensor.name!r}: external data ends after {len(data)} of {part.bytes} bytes")
    return data


def open_inside(folder: Path, location: PurePosixPath, tensor: str) -> BinaryIO:
    """Open a regular file inside a folder. Without waiting, so that a pipe is found to be one."""
    path = folder / location
    if not is_inside(path, folder):
        raise InputError(
            f"tensor {tensor!r}: external data at {str(location)!r} is not inside the model's folder: it is a link out of it; copy the "
            "file there instead"
        )
    file = os.fdopen(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)), "rb")
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise InputError(f"tensor {tensor!r}: external data at {str(location)!r} is not a regular file")
    return file


def is_inside(path: Path, folder: Path) -> bool:
    """After following links."""
    return path.resolve().is_relative_to(folder.resolve())


def _check_file(tensor: TensorProto, part: Part, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise InputError(f"tensor {tensor.name!r}: external data at {str(part.location)!r} is not a regular file")
    if part.offset + part.bytes > status.st_size:
        available = max(0, status.st_size - part.offset)
        raise InputError(
            f"tensor {tensor.name!r}: external data ends after {available} of {part.bytes} bytes: {str(part.location)!r} has "
            f"{status.st_size} bytes, and the tensor starts at {part.offset}"
        )


def _outside(tensor: TensorProto, location: PurePosixPath) -> InputError:
    return InputError(f"tensor {tensor.name!r}: external data at {str(location)!r} is not inside the model's folder")
