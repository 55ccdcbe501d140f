"""A relaxation that bounds large graphs in seconds: merged stages, memory checked only while the last operation of each stage runs.

For every real schedule, let R say whether an operation is computed at all within a run, and S what is carried over the ends of runs: that
satisfies 1b and 1c, costs no more, and what is carried over an end is in memory while the operation before that end runs. So the LP value
is a proven lower bound on the cost of any schedule that makes first computations in the given order.

Alone it would be weak: an operation can be recomputed in fractions, a tenth per stage, each asking for a tenth of its inputs. `_once_after`
closes that hole.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyomo.environ as pyo
from pyomo.core.expr import LinearExpression

from ..problem import Problem, horizons, last_stages_kept
from .formulation import Formulated, Rows, Scale
from .standard_form import compile_standard_form


def build_windows(problem: Problem, runs: Sequence[range]) -> Formulated:
    """Build the relaxation; only its LP is of use."""
    model = pyo.ConcreteModel(name=problem.graph.name)
    scale = Scale.of(problem)
    last = horizons(problem)
    until = last_stages_kept(problem, last)
    stages = list(enumerate(runs))
    model.R = pyo.Var(
        [(t, i) for t, run in stages for i in range(run.start) if last[i] >= run.start and not problem.pinned[i]], domain=pyo.Binary
    )
    model.S = pyo.Var(
        [(t, v) for t, run in stages for v, producer in enumerate(problem.producer) if producer < run.start <= until[v]], domain=pyo.Binary
    )
    compute, keep = dict(model.R.items()), dict(model.S.items())

    def r(t: int, i: int) -> Any:
        return 1 if i in runs[t] else compute.get((t, i), 0)

    def s(t: int, v: int) -> Any:
        return int(problem.kept[v]) if t == len(runs) else keep.get((t, v), 0)

    model.cost_1a = pyo.Objective(
        expr=LinearExpression(
            constant=sum(scale.cost), linear_coefs=[scale.cost[i] for _, i in compute], linear_vars=list(compute.values())
        ),
        sense=pyo.minimize,
    )
    inputs_1b, kept_1c, memory = Rows(), Rows(), Rows()
    carried: list[list[tuple[float, Any]]] = [[] for _ in runs]
    for (t, v), variable in keep.items():
        producer = problem.producer[v]
        if producer not in runs[t - 1]:
            kept_1c.add((t, v), [(1.0, variable), (-1.0, r(t - 1, producer)), (-1.0, s(t - 1, v))], upper=0.0)
        if scale.size[v]:
            carried[t - 1].append((scale.size[v], v))
    carried[-1] = [(scale.size[v], v) for v, needed in enumerate(problem.kept) if needed and scale.size[v]]
    for t, run in stages:
        for j in (*(i for i in range(run.start) if (t, i) in compute), *run):
            for v in problem.inputs[j]:
                if problem.producer[v] not in run:
                    inputs_1b.add((t, j, v), [(1.0, r(t, j)), (-1.0, r(t, problem.producer[v])), (-1.0, s(t, v))], upper=0.0)
        there: set[int] = set()
        taken = 0.0
        if run:
            end = run.stop - 1
            there = {*problem.inputs[end], *problem.outputs[end]}
            taken = sum(scale.size[v] for v in there) + scale.workspace[end]
        memory.add((t,), [(size, s(t + 1, v)) for size, v in carried[t] if v not in there], upper=scale.available - taken)
    _once_after(problem, model, runs, compute, s)
    inputs_1b.attach(model, "inputs_1b")
    kept_1c.attach(model, "kept_1c")
    memory.attach(model, "memory_at_ends")
    return Formulated(problem, model, compile_standard_form(model), tuple(runs), compute, keep, scale.cost_unit)


def _once_after(problem: Problem, model: pyo.ConcreteModel, runs: Sequence[range], compute: dict[tuple[int, int], Any], s: Any) -> None:
    """For every end of a run, Z[t,i] says "i is recomputed at least once from stage t on".

    Z is no more than all of i's recomputations from there on; it is 1 if a first computation from there on reads what i made and that was
    not carried over; and it needs every input of i carried over or recomputed too.
    """
    stages_of: dict[int, list[int]] = {}
    for t, i in compute:
        stages_of.setdefault(i, []).append(t)
    index = [(t, i) for t in range(1, len(runs)) for i in range(runs[t].start) if (later := stages_of.get(i)) and later[-1] >= t]
    model.Z = pyo.Var(index, bounds=(0, 1))
    again = dict(model.Z.items())
    most, needed, inputs = Rows(), Rows(), Rows()
    for (t, i), variable in again.items():
        most.add((t, i), [(1.0, variable), *((-1.0, compute[later, i]) for later in stages_of[i] if later >= t)], upper=0.0)
        for v in problem.outputs[i]:
            if problem.kept[v] or (problem.consumers[v] and problem.consumers[v][-1] >= runs[t].start):
                needed.add((t, v), [(1.0, variable), (1.0, s(t, v))], lower=1.0)
        for v in problem.inputs[i]:
            inputs.add((t, i, v), [(1.0, variable), (-1.0, again.get((t, problem.producer[v]), 0)), (-1.0, s(t, v))], upper=0.0)
    most.attach(model, "again_if_computed")
    needed.attach(model, "again_if_not_kept")
    inputs.attach(model, "again_with_inputs")
