"""Simulated annealing over sequences: recomputations are put in, taken out and moved, and first computations too where the order is free.

Fast, because a step changes little, and close to what is really computed, because every state is a sequence. Where many operations belong
together, as in deep networks, it is given a problem in which they are one (`core/model/transforms/group.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..events import Watch
from ..model.problem import Problem
from ..params import PARAMS
from ..schedule.sequence import just_in_time, profile, prune
from .splice_kernels import anneal, reset
from .splice_space import Splice, new_splice


@dataclass(frozen=True, slots=True)
class Annealing:
    """How an annealing run goes: temperature and infeasibility penalty."""

    hot: float
    """The temperature at first, in costs of an average operation; it falls to `cooling` of that."""
    penalty: float
    """What taking all of the available memory too much, at one place, costs at first, in ideal costs; it rises to `last_penalty`."""


def anneal_sequence(
    problem: Problem, start: Sequence[int], annealing: Annealing, seed: int, moves: int, watch: Watch, *, free: bool
) -> tuple[int, ...] | None:
    """The cheapest sequence found that fits, the start included; None if none did. First computations stay in order unless that is free."""
    start = prune(problem, tuple(start))
    known = [start] if profile(problem, start).peak <= problem.budget else []
    found = prune(problem, _annealed(problem, new_splice(problem, start, seed), annealing, moves, watch, free=free))
    return cheapest_that_fits(problem, [*known, found, just_in_time(problem, found)] if found else known)


def anneal_downwards(
    problem: Problem, start: Sequence[int], annealing: Annealing, seed: int, moves: int, watch: Watch, *, free: bool
) -> tuple[int, ...] | None:
    """The sequence of the lowest peak found, whatever it costs, down to the budget: what may be taken is always a little below the lowest
    peak so far. None if it is not below that of the start."""
    state = new_splice(problem, start, seed)
    state.totals["fall"] = PARAMS.descent_fall
    peak = profile(problem, start).peak - problem.base
    state.totals["limit"] = max(problem.available, min(peak - 1, int(peak * (1 - PARAMS.descent_fall))))
    return tuple(_annealed(problem, state, annealing, moves, watch, free=free)) or None


def _annealed(problem: Problem, state: Splice, annealing: Annealing, moves: int, watch: Watch, *, free: bool) -> list[int]:
    """In chunks, so that the clock is looked at."""
    if problem.available <= 0 or not len(state.large):
        return []
    reset(state)
    cost = max(problem.ideal_cost, 1e-300)
    hot, cheap = annealing.hot * cost / problem.count, annealing.penalty * cost
    steeper = PARAMS.last_penalty / annealing.penalty
    chunk_moves = chunk_size(problem)
    chunks = max(1, moves // chunk_moves)
    for chunk in range(chunks):
        if watch.expired:
            break
        begin, end = chunk / chunks, (chunk + 1) / chunks
        warm, cold = (hot * PARAMS.cooling**part for part in (begin, end))
        anneal(state, min(moves, chunk_moves), warm, cold, cheap * steeper**begin, cheap * steeper**end, free)
        if state.has_descended:
            break
    return state.best_sequence


def chunk_size(problem: Problem) -> int:
    """Moves between two looks at the clock: 2,000 moves on densenet121 (7,309 operations) near its smallest budget once took minutes."""
    return max(1, PARAMS.chunk_moves * PARAMS.move_operations // max(PARAMS.move_operations, problem.count))


def cheapest_that_fits(problem: Problem, candidates: Sequence[tuple[int, ...]]) -> tuple[int, ...] | None:
    """The cheapest of some sequences, of those that fit."""
    fitting = [(made.cost, candidate) for candidate in candidates if (made := profile(problem, candidate)).peak <= problem.budget]
    return min(fitting)[1] if fitting else None
