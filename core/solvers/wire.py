"""Messages between checkmate and a solver process: one line of JSON, then the arrays it names, as raw bytes.

Nothing is unpickled.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def send(stream: IO[bytes], fields: Mapping[str, Any], arrays: Mapping[str, Array] | None = None) -> None:
    """Write one message."""
    contents = {name: np.ascontiguousarray(array) for name, array in (arrays or {}).items()}
    shapes = [[name, array.dtype.str, len(array)] for name, array in contents.items()]
    stream.write(json.dumps({**fields, "arrays": shapes}).encode() + b"\n")
    for array in contents.values():
        stream.write(array.data.cast("B") if len(array) else b"")
    stream.flush()


def receive(stream: IO[bytes]) -> tuple[dict[str, Any], dict[str, Array]] | None:
    """Read one message; None at the end of the stream, even in the middle of a message."""
    line = stream.readline()
    if not line.endswith(b"\n"):
        return None
    fields: dict[str, Any] = json.loads(line)
    arrays: dict[str, Array] = {}
    for name, kind, length in fields.pop("arrays"):
        size = np.dtype(kind).itemsize * length
        data = stream.read(size)
        if len(data) < size:
            return None
        arrays[name] = np.frombuffer(data, kind)
    return fields, arrays
