"""One registry of MILP solvers. To add one: a file with a class of the `Solver` protocol, and one line here.

Importing this loads no solver and takes no licence.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, cast

from ..errors import InputError

if TYPE_CHECKING:
    from .base import Solver

SOLVERS: Mapping[str, str] = {
    "highs": "highs:Highs",
    "cbc": "cbc:Cbc",
    "gurobi": "gurobi:Gurobi",
}
"""Name -> module:class, in the order of preference."""
JUDGE = "highs"
"""Always installed: asked where the word of another solver is not enough."""


def get_solver(name: str) -> Solver:
    """The solver of this name, its answers checked; an error that lists all names, or says what to install."""
    if name not in SOLVERS:
        raise InputError(f"no solver {name!r}; there are {', '.join(SOLVERS)}")
    from .checked import Checked

    solver = _load(name)
    solver.require()
    return Checked(solver, None if name == JUDGE else _load(JUDGE))


def _load(name: str) -> Solver:
    module, cls = SOLVERS[name].split(":")
    return cast("Solver", getattr(import_module(f".{module}", __name__), cls)())
