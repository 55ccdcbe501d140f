"""Tables with named columns, as compiled code takes them.

Not an array for every column: numba takes its time for every array that a kernel is given, and what is in one row is used together.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Table = NDArray[np.void]
Row = Any
"""A row of a table, as compiled code sees it."""


def columns(ints: str, floats: str = "", bools: str = "") -> np.dtype[np.void]:
    """The type of the rows of a table."""
    kinds = ((ints, np.int64), (floats, np.float64), (bools, np.bool_))
    return np.dtype([(name, kind) for names, kind in kinds for name in names.split()], align=True)


def filled(columns: np.dtype[np.void], rows: int, **content: Any) -> Table:
    """A table with some columns filled in and zeros in the others."""
    table = np.zeros(rows, columns)
    for name, column in content.items():
        table[name] = column
    return table


def in_rows(rows: Iterable[Iterable[int]]) -> tuple[Ints, Ints, Ints]:
    """Rows of different lengths as one array: where each begins, where it ends, and all of them."""
    lists = [list(row) for row in rows]
    lengths = np.array([len(row) for row in lists], dtype=np.int64)
    ends = np.cumsum(lengths)
    return ends - lengths, ends, np.array([item for row in lists for item in row], dtype=np.int64)


def linked(*related: tuple[Table, str, Iterable[Iterable[int]]]) -> Ints:
    """Rows of all kinds one behind the other; each table is told, in two columns of a name, where its own begin and end."""
    links: list[Ints] = []
    offset = 0
    for table, name, rows in related:
        begin, end, content = in_rows(rows)
        table[name], table[f"{name}_end"] = begin + offset, end + offset
        links.append(content)
        offset += len(content)
    return np.concatenate(links)


def first_random(seed: int) -> np.int64:
    """Where the random numbers of a seed begin: 64 bits, as compiled code keeps them."""
    mixed = ((seed * 2 + 1) * 0x9E3779B97F4A7C15 + 0xD1B54A32D192ED03) % 2**64
    return np.uint64(mixed).astype(np.int64)
