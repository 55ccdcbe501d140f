"""The matrix of a Pyomo model: what every solver is driven with.

Pyomo's own solver interfaces have neither start values nor progress for HiGHS, so the model is built in Pyomo and its matrix handed over.
"""

from __future__ import annotations

import numpy as np
import pyomo.environ as pyo
from pyomo.repn.plugins.standard_form import LinearStandardFormCompiler

from .sparse import SparseMatrix
from .standard_form import StandardForm


def compile_standard_form(model: pyo.ConcreteModel) -> StandardForm:
    """Take the matrix of a linear minimisation model."""
    info = LinearStandardFormCompiler().write(model, mixed_form=True)
    kinds = np.array([row.bound_type for row in info.rows], dtype=np.int8)
    count = len(info.columns)
    entries = info.A.tocoo()
    lower = np.fromiter((-np.inf if var.lb is None else var.lb for var in info.columns), np.float64, count)
    upper = np.fromiter((np.inf if var.ub is None else var.ub for var in info.columns), np.float64, count)
    return StandardForm(
        objective=info.c.toarray()[0],
        offset=float(info.c_offset[0]),
        matrix=SparseMatrix.of(entries.row, entries.col, entries.data, entries.shape),
        row_lower=np.where(kinds <= 0, info.rhs, -np.inf),
        row_upper=np.where(kinds >= 0, info.rhs, np.inf),
        column_lower=lower,
        column_upper=upper,
        integer=np.fromiter((not var.is_continuous() for var in info.columns), np.bool_, count),
        column_of={id(var): column for column, var in enumerate(info.columns)},
    )
