"""What the Pyomo formulations share: rows, and the way between sequences and solver values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyomo.environ as pyo
from numpy.typing import NDArray
from pyomo.core.expr import LinearExpression

from ..model.problem import Problem
from ..schedule.sequence import prune
from .carrying import carried, stage_sets
from .standard_form import StandardForm


class Rows:
    """Collects linear rows by index and adds them to a model as one named constraint."""

    def __init__(self) -> None:
        self._rows: dict[tuple[int, ...], tuple[float | None, Any, float | None]] = {}

    def add(
        self, index: tuple[int, ...], terms: Sequence[tuple[float, Any]], *, lower: float | None = None, upper: float | None = None
    ) -> None:
        """lower <= sum of coefficient * term <= upper, where a term is a variable or a number and may come several times."""
        coefficients: dict[int, float] = {}
        variables: dict[int, Any] = {}
        constant = 0.0
        for coefficient, term in terms:
            if isinstance(term, int | float):
                constant += coefficient * term
            else:
                variables[id(term)] = term
                coefficients[id(term)] = coefficients.get(id(term), 0.0) + coefficient
        used = [key for key, coefficient in coefficients.items() if coefficient]
        if not used:
            if (lower is not None and constant < lower) or (upper is not None and constant > upper):
                raise ValueError(f"row {index} without variables cannot hold")
            return
        body = LinearExpression(constant=0, linear_coefs=[coefficients[key] for key in used], linear_vars=[variables[key] for key in used])
        self._rows[index] = (None if lower is None else lower - constant, body, None if upper is None else upper - constant)

    def attach(self, model: pyo.ConcreteModel, name: str) -> None:
        rows = self._rows
        if rows:
            setattr(model, name, pyo.Constraint(list(rows), rule=lambda _, *index: rows[index]))


@dataclass(frozen=True, slots=True, eq=False)
class Formulated:
    """A Pyomo model with the way back to sequences."""

    problem: Problem
    model: pyo.ConcreteModel
    form: StandardForm
    runs: tuple[range, ...]
    """The first computations of each stage."""
    compute: Mapping[tuple[int, int], Any]
    """R[stage, operation] where it is a variable; elsewhere it is 1 for first computations and 0 otherwise."""
    keep: Mapping[tuple[int, int], Any]
    """S[stage, value] where it is a variable; elsewhere it is 0."""
    unit: float
    """What one unit of the objective is in cost (or in bytes, where the peak is minimised)."""

    def sequence(self, values: NDArray[np.float64]) -> tuple[int, ...]:
        """The sequence a solver's values describe. Rounded, never truncated."""
        chosen = [set(run) for run in self.runs]
        column_of = self.form.column_of
        for (stage, operation), variable in self.compute.items():
            column = column_of.get(id(variable))
            if column is not None and values[column] > 0.5:
                chosen[stage].add(operation)
        return prune(self.problem, [operation for stage in chosen for operation in sorted(stage)])

    def start(self, sequence: Sequence[int]) -> dict[int, float] | None:
        """Columns of R and S for a sequence; None if the sequence does not have the form of this model."""
        computed = stage_sets(self.problem, sequence, self.runs)
        kept = carried(self.problem, computed)
        if kept is None:
            return None
        values: dict[int, float] = {}
        column_of = self.form.column_of
        for table, sets in ((self.compute, computed), (self.keep, kept)):
            for (stage, item), variable in table.items():
                column = column_of.get(id(variable))
                if column is not None:
                    values[column] = 1.0 if item in sets[stage] else 0.0
        return values


class Formulation(Protocol):
    """Builds the model of a problem; `runs` merges first computations into stages (one operation each if None)."""

    def __call__(self, problem: Problem, runs: Sequence[range] | None = None) -> Formulated: ...
