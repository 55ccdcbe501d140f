"""Search over sequences: recomputations are put in, taken out and moved one by one, and first computations too where the order is free.

Fast, because a step changes little, and close to what is really computed, because nothing is merged or grouped. Where many recomputations
belong together, as in deep networks, the search over stages finds that sooner; this one then makes the most of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..events import Watch
from ..model.problem import Problem
from ..schedule.sequence import just_in_time, profile, prune
from .fitting import cheapest_that_fits
from .splice_kernels import anneal, reset
from .splice_space import new_splice

CHUNK = 10_000
"""Moves between two looks at the clock."""
HOT = 1.0
COOLING = 1e-2
"""The temperature falls from the cost of an average operation to a hundredth of that."""
CHEAP = 3e-4
DEAR = 100.0
"""What all of the available memory too much, at one place, costs at first and in the end, as a share of all work done once."""
GENTLE_HOT = 0.3
GENTLE_CHEAP = 3e-3
"""The same for a walk that begins with a schedule that fits, to improve it."""
DEARER = 30.0
HOTTER = 3.0
MOST_INSISTENT = 3
"""Where memory is scarce, a walk that lets go of it does not get it back. With every degree of insistence excess costs so much more from
the beginning, and from the second on it is so much hotter."""


@dataclass(frozen=True, slots=True)
class Annealing:
    """How an annealing run over sequences goes: temperature, and the infeasibility penalty."""

    hot: float
    """The temperature at first, in costs of an average operation; it falls to a hundredth."""
    cheap: float
    dear: float = DEAR
    """What taking all of the available memory too much, at one place, costs at first and in the end, in ideal costs."""


def anneal_sequence(
    problem: Problem, start: Sequence[int], annealing: Annealing, seed: int, moves: int, watch: Watch, *, free: bool
) -> tuple[int, ...] | None:
    """The cheapest sequence found that fits; None if none did. First computations stay in order unless that is free."""
    state = new_splice(problem, start, seed)
    if problem.available <= 0 or not len(state.large):
        return None
    reset(state)
    cost = max(problem.ideal_cost, 1e-300)
    hot = annealing.hot * cost / problem.count
    steeper = annealing.dear / annealing.cheap
    chunks = max(1, moves // CHUNK)
    for chunk in range(chunks):
        if watch.expired:
            break
        begin, end = chunk / chunks, (chunk + 1) / chunks
        anneal(
            state,
            min(moves, CHUNK),
            hot * COOLING**begin,
            hot * COOLING**end,
            cost * annealing.cheap * steeper**begin,
            cost * annealing.cheap * steeper**end,
            free,
        )
    return tuple(state.best_sequence) or None


def splice_from(
    problem: Problem, start: Sequence[int], seed: int, moves: int, watch: Watch, *, free: bool = False, insistence: int = 0
) -> tuple[int, ...] | None:
    """Anneal from a sequence for a number of moves; the cheapest found that fits, never one dearer than a start that does.

    First computations stay in order unless that is free.
    """
    start = prune(problem, start)
    made = profile(problem, start)
    fits = made.peak <= problem.budget
    gentle = fits and made.cost > problem.ideal_cost
    insistence = min(insistence, MOST_INSISTENT)
    annealing = Annealing(
        hot=(GENTLE_HOT if gentle else HOT) * HOTTER ** max(0, insistence - 1),
        cheap=(GENTLE_CHEAP if gentle else CHEAP) * DEARER**insistence,
        dear=DEAR * DEARER ** (insistence / MOST_INSISTENT),
    )
    best = anneal_sequence(problem, start, annealing, seed, moves, watch, free=free)
    if best is None:
        return start if fits else None
    found = prune(problem, best)
    return cheapest_that_fits(problem, [start, found, just_in_time(problem, found)])
