"""The any-order program in Pyomo: what `--write-model` writes, and what other solvers than HiGHS can be given.

The engine solves the same rows as a matrix (`any_order.py`), presolved, and with better breakpoints after each solution. Here it is as the
docstring there has it, for readers: with the names of its constraints and all operations apart.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyomo.environ as pyo
from numpy.typing import NDArray

from ..model.bounding import bounding_problem
from ..model.precedence import PartialOrder
from ..model.problem import Problem
from ..schedule.sequence import Profile, drop_unread, profile
from .any_order import COMPUTE, KEEP, AnyOrderProgram
from .formulation import Rows
from .presolve import unchanged
from .pyomo_form import compile_standard_form
from .standard_form import StandardForm


@dataclass(frozen=True, slots=True, eq=False)
class AnyOrderModel:
    """A Pyomo model with the way back to sequences."""

    program: AnyOrderProgram
    model: pyo.ConcreteModel
    form: StandardForm
    columns: NDArray[np.int64]
    """The column of the matrix for each variable of the program."""

    @property
    def unit(self) -> float:
        return self.program.unit

    def sequence(self, values: NDArray[np.float64]) -> tuple[int, ...]:
        """Stage by stage, a breakpoint first in its stage. It may take more memory than there is between breakpoints."""
        problem, chain = self.program.original, self.program.chain
        sequence: list[int] = []
        for stage, operations in enumerate(self.program.stages(values[self.columns])):
            first = [chain[stage - 1]] if stage else []
            sequence += first + [operation for operation in operations if operation not in first]
        return drop_unread(problem, sequence)

    def start(self, sequence: Sequence[int]) -> dict[int, float]:
        return {int(self.columns[column]): value for column, value in self.program.start(sequence).items()}


def build_any_order(problem: Problem, runs: Sequence[range] | None = None, chain: Sequence[int] | None = None) -> AnyOrderModel:
    """With the given breakpoints; by default the one operation that is comparable with most others while memory is fullest."""
    bounding, precedence = bounding_problem(problem), PartialOrder(problem)
    chain = [likeliest_breakpoint(problem, precedence, profile(problem, range(problem.count)))] if chain is None else chain
    program = AnyOrderProgram.of(bounding, precedence, chain, presolved=unchanged(bounding))
    model = pyo.ConcreteModel()
    keys: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for letter, stage, item in program.variables():
        keys[letter].append((stage, item))
    variables: dict[str, Any] = {}
    for letter, domain in ((COMPUTE, pyo.Binary), (KEEP, pyo.Binary)):
        variables[letter] = pyo.Var(keys[letter], domain=domain)
        setattr(model, letter, variables[letter])
    for letter, stage, item in program.certain():
        variables[letter][stage, item].setlb(1)
    rows: dict[str, Rows] = defaultdict(Rows)
    for row in program.rows():
        terms = [
            (factor, variables[letter][stage, item])
            for factor, (letter, stage, item) in row.terms
            if program.column((letter, stage, item)) >= 0
        ]
        limits = {"lower": None if np.isinf(row.lower) else row.lower, "upper": None if np.isinf(row.upper) else row.upper}
        rows[row.name].add(row.index, terms, **limits)
    for name, each in rows.items():
        each.attach(model, name.replace("-", "_"))
    compute = variables[COMPUTE]
    model.cost = pyo.Objective(expr=pyo.quicksum(program.scale.cost[item] * compute[stage, item] for stage, item in keys[COMPUTE]))
    form = compile_standard_form(model)
    columns = [form.column_of[id(variables[letter][stage, item])] for letter, stage, item in program.variables()]
    return AnyOrderModel(program, model, form, np.array(columns, dtype=np.int64))


def likeliest_breakpoint(problem: Problem, precedence: PartialOrder, kept: Profile) -> int:
    memory = np.array(kept.memory, dtype=np.float64) - problem.base
    return int(np.argmax(precedence.comparable_shares**4 * memory))
