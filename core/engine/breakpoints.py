"""Where to break: operations that make good first breakpoints, rated by linear programs.

Good breakpoints are comparable with most operations, take much memory themselves, or come while much would be in memory without
recomputation. How much each matters depends on the graph; so a few of each kind are tried in programs with one breakpoint, which take
milliseconds without integers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from threading import Lock

import numpy as np

from ..events import Watch
from ..labels.tail import Tail
from ..milp.any_order import AnyOrderProgram
from ..milp.presolve import Presolved, presolve
from ..model.bounding import bounding_problem
from ..model.precedence import PartialOrder, Precedence, TotalOrder
from ..model.problem import Problem
from ..params import PARAMS
from ..schedule.sequence import Candidate, candidate, drop_unread, profile, prune
from ..solvers.linear_program import solve_linear
from .replaying import replays


@dataclass(frozen=True, eq=False)
class Ground:
    """A problem as bounds see it: relaxed, with the order that its operations have in every schedule (`order` None) or in one."""

    problem: Problem
    order: tuple[int, ...] | None = None

    @cached_property
    def bounding(self) -> Problem:
        return bounding_problem(self.problem)

    @cached_property
    def precedence(self) -> Precedence:
        return PartialOrder(self.bounding) if self.order is None else TotalOrder(self.order)

    @cached_property
    def places(self) -> list[int]:
        """Where each operation comes in the order, the problem's own if it is free."""
        places = list(range(self.problem.count))
        for place, operation in enumerate(self.order or ()):
            places[operation] = place
        return places

    @cached_property
    def _presolved(self) -> Presolved:
        """With all candidates for the first breakpoint apart, so that programs with them need not be presolved again."""
        return presolve(self.bounding, _candidates(self))

    @cached_property
    def _once(self) -> Lock:
        return Lock()

    @cached_property
    def _rated(self) -> list[tuple[float, int]]:
        return []

    def rated(self, watch: Watch) -> list[tuple[float, int]]:
        """Likely first breakpoints, rated once, whoever asks first."""
        with self._once:
            if not self._rated:
                self._rated.extend(rate_breakpoints(self, watch))
            return self._rated

    def program(self, chain: list[int], *, cuts: bool = False, tails: Sequence[Tail] = ()) -> AnyOrderProgram:
        presolved = None if self.order is not None else self._presolved
        return AnyOrderProgram.of(self.bounding, self.precedence, chain, cuts=cuts, presolved=presolved, tails=tails)

    def replayed(self, chain: Sequence[int], stages: Sequence[Sequence[int]]) -> list[Candidate]:
        """What the stages of a program's solution are as schedules; see `replays`."""
        ordered = [sorted(stage, key=self.places.__getitem__) for stage in stages]
        tidy = drop_unread if self.order is None else prune
        return [candidate(self.problem, tidy(self.problem, sequence)) for sequence in replays(self.problem, chain, ordered)]

    def linear_bound(self, chain: list[int], watch: Watch, *, cuts: bool = False, tails: Sequence[Tail] = ()) -> float:
        """What the linear program with these breakpoints proves; 0 if nothing."""
        program = self.program(chain, cuts=cuts, tails=tails)
        bound = solve_linear(program.form.relaxed(), watch).bound * program.unit
        return bound if np.isfinite(bound) else 0.0


def likeliest(ground: Ground) -> int:
    """The first breakpoint that the ratings alone would choose."""
    return _candidates(ground)[0]


def rate_breakpoints(ground: Ground, watch: Watch) -> list[tuple[float, int]]:
    """Likely first breakpoints with the bounds that their linear programs prove, the highest first."""
    candidates = _candidates(ground)
    if len(candidates) == 1:
        return [(0.0, candidates[0])]
    rated: list[tuple[float, int]] = []
    for operation in candidates:
        if watch.expired:
            break
        rated.append((ground.linear_bound([operation], watch), operation))
    return sorted(rated, key=lambda each: -each[0]) or [(0.0, candidates[0])]


def _candidates(ground: Ground) -> list[int]:
    """The most likely operations by each of four ratings, not too near one another."""
    problem = ground.problem
    order = ground.order or range(problem.count)
    memory = np.empty(problem.count)
    memory[list(order)] = np.array(profile(problem, order).memory, dtype=np.float64) - problem.base
    share = ground.precedence.comparable_shares
    own = np.array([ground.bounding.own_bytes(operation) for operation in range(problem.count)], dtype=np.float64)
    ratings = (share**4 * memory, share * memory, share * memory * own, share**2 * own)
    if problem.count > PARAMS.breakpoints_operations:
        return [int(np.argmax(ratings[0]))]
    apart = problem.count // PARAMS.breakpoints_apart
    found: dict[int, None] = {}
    for rating in ratings:
        chosen: list[int] = []
        for operation in np.argsort(-rating, kind="stable").tolist():
            if all(abs(ground.places[operation] - ground.places[other]) > apart for other in chosen):
                chosen.append(operation)
            if len(chosen) == PARAMS.breakpoints_each:
                break
        found.update(dict.fromkeys(chosen))
    return list(found)
