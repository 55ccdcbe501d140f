"""Rows of a linear program, put together with numpy: thousands at a time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .sparse import Ints, SparseMatrix
from .standard_form import StandardForm


class Matrix:
    """Collects rows of up to three terms and long rows, all of the form lower <= row, by columns; a column of -1 is a zero."""

    def __init__(self) -> None:
        self.rows: list[Ints] = []
        self.columns: list[Ints] = []
        self.values: list[NDArray[np.float64]] = []
        self.lower: list[NDArray[np.float64]] = []
        self.count = 0

    def add(self, terms: Sequence[tuple[float, Ints]], lower: float) -> None:
        """One row for each position of the columns given: the sum of coefficient * column is at least `lower`."""
        many = len(terms[0][1])
        number = np.arange(self.count, self.count + many, dtype=np.int64)
        for coefficient, columns in terms:
            there = columns >= 0
            self.rows.append(number[there])
            self.columns.append(columns[there])
            self.values.append(np.full(int(there.sum()), coefficient))
        self.lower.append(np.full(many, lower))
        self.count += many

    def add_long(self, columns: Ints, values: NDArray[np.float64], lower: float) -> None:
        self.rows.append(np.full(len(columns), self.count, dtype=np.int64))
        self.columns.append(columns)
        self.values.append(values)
        self.lower.append(np.array([lower]))
        self.count += 1

    def form(self, objective: NDArray[np.float64], offset: float) -> StandardForm:
        width = len(objective)
        matrix = SparseMatrix.of(np.concatenate(self.rows), np.concatenate(self.columns), np.concatenate(self.values), (self.count, width))
        lower = np.concatenate(self.lower)
        return StandardForm(
            objective=objective,
            offset=offset,
            matrix=matrix,
            row_lower=lower,
            row_upper=np.full(len(lower), np.inf),
            column_lower=np.zeros(width),
            column_upper=np.ones(width),
            integer=np.zeros(width, dtype=np.bool_),
            column_of={},
        )
