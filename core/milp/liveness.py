"""The liveness form: the paper's problem without FREE variables and their big-M hazards.

Instead of "may v be freed after k", it asks "is v still needed at k", which is a chain of continuous variables along v's consumers:

    Y[t,v,jm] >= R[t,jm],   Y[t,v,jm] >= Y[t,v,j(m+1)],   Y[t,v,jd] >= S[t+1,v]

While k runs in stage t, value v takes its bytes times S[t,v] if its producer comes after k, R[t,k] + S[t,v] if k is its producer, else the
first Y[t,v,jm] with jm >= k, and S[t+1,v] after its last consumer. Only R and S are integer. Numbers in names are the paper's: 1a to 1e
are the same constraints.

A stage may hold several first computations (`runs`), or none. With one each this is exactly the paper's search space; with more it is a
restriction of it in which every operation runs at most once per run; empty runs between them allow another recomputation of the same
operation before the next first computation. In each case every solution is a real schedule.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyomo.environ as pyo
from pyomo.core.expr import LinearExpression

from ..model.problem import Problem, horizons, last_stages_kept
from .formulation import Formulated, Rows
from .pyomo_form import compile_standard_form
from .scale import Scale
from .stages import single_runs


def build_liveness(problem: Problem, runs: Sequence[range] | None = None) -> Formulated:
    """Build the liveness form, presolved: R and S are 0 past the last stage in which they can help."""
    return _Builder(problem, tuple(runs) if runs is not None else single_runs(problem), minimise_peak=False).build()


def build_smallest_peak(problem: Problem, runs: Sequence[range] | None = None) -> Formulated:
    """The same schedules without a budget, to minimise the peak above the base instead of the cost."""
    return _Builder(problem, tuple(runs) if runs is not None else single_runs(problem), minimise_peak=True).build()


@dataclass(frozen=True, slots=True, eq=False)
class _Scope:
    """What may be computed in each stage and kept into each, in order; nothing else can be or help."""

    active: list[list[int]]
    held: list[list[int]]
    """One stage more: past the last."""


class _Builder:
    def __init__(self, problem: Problem, runs: tuple[range, ...], *, minimise_peak: bool) -> None:
        self.problem = problem
        self.runs = runs
        self.minimise_peak = minimise_peak
        self.scale = Scale.of(problem)
        self.model = pyo.ConcreteModel(name=problem.graph.name)
        self.scope = _scope(problem, runs)

    def build(self) -> Formulated:
        problem, runs, model = self.problem, self.runs, self.model
        compute = [
            (stage, operation)
            for stage, operations in enumerate(self.scope.active)
            for operation in operations
            if operation not in runs[stage]
        ]
        keep = [(stage, value) for stage, values in enumerate(self.scope.held[:-1]) for value in values]
        model.R = pyo.Var(compute, domain=pyo.Binary)
        model.S = pyo.Var(keep, domain=pyo.Binary)
        self.compute = dict(zip(compute, model.R.values(), strict=True))
        self.keep = dict(zip(keep, model.S.values(), strict=True))
        if minimise_peak := self.minimise_peak:
            model.peak = pyo.Var(bounds=(0, None))
            model.smallest_peak = pyo.Objective(expr=model.peak, sense=pyo.minimize)
        else:
            self._objective_1a()
        self._dependencies_1b_1c()
        self._needed_and_memory()
        unit = self.scale.bytes_unit if minimise_peak else self.scale.cost_unit
        return Formulated(problem, model, compile_standard_form(model), runs, self.compute, self.keep, unit)

    def r(self, stage: int, operation: int) -> Any:
        """R[t,i]: 1 for first computations (1e), 0 before them and where it cannot help."""
        if operation in self.runs[stage]:
            return 1
        return self.compute.get((stage, operation), 0)

    def s(self, stage: int, value: int) -> Any:
        """S[t,v]: nothing is kept into the first stage (1d); graph outputs are kept past the last."""
        if stage == len(self.runs):
            return int(self.problem.kept[value])
        return self.keep.get((stage, value), 0)

    def _objective_1a(self) -> None:
        cost = self.scale.cost
        body = LinearExpression(
            constant=sum(cost),
            linear_coefs=[cost[operation] for _, operation in self.compute],
            linear_vars=list(self.compute.values()),
        )
        self.model.cost_1a = pyo.Objective(expr=body, sense=pyo.minimize)

    def _dependencies_1b_1c(self) -> None:
        problem = self.problem
        inputs_1b, kept_1c, once = Rows(), Rows(), Rows()
        for stage in range(len(self.runs)):
            run = self.runs[stage]
            for operation in self.scope.active[stage]:
                for value in problem.inputs[operation]:
                    producer = problem.producer[value]
                    if producer in run:
                        continue
                    terms = [(1.0, self.r(stage, operation)), (-1.0, self.r(stage, producer)), (-1.0, self.s(stage, value))]
                    inputs_1b.add((stage, operation, value), terms, upper=0.0)
        for stage, values in enumerate(self.scope.held[:-1]):
            for value in values:
                producer, here = problem.producer[value], self.s(stage, value)
                if stage and producer not in self.runs[stage - 1]:
                    terms = [(1.0, here), (-1.0, self.r(stage - 1, producer)), (-1.0, self.s(stage - 1, value))]
                    kept_1c.add((stage, value), terms, upper=0.0)
                if not _is_zero(again := self.r(stage, producer)):
                    once.add((stage, value), [(1.0, again), (1.0, here)], upper=1.0)
        for value, needed in enumerate(problem.kept):
            last = len(self.runs) - 1
            if needed and problem.producer[value] not in self.runs[last]:
                made = [(1.0, self.r(last, problem.producer[value])), (1.0, self.s(last, value))]
                kept_1c.add((len(self.runs), value), made, lower=1.0)
        inputs_1b.attach(self.model, "inputs_1b")
        kept_1c.attach(self.model, "kept_1c")
        once.attach(self.model, "once")

    def _needed_and_memory(self) -> None:
        """Y and the memory rows. Rows are a recurrence in U: only values whose term changes between two steps appear."""
        problem = self.problem
        needed_index: list[tuple[int, int, int]] = []
        users_of: dict[int, dict[int, list[int]]] = {}
        for stage in range(len(self.runs)):
            users: dict[int, list[int]] = {}
            for operation in self.scope.active[stage]:
                for value in problem.inputs[operation]:
                    users.setdefault(value, []).append(operation)
            users_of[stage] = users
            needed_index.extend(
                (stage, value, user) for value, readers in users.items() for user in readers if (stage, user) in self.compute
            )
        self.model.Y = pyo.Var(needed_index, bounds=(0, 1))
        self.needed = dict(zip(needed_index, self.model.Y.values(), strict=True))
        self._needed_rows(users_of)
        self._memory_rows(users_of)

    def _y(self, stage: int, value: int, user: int) -> Any:
        """Still needed at `user`: certainly so if that is certainly computed."""
        return self.needed.get((stage, value, user), 1)

    def _needed_rows(self, users_of: dict[int, dict[int, list[int]]]) -> None:
        computed, chained = Rows(), Rows()
        for stage, users in users_of.items():
            for value, readers in users.items():
                for position, user in enumerate(readers):
                    if (stage, user) not in self.compute:
                        continue
                    here = self._y(stage, value, user)
                    index = (stage, value, user)
                    computed.add(index, [(1.0, here), (-1.0, self.r(stage, user))], lower=0.0)
                    after = self.s(stage + 1, value) if position + 1 == len(readers) else self._y(stage, value, readers[position + 1])
                    if not _is_zero(after):
                        chained.add(index, [(1.0, here), (-1.0, after)], lower=0.0)
        computed.attach(self.model, "needed_if_computed")
        chained.attach(self.model, "needed_if_needed_later")

    def _memory_rows(self, users_of: dict[int, dict[int, list[int]]]) -> None:
        problem, scale, model = self.problem, self.scale, self.model
        steps = [(stage, operation) for stage in range(len(self.runs)) for operation in self.scope.active[stage]]
        model.U = pyo.Var(steps, bounds=(0, None if self.minimise_peak else scale.available))
        used = dict(zip(steps, model.U.values(), strict=True))
        recurrence, workspace = Rows(), Rows()
        for stage, users in users_of.items():
            following = self._followers(stage, users)
            held = self.scope.held[stage]
            pending: list[tuple[float, Any]] = [(scale.size[value], self.s(stage, value)) for value in held]
            before: Any = 0
            released: list[tuple[float, Any]] = []
            for operation in sorted({*self.scope.active[stage], *(problem.producer[value] for value in held)}):
                pending.extend(released)
                released = []
                here = self.r(stage, operation)
                for value in problem.outputs[operation]:
                    size = scale.size[value]
                    if not _is_zero(here):
                        pending.append((size, here))
                    released += [(-size, here), (-size, self.s(stage, value)), (size, following[value, -1])]
                if _is_zero(here):
                    continue
                for value in problem.inputs[operation]:
                    size = scale.size[value]
                    released += [(-size, self._y(stage, value, operation)), (size, following[value, operation])]
                now = used[stage, operation]
                recurrence.add(
                    (stage, operation), [(1.0, now), (-1.0, before), *((-size, term) for size, term in pending)], lower=0.0, upper=0.0
                )
                taken = [(1.0, now), (scale.workspace[operation], here)]
                if self.minimise_peak:
                    workspace.add((stage, operation), [*taken, (-1.0, model.peak)], upper=0.0)
                elif scale.workspace[operation]:
                    workspace.add((stage, operation), taken, upper=scale.available)
                before, pending = now, []
        if not self.minimise_peak:
            self._knapsacks()
        recurrence.attach(model, "memory")
        workspace.attach(model, "memory_with_workspace")

    def _knapsacks(self) -> None:
        """What is kept past a first computation, in one row: implied by the recurrence, but there no solver sees the knapsack in it."""
        knapsacks = Rows()
        for stage in range(len(self.runs)):
            run = self.runs[stage]
            if not run:
                continue
            end = run.stop - 1
            there = {*self.problem.inputs[end], *self.problem.outputs[end]}
            room = self.scale.available - sum(self.scale.size[value] for value in there) - self.scale.workspace[end]
            beside = [value for value in self.scope.held[stage + 1] if self.scale.size[value] and value not in there]
            kept = [(self.scale.size[value], self.s(stage + 1, value)) for value in beside]
            if not all(isinstance(term, int) for _, term in kept):
                knapsacks.add((stage,), kept, upper=room)
        knapsacks.attach(self.model, "kept_knapsack")

    def _followers(self, stage: int, users: dict[int, list[int]]) -> dict[tuple[int, int], Any]:
        """What says that a value is needed after its producer ran (key -1) or after each of its users ran."""
        after: dict[tuple[int, int], Any] = {}
        scope = self.scope
        made = {value for operation in scope.active[stage] for value in self.problem.outputs[operation]}
        for value in made.union(*(self.problem.outputs[self.problem.producer[value]] for value in scope.held[stage])):
            readers = users.get(value, [])
            kept = self.s(stage + 1, value)
            chain = [-1, *readers]
            for position, user in enumerate(chain):
                after[value, user] = self._y(stage, value, readers[position]) if position < len(readers) else kept
        return after


def _scope(problem: Problem, runs: Sequence[range]) -> _Scope:
    last_use = horizons(problem)
    last_keep = last_stages_kept(problem, last_use)
    active = [[*(i for i in range(run.start) if last_use[i] >= run.start and not problem.pinned[i]), *run] for run in runs]
    held = [[value for value, producer in enumerate(problem.producer) if producer < run.start <= last_keep[value]] for run in runs]
    return _Scope(active, [*held, [value for value, kept in enumerate(problem.kept) if kept]])


def _is_zero(term: Any) -> bool:
    return isinstance(term, int) and term == 0
