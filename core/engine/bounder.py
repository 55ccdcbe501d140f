"""Bounds, and the schedules behind them, by any-order programs with ever better breakpoints.

One breakpoint is often enough. The integer solution is replayed; where the replay takes too much, the first computation that ends the worst
excess becomes a breakpoint too, and so on. Where it is not comparable with some breakpoints, it takes their place.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..events import Event, Watch
from ..milp.any_order import AnyOrderProgram
from ..result import Status
from ..settings import Settings
from ..solvers import get_solver
from .breakpoints import Ground
from .params import PARAMS
from .replaying import excesses, replays

Computations = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Bounded:
    """What one program gave."""

    bound: float
    """Proven; infinite if nothing fits."""
    sequences: tuple[Computations, ...]
    """Replays of its solutions, two of each, the best solution last."""
    solved: bool
    """Was the program solved, or left?"""


class Bounder:
    """One program after the other, from a first breakpoint on."""

    def __init__(self, ground: Ground, first: int, settings: Settings, *, cuts: bool = False) -> None:
        self.ground = ground
        self.settings = settings
        self.bound = ground.problem.ideal_cost
        self.infeasible = False
        """Is it proven that nothing fits?"""
        self.exhausted = False
        """Is there no breakpoint left to try?"""
        self._cuts = cuts
        self._chain = [first]
        self._tried: set[tuple[int, ...]] = set()
        self._nodes = PARAMS.first_nodes

    @property
    def name(self) -> str:
        return f"{len(self._chain)} breakpoint{'s' if len(self._chain) != 1 else ''}"

    def step(self, incumbent: Computations | None, known_bound: float, watch: Watch) -> Bounded:
        """Solve the next program, no further than until a solution is as cheap as the bound that is known.

        Before the next step, call `refine` with the best sequence made of the solution.
        """
        self._tried.add(tuple(self._chain))
        program = self.ground.program(self._chain, cuts=self._cuts)
        form = program.form
        watch.on_event(Event(f"any-order program: {self.name}, {form.columns} variables, {len(form.row_lower)} constraints"))
        start = program.start(incumbent) if incumbent is not None and self._keeps_order(incumbent) else None
        gap = PARAMS.fine_gap if form.columns <= PARAMS.quick_columns else max(PARAMS.fine_gap, self.settings.gap / 10)
        good_enough = max(known_bound, self.bound) * (1 + PARAMS.fine_gap / 2) / program.unit
        settings = replace(self.settings, gap=gap, threads=1, nodes=self._nodes, good_enough=good_enough)
        watch = watch.part(max(PARAMS.least_program_seconds, watch.time_limit * PARAMS.program_share))
        result = get_solver(self.settings.solver).solve(form, settings, watch, start)
        if result.status is Status.INFEASIBLE:
            self.infeasible = self._is_infeasible(program, watch)
            self.exhausted = True
            return Bounded(float("inf") if self.infeasible else self.bound, (), solved=True)
        bound = (result.bound - PARAMS.bound_safety * abs(result.bound)) * program.unit
        self.bound = max(self.bound, bound)
        found = [*result.found, *([] if result.values is None else [result.values])]
        return Bounded(self.bound, tuple(self._replayed(program, found)), solved=result.status is Status.OPTIMAL)

    def refine(self, sequence: Computations, *, solved: bool) -> None:
        """Choose the next breakpoints, given a sequence made of the last solution that still takes too much."""
        if not solved:
            self._nodes *= PARAMS.more_nodes
        problem, precedence, places = self.ground.problem, self.ground.precedence, self.ground.places
        share, far = precedence.comparable_shares, max(1, problem.count // PARAMS.far_apart)

        def rating(excess: int, operation: int) -> float:
            nearest = min(abs(places[operation] - places[other]) for other in self._chain)
            return float(excess * share[operation] ** 2 * min(nearest, far) ** 0.5)

        rated = sorted(((rating(excess, operation), operation) for excess, operation in excesses(problem, sequence)), reverse=True)
        for _, operation in rated:
            if operation in self._chain:
                continue
            relatives = precedence.relatives(operation)
            chain = precedence.in_order([operation, *(other for other in self._chain if relatives.comparable(other))])
            if tuple(chain) not in self._tried:
                self._chain = chain
                return
        self.exhausted = True

    def _replayed(self, program: AnyOrderProgram, found: Iterable[NDArray[np.float64]]) -> Iterable[Computations]:
        for values in found:
            stages = [sorted(stage, key=self.ground.places.__getitem__) for stage in program.stages(values)]
            yield from replays(self.ground.problem, program.chain, stages)

    def _keeps_order(self, sequence: Computations) -> bool:
        return self.ground.order is None or tuple(dict.fromkeys(sequence)) == self.ground.order

    def _is_infeasible(self, program: AnyOrderProgram, watch: Watch) -> bool:
        """That nothing fits is a claim without a proof to check: ask once more, without presolve, which has been wrong before."""
        settings = replace(self.settings, gap=0.5, threads=1, presolve=False)
        return get_solver(self.settings.solver).solve(program.form, settings, watch).status is Status.INFEASIBLE
