"""What the formulations share: scaling, rows, and the way between sequences and solver values."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
import pyomo.environ as pyo
from numpy.typing import NDArray
from pyomo.core.expr import LinearExpression

from ..problem import Problem
from ..sequence import in_stage_order, profile, prune, stages
from .runs import closing_run
from .standard_form import StandardForm

LARGEST_COEFFICIENT = 1e4
"""Memory rows are scaled to this: far from the solvers' absolute tolerance of 1e-6 and from numerical trouble."""


@dataclass(frozen=True, slots=True)
class Scale:
    """Bytes and costs in numbers that suit a solver.

    Sizes are divided by their greatest common divisor first, so that the budget can be rounded down to a whole multiple: left-hand sides of
    memory rows are multiples too, and a solver's tolerance cannot let a schedule through that is a little too large.
    """

    size: tuple[float, ...]
    workspace: tuple[float, ...]
    available: float
    cost: tuple[float, ...]
    bytes_unit: float
    cost_unit: float
    """The real bytes and the real cost of one unit of the scaled model."""

    @staticmethod
    def of(problem: Problem) -> Scale:
        unit = functools.reduce(math.gcd, (*problem.size, *problem.workspace)) or 1
        most = max(max(problem.size, default=0), max(problem.workspace, default=0), 1)
        bytes_unit = max(1.0, most / unit / LARGEST_COEFFICIENT) * unit
        ideal = problem.ideal_cost
        cost_unit = 1.0 if 1 <= ideal <= 1e5 else (ideal / 1000 if ideal > 0 else 1.0)
        return Scale(
            size=tuple(size / bytes_unit for size in problem.size),
            workspace=tuple(size / bytes_unit for size in problem.workspace),
            available=(problem.available // unit * unit) / bytes_unit,
            cost=tuple(cost / cost_unit for cost in problem.cost),
            bytes_unit=bytes_unit,
            cost_unit=cost_unit,
        )


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
    around: Around | None = None
    """Says what R and S are where they are no variables, if the model is of the neighbourhood of a schedule."""

    def sequence(self, values: NDArray[np.float64]) -> tuple[int, ...]:
        """The sequence a solver's values describe. Rounded, never truncated."""
        chosen = [set(run) for run in self.runs]
        if self.around is not None:
            for stage, operation in self.around.fixed():
                chosen[stage].add(operation)
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


def stage_sets(problem: Problem, sequence: Sequence[int], runs: Sequence[range]) -> list[set[int]]:
    """What a sequence computes in each stage, where a stage without first computations takes all that comes after the last of them."""
    fine = stages(problem, in_stage_order(problem, sequence))
    merged: list[set[int]] = []
    for run in runs:
        parts = fine[run.start : run.stop] if run else fine[run.start :]
        merged.append({operation for part in parts for operation in part})
    return merged


def carried(problem: Problem, computed: Sequence[set[int]]) -> list[set[int]] | None:
    """Which values each stage must find in memory, given what each computes; None if that cannot be (nothing made them)."""
    kept: list[set[int]] = [set() for _ in range(len(computed) + 1)]
    kept[-1] = {value for value, needed in enumerate(problem.kept) if needed}
    for stage in reversed(range(len(computed))):
        wanted = {value for value in kept[stage + 1] if problem.producer[value] not in computed[stage]}
        for operation in computed[stage]:
            wanted.update(value for value in problem.inputs[operation] if problem.producer[value] not in computed[stage])
        kept[stage] = wanted
    return None if kept[0] else kept


@dataclass(frozen=True, slots=True, eq=False)
class Around:
    """The neighbourhood of a schedule: of some operations it is free where they are computed and kept; the rest is as in the schedule."""

    runs: tuple[range, ...]
    computed: tuple[frozenset[int], ...]
    """By the schedule in each stage, first computations included."""
    kept: tuple[frozenset[int], ...]
    """By the schedule into each stage, and past the last."""
    operations: frozenset[int]
    """Those that are free."""

    @staticmethod
    def of(problem: Problem, sequence: Sequence[int], operations: frozenset[int], cuts: Iterable[int]) -> Around | None:
        """Around a sequence that makes first computations in order; None if it does not fit once it is in stage order.

        Stages begin with the first computations in `cuts`, and where the sequence recomputes something, so that it has a place in the model
        exactly as it is.
        """
        ordered = in_stage_order(problem, sequence)
        if profile(problem, ordered).peak > problem.budget:
            return None
        begin = {0, problem.count, *cuts}
        begin.update(first for first, part in enumerate(stages(problem, ordered)) if len(part) > 1 and first < problem.count)
        runs = (*(range(start, stop) for start, stop in pairwise(sorted(begin))), *closing_run(problem))
        computed = stage_sets(problem, ordered, runs)
        kept = carried(problem, computed)
        if kept is None:
            return None
        return Around(runs, tuple(map(frozenset, computed)), tuple(map(frozenset, kept)), operations)

    def fixed(self) -> Iterator[tuple[int, int]]:
        """The recomputations, stage and operation, that are not free."""
        for stage, operations in enumerate(self.computed):
            again = (operation for operation in operations if operation not in self.runs[stage])
            yield from ((stage, operation) for operation in again if operation not in self.operations)


class Formulation(Protocol):
    """Builds the model of a problem; `runs` merges first computations into stages (one operation each if None)."""

    def __call__(self, problem: Problem, runs: Sequence[range] | None = None) -> Formulated: ...
