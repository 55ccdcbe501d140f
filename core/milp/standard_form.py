"""The matrix of a Pyomo model: what every solver is driven with.

Pyomo's own solver interfaces have neither start values nor progress for HiGHS, so the model is built in Pyomo and its matrix handed over.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyomo.environ as pyo
from numpy.typing import NDArray
from pyomo.repn.plugins.standard_form import LinearStandardFormCompiler


@dataclass(frozen=True, slots=True, eq=False)
class StandardForm:
    """Minimise objective @ x + offset subject to row and column limits."""

    objective: NDArray[np.float64]
    offset: float
    matrix: Any
    """scipy.sparse.csc_array, one row per constraint."""
    row_lower: NDArray[np.float64]
    row_upper: NDArray[np.float64]
    column_lower: NDArray[np.float64]
    column_upper: NDArray[np.float64]
    integer: NDArray[np.bool_]
    column_of: dict[int, int]
    """Column of each Pyomo variable, by id()."""

    @property
    def columns(self) -> int:
        return len(self.objective)

    def relaxed(self) -> StandardForm:
        """The LP relaxation."""
        return StandardForm(
            self.objective,
            self.offset,
            self.matrix,
            self.row_lower,
            self.row_upper,
            self.column_lower,
            self.column_upper,
            np.zeros(self.columns, dtype=np.bool_),
            self.column_of,
        )


def compile_standard_form(model: pyo.ConcreteModel) -> StandardForm:
    """Take the matrix of a linear minimisation model."""
    info = LinearStandardFormCompiler().write(model, mixed_form=True)
    kinds = np.array([row.bound_type for row in info.rows], dtype=np.int8)
    count = len(info.columns)
    lower = np.fromiter((-np.inf if var.lb is None else var.lb for var in info.columns), np.float64, count)
    upper = np.fromiter((np.inf if var.ub is None else var.ub for var in info.columns), np.float64, count)
    return StandardForm(
        objective=info.c.toarray()[0],
        offset=float(info.c_offset[0]),
        matrix=info.A.tocsc(),
        row_lower=np.where(kinds <= 0, info.rhs, -np.inf),
        row_upper=np.where(kinds >= 0, info.rhs, np.inf),
        column_lower=lower,
        column_upper=upper,
        integer=np.fromiter((not var.is_continuous() for var in info.columns), np.bool_, count),
        column_of={id(var): column for column, var in enumerate(info.columns)},
    )
