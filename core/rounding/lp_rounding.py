"""The paper's approximation: solve the LP relaxation, round S, then compute what S then needs (two-phase rounding, section 5.3).

Rounding may exceed the budget, so the LP is solved for (1 - epsilon) of it; epsilon is searched.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from ..baselines.best import infeasible, keep_everything
from ..events import Event, Watch
from ..milp.any_order import KEEP, AnyOrderProgram
from ..milp.liveness import build_liveness
from ..milp.stages import liveness_entries, merged_runs, single_runs
from ..model.bounding import bounding_problem
from ..model.precedence import TotalOrder
from ..model.problem import Problem
from ..params import PARAMS
from ..result import Result, Status, Stop
from ..schedule.sequence import just_in_time, profile, prune
from ..settings import Settings
from ..solvers import get_solver

Shares = NDArray[np.float64]


def lp_rounding(problem: Problem, settings: Settings, watch: Watch) -> Result:
    """Two-phase rounding of the LP relaxation, deterministic and randomized, epsilon searched automatically."""
    known = infeasible(problem) or keep_everything(problem)
    if known is not None:
        return known
    sequence = round_relaxation(problem, settings, watch)
    stop = Stop.INTERRUPTED if watch.interrupted() else Stop.TIME_LIMIT if watch.expired else Stop.FINISHED
    if sequence is None:
        return Result(Status.UNKNOWN, stop, None, None, "no rounding of the LP relaxation fits the budget")
    return Result(Status.FEASIBLE, stop, sequence, None, provenance={"solver": settings.solver, "found_by": "lp-rounding"})


def round_relaxation(problem: Problem, settings: Settings, watch: Watch) -> tuple[int, ...] | None:
    """The cheapest rounding that fits, over epsilons, thresholds and samples."""
    exact = liveness_entries(problem, single_runs(problem)) <= PARAMS.quick_entries
    best: tuple[int, ...] | None = None
    best_cost = float("inf")
    draw = np.random.default_rng(settings.seed)
    misses = 0
    for epsilon in PARAMS.rounding_epsilons:
        available = int((1 - epsilon) * problem.available)
        tightened = problem.with_budget(problem.base + available)
        if watch.expired or infeasible(tightened) is not None or misses == 2:
            break
        watch.on_event(Event("lp-rounding", message=f"epsilon {epsilon}"))
        relaxed = (_kept_in_all_stages if exact else _kept_over_breakpoints)(tightened, settings, watch)
        if relaxed is None:
            break
        runs, shares = relaxed
        improved = False
        for kept in _roundings(shares, draw):
            if watch.interrupted():
                break
            sequence = complete(problem, runs, kept)
            for candidate in (sequence, just_in_time(problem, sequence)):
                made = profile(problem, candidate)
                if made.peak <= problem.budget and made.cost < best_cost:
                    best, best_cost, improved = candidate, made.cost, True
        misses = misses + 1 if best is not None and not improved else 0
    return best


def _kept_in_all_stages(problem: Problem, settings: Settings, watch: Watch) -> tuple[tuple[range, ...], Shares] | None:
    """S of the LP relaxation of the exact model: one row per stage, one column per value."""
    formulated = build_liveness(problem, single_runs(problem))
    solved = get_solver(settings.solver).solve(formulated.form.relaxed(), settings, watch)
    if solved.values is None:
        return None
    shares = np.zeros((len(formulated.runs), len(problem.size)))
    for (stage, value), variable in formulated.keep.items():
        column = formulated.form.column_of.get(id(variable))
        if column is not None:
            shares[stage, value] = solved.values[column]
    return formulated.runs, shares


def _kept_over_breakpoints(problem: Problem, settings: Settings, watch: Watch) -> tuple[tuple[range, ...], Shares] | None:
    """S of the program with a few breakpoints, for large graphs, in the given order. What has no variable there is recomputed as needed."""
    # About three nonzeros for each operation and stage.
    stages = max(8, min(PARAMS.rounding_stages, PARAMS.quick_entries // (3 * problem.count)))
    runs = merged_runs(problem, stages)
    chain = [run.start for run in runs if 0 < run.start < problem.count]
    bounding = bounding_problem(problem)
    program = AnyOrderProgram.of(bounding, TotalOrder(tuple(range(problem.count))), chain)
    solved = get_solver(settings.solver).solve(program.form.relaxed(), settings, watch)
    if solved.values is None:
        return None
    number = {value: position for position, value in enumerate(problem.graph_value)}
    shares = np.zeros((len(runs), len(problem.size)))
    shares[:, np.flatnonzero(np.array(problem.size) == 0)] = 1.0
    for position, (letter, stage, value) in enumerate(program.variables()):
        if letter == KEEP and stage + 1 < len(runs):
            shares[stage + 1, number[program.problem.graph_value[value]]] = solved.values[position]
    return runs, shares


def _roundings(shares: Shares, draw: np.random.Generator) -> Iterator[list[set[int]]]:
    """S by thresholds, then by chance with S as the probability: one draw per value for all stages, so that no retention is torn
    apart."""
    count = shares.shape[1]
    thresholds = [np.full(count, threshold) for threshold in PARAMS.rounding_thresholds]
    for limits in (*thresholds, *(draw.uniform(0.02, 0.98, count) for _ in range(PARAMS.rounding_samples))):
        yield [set(np.flatnonzero(row > limits).tolist()) for row in shares]


def complete(problem: Problem, runs: Sequence[range], kept: Sequence[set[int]]) -> tuple[int, ...]:
    """The second phase: the least R that S allows. Values of pinned operations cannot be made again: whoever needs them keeps them."""
    sequence: list[int] = []
    for stage, run in enumerate(runs):
        held = kept[stage]
        needed: set[int] = set(run)
        pending = list(run)
        if stage + 1 < len(runs):
            pending.extend(
                problem.producer[value]
                for value in kept[stage + 1]
                if value not in held and problem.producer[value] < run.start and not problem.pinned[problem.producer[value]]
            )
        needed.update(pending)
        while pending:
            for value in problem.inputs[pending.pop()]:
                producer = problem.producer[value]
                if value not in held and producer not in needed and not problem.pinned[producer]:
                    needed.add(producer)
                    pending.append(producer)
        sequence.extend(sorted(needed))
    return prune(problem, sequence)
