"""`--write-model`: write the MILP to a file, for other solvers or for inspection."""

from __future__ import annotations

import tempfile
from pathlib import Path

from ...core.errors import InputError
from ...core.model.problem import Problem
from ...core.settings import FormulationName

FORMATS = (".lp", ".mps")


def check_model_name(path: Path) -> None:
    if path.suffix.lower() not in FORMATS:
        raise InputError(f"--write-model: the name {str(path)!r} must end in {' or '.join(FORMATS)}")


def write_model(problem: Problem, formulation: FormulationName, path: Path) -> None:
    """Build the formulation and write it with the names of its variables and constraints."""
    from ...core.milp import get_formulation
    from ...io.formats.atomic import atomic_write

    model = get_formulation(formulation)(problem).model
    with tempfile.TemporaryDirectory(prefix="checkmate-") as folder:
        written = Path(folder) / f"model{path.suffix.lower()}"
        model.write(str(written), io_options={"symbolic_solver_labels": True})
        atomic_write(path, written.read_bytes())
