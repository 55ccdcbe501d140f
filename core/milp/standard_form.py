"""A linear or integer program as a matrix with limits: what every solver takes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from .sparse import SparseMatrix


@dataclass(frozen=True, slots=True, eq=False)
class StandardForm:
    """Minimise objective @ x + offset subject to row and column limits."""

    objective: NDArray[np.float64]
    offset: float
    matrix: SparseMatrix
    """One row per constraint."""
    row_lower: NDArray[np.float64]
    row_upper: NDArray[np.float64]
    column_lower: NDArray[np.float64]
    column_upper: NDArray[np.float64]
    integer: NDArray[np.bool_]
    column_of: dict[int, int]
    """Column of each Pyomo variable, by id(); empty for a program that was built without Pyomo."""

    @property
    def columns(self) -> int:
        return len(self.objective)

    def relaxed(self) -> StandardForm:
        """The LP relaxation."""
        return replace(self, integer=np.zeros(self.columns, dtype=np.bool_))
