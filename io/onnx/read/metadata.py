"""The metadata of a model file, read without reading the model: graphs and weights are skipped. Imports nothing heavy."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

COMPILED_KEY = "checkmate.version"
"""Entries in the metadata of a compiled model: the version of checkmate that made it, ..."""
THREADS_KEY = "checkmate.threads"
"""... the threads of the session that it was made for, ..."""
ARENA_KEY, WASTE_KEY = "checkmate.arena_bytes", "checkmate.arena_waste_bytes"
"""... the block that its tensors need, and how much of a chunk may stay unused, ..."""
PROCESS_KEY = "checkmate.process_bytes"
"""... and what the process will take."""
_METADATA = 14
"""The field of a ModelProto that holds entries of a key (field 1) and a value (field 2)."""
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
"""How protobuf writes a field."""
_LARGEST_ENTRY = 2**20
_MOST_THREADS = 1024
"""More is a damaged file, or a hostile one: every thread is started."""


def noted_number(notes: Mapping[str, str], key: str, most: int = 2**60) -> int | None:
    """A positive number in the metadata; None if there is none."""
    text = notes.get(key, "")
    return int(text) if text.isdecimal() and len(text) < _LONGEST_NUMBER and 0 < int(text) <= most else None


_LONGEST_NUMBER = 25


def noted_threads(notes: Mapping[str, str]) -> int | None:
    return noted_number(notes, THREADS_KEY, _MOST_THREADS)


def read_metadata(source: str | os.PathLike[str] | bytes) -> dict[str, str]:
    """Entries by key; empty if the file is none of ours, or damaged: whoever opens it next will say so."""
    try:
        if isinstance(source, bytes):
            return _entries(io.BytesIO(source), len(source))
        path = Path(source)
        with path.open("rb") as file:
            return _entries(file, path.stat().st_size)
    except (OSError, ValueError):
        return {}


def _entries(file: BinaryIO, size: int) -> dict[str, str]:
    found: dict[str, str] = {}
    while file.tell() < size:
        field, kind = divmod(_varint(file), 8)
        if field == _METADATA and kind == _BYTES:
            length = _varint(file)
            if length > _LARGEST_ENTRY:
                raise ValueError("an entry this long is none of ours")
            entry = _texts(file.read(length))
            found[entry.get(1, "")] = entry.get(2, "")
        else:
            _skip(file, kind)
    return found


def _texts(data: bytes) -> dict[int, str]:
    file = io.BytesIO(data)
    texts: dict[int, str] = {}
    while file.tell() < len(data):
        field, kind = divmod(_varint(file), 8)
        if kind == _BYTES:
            texts[field] = file.read(_varint(file)).decode("utf-8")
        else:
            _skip(file, kind)
    return texts


def _skip(file: BinaryIO, kind: int) -> None:
    if kind == _VARINT:
        _varint(file)
    elif kind == _BYTES:
        length = _varint(file)
        file.seek(length, os.SEEK_CUR)
    elif kind in (_FIXED32, _FIXED64):
        file.seek(4 if kind == _FIXED32 else 8, os.SEEK_CUR)
    else:
        raise ValueError("not a protobuf file")


def _varint(file: BinaryIO) -> int:
    number = 0
    for position in range(10):
        byte = file.read(1)
        if not byte:
            raise ValueError("the file ends too early")
        number |= (byte[0] & 0x7F) << (7 * position)
        if byte[0] < 0x80:
            return number
    raise ValueError("a number this long is none")
