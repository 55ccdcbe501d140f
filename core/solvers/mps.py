"""A matrix as free-format MPS text, for solvers that read files."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ..milp.standard_form import StandardForm


def column_name(column: int) -> str:
    return f"c{column}"


def write_mps(form: StandardForm, path: Path) -> None:
    """Write the minimization without its offset, because readers treat the offset differently."""
    equal = form.row_lower == form.row_upper
    kinds = np.where(equal, "E", np.where(np.isfinite(form.row_upper), "L", "G"))
    sides = np.where(np.isfinite(form.row_upper), form.row_upper, form.row_lower)
    lines = ["NAME checkmate", "ROWS", " N obj"]
    lines += [f" {kind} r{row}" for row, kind in enumerate(kinds)]
    lines.append("COLUMNS")
    starts, rows, numbers = form.matrix.indptr, form.matrix.indices, form.matrix.data
    whole = False
    for column in range(form.columns):
        if bool(form.integer[column]) != whole:
            whole = not whole
            lines.append(f" MARKER{column} 'MARKER' '{'INTORG' if whole else 'INTEND'}'")
        if form.objective[column]:
            lines.append(f" c{column} obj {float(form.objective[column])!r}")
        for entry in range(starts[column], starts[column + 1]):
            lines.append(f" c{column} r{rows[entry]} {float(numbers[entry])!r}")
    if whole:
        lines.append(" MARKEREND 'MARKER' 'INTEND'")
    lines.append("RHS")
    lines += [f" rhs r{row} {float(side)!r}" for row, side in enumerate(sides) if side]
    lines.append("BOUNDS")
    for column, (lower, upper) in enumerate(zip(form.column_lower, form.column_upper, strict=True)):
        lines.append(f" LO bnd c{column} {float(lower)!r}" if np.isfinite(lower) else f" MI bnd c{column}")
        if np.isfinite(upper):
            lines.append(f" UP bnd c{column} {float(upper)!r}")
    lines.append("ENDATA")
    path.write_text("\n".join(lines) + "\n")
