"""Arrays from an .npz file, as `numpy.savez` writes them.

The header of an entry is checked before it is unpacked, because a few kilobytes can expand to gigabytes.
"""

from __future__ import annotations

import math
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy

from ...core.errors import InputError
from .tensor_files import Array

Check = Callable[[str, tuple[int, ...], "np.dtype[Any]"], None]
"""Raises InputError for an unexpected name, shape or type."""
_SUFFIX = ".npy"
_DAMAGES = (
    ValueError,
    TypeError,
    KeyError,
    EOFError,
    RuntimeError,
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    SyntaxError,
    tokenize.TokenError,
)
"""The exceptions of zipfile, zlib and numpy for damaged files; NotImplementedError (unknown compression) is a RuntimeError."""


def read_npz(path: Path, check: Check) -> dict[str, Array]:
    """All arrays of a file, each checked first."""
    try:
        with zipfile.ZipFile(path) as archive:
            return {name.removesuffix(_SUFFIX): _array(archive, name, check) for name in archive.namelist()}
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {(error.strerror or str(error)).lower()}") from None
    except _DAMAGES:
        raise InputError(
            f"{path}: not an .npz file of plain arrays: save the inputs with numpy.savez({str(path)!r}, name=array, ...)"
        ) from None


def _array(archive: zipfile.ZipFile, name: str, check: Check) -> Array:
    with archive.open(name) as entry:
        shape, fortran, dtype = _header(entry)
        if dtype.hasobject:
            raise ValueError("objects are not arrays of numbers")
        check(name.removesuffix(_SUFFIX), shape, dtype)
        size = math.prod(shape) * dtype.itemsize
        data = entry.read(size)
    if len(data) != size:
        raise EOFError
    return np.frombuffer(data, dtype).reshape(shape, order="F" if fortran else "C")


def _header(entry: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    version = npy.read_magic(entry)
    if version == (1, 0):
        return npy.read_array_header_1_0(entry)
    if version in ((2, 0), (3, 0)):
        return npy.read_array_header_2_0(entry)
    raise ValueError(f"version {version}")
