"""A sparse matrix by columns, in plain numpy: all that the solvers need, at a fraction of the time that importing one takes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class SparseMatrix:
    """Column c has the entries `data[indptr[c]:indptr[c + 1]]` in the rows `indices[...]`."""

    rows: int
    indptr: Ints
    indices: Ints
    data: Floats

    @staticmethod
    def of(rows: Ints, columns: Ints, values: Floats, shape: tuple[int, int]) -> SparseMatrix:
        """From entries in any order; those of one place are added up."""
        order = np.lexsort((rows, columns))
        rows, columns, values = rows[order], columns[order], values[order]
        if len(rows):
            new = np.ones(len(rows), dtype=np.bool_)
            new[1:] = (rows[1:] != rows[:-1]) | (columns[1:] != columns[:-1])
            values = np.add.reduceat(values, np.flatnonzero(new))
            rows, columns = rows[new], columns[new]
        indptr = np.zeros(shape[1] + 1, dtype=np.int64)
        np.cumsum(np.bincount(columns, minlength=shape[1]), out=indptr[1:])
        return SparseMatrix(shape[0], indptr, rows.astype(np.int64), values.astype(np.float64))

    @property
    def columns(self) -> int:
        return len(self.indptr) - 1

    @property
    def nnz(self) -> int:
        return len(self.data)

    @property
    def column_of_entry(self) -> Ints:
        return np.repeat(np.arange(self.columns, dtype=np.int64), np.diff(self.indptr))

    def __matmul__(self, point: Floats) -> Floats:
        """Left-hand sides of all rows at a point."""
        sums = np.bincount(self.indices, weights=self.data * point[self.column_of_entry], minlength=self.rows)
        return np.asarray(sums, dtype=np.float64)

    def transposed_times(self, prices: Floats) -> Floats:
        """What row prices add up to in each column."""
        sums = np.bincount(self.column_of_entry, weights=self.data * prices[self.indices], minlength=self.columns)
        return np.asarray(sums, dtype=np.float64)
