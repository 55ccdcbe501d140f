"""The MILP of the Checkmate paper (Jain et al., MLSys 2020), its constraints numbered as there: the reference.

Faithful but for two things the paper leaves out: an operation may make several values (S, FREE and sizes are per value, R per operation),
and an operation may need workspace while it runs. Graph outputs are kept past the last stage, and may be made again in one more stage
after it. The liveness form is tested against it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyomo.environ as pyo
from pyomo.core.expr import LinearExpression

from ..model.problem import Problem
from .formulation import Formulated, Rows
from .pyomo_form import compile_standard_form
from .scale import Scale
from .stages import single_runs


def build_paper(problem: Problem, runs: Sequence[range] | None = None) -> Formulated:
    """Build equations (1)-(8) with frontier-advancing stages (section 4.6): stage t ends with the first computation of operation t."""
    if runs is not None and tuple(runs) != single_runs(problem):
        raise ValueError("the paper's formulation has one first computation per stage")
    model = pyo.ConcreteModel(name=problem.graph.name)
    scale = Scale.of(problem)
    each = single_runs(problem)
    count, values = len(each), range(len(problem.size))
    steps = [(t, i) for t, run in enumerate(each) for i in range(run.stop)]
    model.R = pyo.Var(steps, domain=pyo.Binary)
    model.S = pyo.Var([(t, v) for t in range(count) for v in values if problem.producer[v] < t], domain=pyo.Binary)
    model.FREE = pyo.Var([(t, v, k) for t, k in steps for v in (*problem.inputs[k], *problem.outputs[k])], domain=pyo.Binary)
    model.U = pyo.Var(steps, bounds=(0, scale.available))

    def s(t: int, v: int) -> Any:
        """(1d) and (8c): nothing is kept before it is made; graph outputs are kept past the end."""
        if t == count:
            return int(problem.kept[v])
        return model.S[t, v] if problem.producer[v] < t else 0

    model.cost_1a = pyo.Objective(
        expr=LinearExpression(constant=0, linear_coefs=[scale.cost[i] for _, i in model.R], linear_vars=list(model.R.values())),
        sense=pyo.minimize,
    )
    _correctness(problem, model, s)
    _memory(problem, model, s, scale)
    _hazards(problem, model, s)
    compute = {(t, i): variable for (t, i), variable in model.R.items() if i not in each[t]}
    form = compile_standard_form(model)
    return Formulated(problem, model, form, each, compute, dict(model.S.items()), scale.cost_unit)


def _correctness(problem: Problem, model: pyo.ConcreteModel, s: Any) -> None:
    inputs, kept, frontier = Rows(), Rows(), Rows()
    for t, j in model.R:
        for v in problem.inputs[j]:
            inputs.add((t, j, v), [(1.0, model.R[t, j]), (-1.0, model.R[t, problem.producer[v]]), (-1.0, s(t, v))], upper=0.0)
    for t, v in model.S:
        kept.add((t, v), [(1.0, model.S[t, v]), (-1.0, model.R[t - 1, problem.producer[v]]), (-1.0, s(t - 1, v))], upper=0.0)
    last = max(t for t, _ in model.R)
    for v, needed in enumerate(problem.kept):
        if needed:
            kept.add((last + 1, v), [(1.0, model.R[last, problem.producer[v]]), (1.0, s(last, v))], lower=1.0)
    for t in range(problem.count):
        frontier.add((t, t), [(1.0, model.R[t, t])], lower=1.0, upper=1.0)
        if problem.pinned[t]:
            for later in range(t + 1, last + 1):
                frontier.add((later, t), [(1.0, model.R[later, t])], lower=0.0, upper=0.0)
    inputs.attach(model, "inputs_1b")
    kept.attach(model, "kept_1c")
    frontier.attach(model, "frontier_1e")


def _memory(problem: Problem, model: pyo.ConcreteModel, s: Any, scale: Scale) -> None:
    """(2), (3) and (1f): bytes in use after each step, everything that fixed memory leaves being available."""
    used, workspace = Rows(), Rows()
    for t, k in model.U:
        terms: list[tuple[float, Any]] = [(1.0, model.U[t, k])]
        terms += [(-scale.size[v], model.R[t, k]) for v in problem.outputs[k] if scale.size[v]]
        if k == 0:
            terms += [(-scale.size[v], s(t, v)) for v in range(len(problem.size))]
        else:
            terms.append((-1.0, model.U[t, k - 1]))
            terms += [(scale.size[v], model.FREE[t, v, k - 1]) for v in (*problem.inputs[k - 1], *problem.outputs[k - 1])]
        used.add((t, k), terms, lower=0.0, upper=0.0)
        if scale.workspace[k]:
            workspace.add((t, k), [(1.0, model.U[t, k]), (scale.workspace[k], model.R[t, k])], upper=scale.available)
    used.attach(model, "memory_2_3")
    workspace.attach(model, "memory_with_workspace_1f")


def _hazards(problem: Problem, model: pyo.ConcreteModel, s: Any) -> None:
    """(6) and (7): FREE is 1 exactly if nothing stands against it; kappa is the most hazards there can be."""
    free_6, keep_7 = Rows(), Rows()
    for t, v, k in model.FREE:
        later = [model.R[t, j] for j in problem.consumers[v] if k < j <= t]
        hazards: list[tuple[float, Any]] = [(1.0, 1), (-1.0, model.R[t, k]), (1.0, s(t + 1, v)), *((1.0, user) for user in later)]
        kappa = float(len(later) + 2)
        index = (t, v, k)
        free_6.add(index, [*hazards, (1.0, model.FREE[index])], lower=1.0)
        keep_7.add(index, [*hazards, (kappa, model.FREE[index])], upper=kappa)
    free_6.attach(model, "free_6")
    keep_7.attach(model, "free_7")
