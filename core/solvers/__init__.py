"""The registry of MILP solvers. To add one: a file with a class that follows the `Solver` protocol, and one line here.

Importing this module loads no solver and needs no licence.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ..errors import InputError
from ..lookup import imported

if TYPE_CHECKING:
    from .base import Solver

SOLVERS: Mapping[str, str] = {
    "highs": ".highs:Highs",
    "cbc": ".cbc:Cbc",
    "gurobi": ".gurobi:Gurobi",
}
"""Name -> module and class, in the order of preference."""
JUDGE = "highs"
"""Always installed; confirms claims of other solvers that cannot be checked."""


def get_solver(name: str) -> Solver:
    """The solver of this name, with its answers checked. Raises an error that lists all names, or says what to install."""
    if name not in SOLVERS:
        raise InputError(f"no solver {name!r}; choose from {', '.join(SOLVERS)}")
    from .checked import Checked

    solver = _load(name)
    solver.require()
    return Checked(solver, None if name == JUDGE else _load(JUDGE))


def _load(name: str) -> Solver:
    solver: Solver = imported(SOLVERS[name], __name__)()
    return solver
