"""Solving a formulation of a problem: build, start, solve, decode, and believe only what the profile of the sequence says."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..events import Event, Watch
from ..milp import get_formulation
from ..milp.formulation import Formulated
from ..milp.liveness import build_smallest_peak
from ..milp.stages import repeated_runs
from ..model.problem import Problem
from ..params import PARAMS
from ..result import Status, Stop
from ..schedule.sequence import Candidate, candidate
from ..settings import Settings
from ..solvers import get_solver
from ..solvers.base import SolverResult, failure

REFUTED_BY = 1e-4
"""How far below a bound, relatively, a known schedule must be to call it wrong: more than tolerances explain."""


@dataclass(frozen=True, slots=True)
class Exact:
    """What the MILP says, in real costs."""

    status: Status
    stop: Stop
    candidate: Candidate | None
    bound: float


def fits_in_time(entries: int, watch: Watch, share: float = 0.5) -> bool:
    """Could a model of this many nonzeros be built in this share of the time that is left, and in memory?"""
    seconds = watch.time_limit if watch.undivided else watch.remaining
    return entries <= min(PARAMS.most_entries, share * seconds * PARAMS.entries_per_second)


def solve_exactly(
    problem: Problem, settings: Settings, watch: Watch, runs: Sequence[range] | None = None, incumbent: Candidate | None = None
) -> Exact:
    """Solve the chosen formulation from an incumbent. A candidate that comes back fits the budget."""
    watch.on_event(Event(f"building the {settings.formulation} model"))
    formulated = get_formulation(settings.formulation)(problem, runs)
    return _solve(problem, formulated, settings, watch, incumbent)


def smallest_peak(problem: Problem, settings: Settings, watch: Watch) -> tuple[int, tuple[int, ...] | None]:
    """A proven lower limit on the peak of any schedule with two passes per stage, base included, and the best schedule found."""
    formulated = build_smallest_peak(problem, repeated_runs(problem))
    result = get_solver(settings.solver).solve(formulated.form, settings, watch)
    known = 0 < result.bound < math.inf
    limit = problem.base + max(0, math.ceil(result.bound * formulated.unit * (1 - 1e-9) - 1e-6)) if known else problem.base
    return limit, None if result.values is None else formulated.sequence(result.values)


def _solve(problem: Problem, formulated: Formulated, settings: Settings, watch: Watch, incumbent: Candidate | None) -> Exact:
    solver = get_solver(settings.solver)
    unit = formulated.unit
    phase = f"{settings.solver}: {formulated.form.columns} variables, {len(formulated.form.row_lower)} constraints"
    watch.on_event(Event(phase, None if incumbent is None else incumbent.cost))

    def tell(cost: float | None, bound: float | None) -> None:
        watch.on_event(Event(phase, None if cost is None else cost * unit, None if bound is None else bound * unit))

    start = None if incumbent is None else formulated.start(incumbent.sequence)
    result = solver.solve(formulated.form, settings, watch, start, tell)
    if start is not None and _is_refuted(problem, formulated, start, result.bound * unit):
        watch.on_event(failure(solver.name, "it claims to have proven what a known schedule refutes; its answer is ignored"))
        result = SolverResult(Status.UNKNOWN, Stop.FINISHED)
    bound = max(result.bound * unit, problem.ideal_cost)
    if result.values is None:
        return Exact(result.status, result.stop, None, bound)
    found = candidate(problem, formulated.sequence(result.values), settings.solver)
    if not found.fits(problem):
        # The solver's tolerances let it through: its bound stands, its schedule does not.
        return Exact(Status.UNKNOWN, result.stop, None, bound)
    return Exact(result.status, result.stop, found, bound)


def _is_refuted(problem: Problem, formulated: Formulated, start: Mapping[int, float], bound: float) -> bool:
    """Is the start, which is a schedule of the model's own kind, cheaper than any can be by the solver's word?"""
    if bound <= problem.ideal_cost:
        return False
    values = np.zeros(formulated.form.columns)
    values[list(start)] = list(start.values())
    made = candidate(problem, formulated.sequence(values))
    return made.fits(problem) and made.cost < bound * (1 - REFUTED_BY)
