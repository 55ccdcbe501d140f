"""Element types and their sizes. By number, so that types newer than the installed onnx are known too."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

FLOAT = 1
INT32 = 6
INT64 = 7
STRING = 8
BOOL = 9
FLOAT16 = 10
DOUBLE = 11

ELEMENT_BITS: Mapping[int, int] = {
    FLOAT: 32,
    2: 8,  # uint8
    3: 8,  # int8
    4: 16,  # uint16
    5: 16,  # int16
    INT32: 32,
    INT64: 64,
    BOOL: 8,
    FLOAT16: 16,
    DOUBLE: 64,
    12: 32,  # uint32
    13: 64,  # uint64
    14: 64,  # complex64
    15: 128,  # complex128
    16: 16,  # bfloat16
    17: 8,  # float8e4m3fn
    18: 8,  # float8e4m3fnuz
    19: 8,  # float8e5m2
    20: 8,  # float8e5m2fnuz
    21: 4,  # uint4
    22: 4,  # int4
    23: 4,  # float4e2m1
    24: 8,  # float8e8m0
    25: 2,  # uint2
    26: 2,  # int2
    27: 6,  # float6e2m3
    28: 6,  # float6e3m2
}


def tensor_bytes(element: int, shape: Iterable[int]) -> int | None:
    """Types narrower than a byte are packed, and the last byte is padded. None for strings and types of unknown width."""
    bits = ELEMENT_BITS.get(element)
    return None if bits is None else (math.prod(shape) * bits + 7) // 8
