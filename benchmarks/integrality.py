"""How much frontier-advancing stages tighten the paper's MILP (section 4.7): the optimum over its LP relaxation, with them and without.

The paper's example: a chain of 8 layers and its backward pass, every cost and size 1, a budget of 4. Without frontier-advancing stages,
every stage may compute anything, and the last operation must be computed in some stage.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyomo.environ as pyo

from checkmate.core.events import Watch
from checkmate.core.milp.formulation import Rows
from checkmate.core.milp.paper import build_paper
from checkmate.core.milp.pyomo_form import compile_standard_form
from checkmate.core.milp.standard_form import StandardForm
from checkmate.core.model.costs import given_costs
from checkmate.core.model.graph import OperationSpec, ValueSpec, Work, assemble
from checkmate.core.model.problem import Problem, build_problem
from checkmate.core.settings import Settings
from checkmate.core.solvers import get_solver

LAYERS = 8
BUDGET = 4
PUBLISHED = {"free stages": 21.56, "frontier-advancing stages": 1.18}


@dataclass(frozen=True, slots=True)
class Gap:
    """The optimum is the same for both: a schedule can always be cut at its first computations."""

    stages: str
    variables: int
    relaxation: float
    optimum: float

    @property
    def ratio(self) -> float:
        return self.optimum / self.relaxation


def measure(layers: int = LAYERS, budget: int = BUDGET, time_limit: float = 600.0) -> list[Gap]:
    problem = chain(layers, budget)
    partitioned, free = build_paper(problem).form, free_stages(problem)
    optimum = _value(partitioned, time_limit)
    forms = {"free stages": free, "frontier-advancing stages": partitioned}
    return [Gap(name, form.columns, _value(form.relaxed(), time_limit), optimum) for name, form in forms.items()]


def chain(layers: int, budget: int) -> Problem:
    """Operations 0 to 2L; each reads the one before it, and backward operation 2L - i reads i too."""
    last = 2 * layers
    specs = [
        OperationSpec(
            str(number),
            "Op",
            tuple(str(read) for read in ([number - 1] if number else []) + ([last - number] if number > layers else [])),
            (ValueSpec(str(number), 1),),
            work=Work(cost=1.0),
            backward=number > layers,
        )
        for number in range(last + 1)
    ]
    graph = assemble(f"chain of {layers}", specs, (), {})
    return build_problem(graph, given_costs(graph), budget=budget)


def free_stages(problem: Problem) -> StandardForm:
    """(1a) to (1f), (2), (3), (6) and (7) without section 4.6: as many stages as operations, none of them bound to an operation.

    For operations that make one value of one size each, as in the chain; value i is what operation i makes.
    """
    count = problem.count
    every = range(count)
    model = pyo.ConcreteModel()
    model.R = pyo.Var(every, every, domain=pyo.Binary)
    model.S = pyo.Var(range(1, count), every, domain=pyo.Binary)
    reads = {operation: (*problem.inputs[operation], operation) for operation in every}
    model.FREE = pyo.Var([(t, i, k) for t in every for k in every for i in reads[k]], domain=pyo.Binary)
    model.U = pyo.Var(every, every, bounds=(0, problem.available))
    model.cost_1a = pyo.Objective(expr=sum(problem.cost[i] * model.R[t, i] for t in every for i in every), sense=pyo.minimize)

    def s(t: int, i: int) -> Any:
        """(1d): nothing is there before the first stage, and nothing need be there after the last."""
        return model.S[t, i] if 0 < t < count else 0

    inputs_1b, kept_1c, last_1e, memory_2_3, free_6, free_7 = (Rows() for _ in range(6))
    for t in every:
        for j in every:
            for i in problem.inputs[j]:
                inputs_1b.add((t, j, i), [(1.0, model.R[t, j]), (-1.0, model.R[t, i]), (-1.0, s(t, i))], upper=0.0)
        for i in every:
            if t:
                kept_1c.add((t, i), [(1.0, model.S[t, i]), (-1.0, model.R[t - 1, i]), (-1.0, s(t - 1, i))], upper=0.0)
    last_1e.add((0,), [(1.0, model.R[t, count - 1]) for t in every], lower=1.0)
    for t in every:
        for k in every:
            terms: list[tuple[float, Any]] = [(1.0, model.U[t, k]), (-float(problem.size[k]), model.R[t, k])]
            if k == 0:
                terms += [(-float(problem.size[i]), s(t, i)) for i in every]
            else:
                terms.append((-1.0, model.U[t, k - 1]))
                terms += [(float(problem.size[i]), model.FREE[t, i, k - 1]) for i in reads[k - 1]]
            memory_2_3.add((t, k), terms, lower=0.0, upper=0.0)
            for i in reads[k]:
                later = [model.R[t, j] for j in problem.consumers[i] if j > k]
                hazards = [(1.0, 1), (-1.0, model.R[t, k]), (1.0, s(t + 1, i)), *((1.0, user) for user in later)]
                kappa = float(len(later) + 2)
                free_6.add((t, i, k), [*hazards, (1.0, model.FREE[t, i, k])], lower=1.0)
                free_7.add((t, i, k), [*hazards, (kappa, model.FREE[t, i, k])], upper=kappa)
    for name, rows in (("1b", inputs_1b), ("1c", kept_1c), ("1e", last_1e), ("2_3", memory_2_3), ("6", free_6), ("7", free_7)):
        rows.attach(model, f"rows_{name}")
    return compile_standard_form(model)


def _value(form: StandardForm, time_limit: float) -> float:
    result = get_solver("highs").solve(form, Settings(gap=0.0), Watch(time_limit))
    if result.values is None:
        raise RuntimeError(f"HiGHS found nothing within {time_limit} s")
    return float(form.objective @ result.values + form.offset)
