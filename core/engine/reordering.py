"""The computations of a sequence in an order of lower peak. Imports the compiled kernels; who needs no search does not load them."""

from __future__ import annotations

from ..events import Watch
from ..model.problem import Problem
from ..model.transforms.group import group_operations, small_below
from ..model.transforms.unroll import unrolled
from ..params import PARAMS
from ..schedule.sequence import Candidate, candidate, prune
from ..search.order import find_order
from ..search.warm import ensure_warm


def lower_peak(problem: Problem, found: Candidate, seed: int, watch: Watch) -> Candidate:
    """Runs of small steps are moved together first, which needs a tenth of the moves; then one by one."""
    ensure_warm(watch)
    each = unrolled(problem, found.sequence)
    grouped = group_operations(each, small_below(problem))
    moves = PARAMS.moves(PARAMS.order_moves, grouped.problem.count)
    order = find_order(grouped.problem, seed, moves, watch, problem.budget)
    best = min(found, candidate(problem, (found.sequence[place] for place in grouped.expand(order))), key=lambda made: made.peak)
    if best.fits(problem) or watch.expired:
        return best
    moves = PARAMS.moves(PARAMS.order_moves, len(best.sequence)) // 2
    places = find_order(unrolled(problem, best.sequence), seed, moves, watch, problem.budget)
    return min(best, candidate(problem, (best.sequence[place] for place in places)), key=lambda made: made.peak)


def shaken(problem: Problem, sequence: tuple[int, ...], seed: int, watch: Watch) -> tuple[int, ...]:
    """The same computations in another order of low peak: room for fewer recomputations."""
    moves = PARAMS.moves(PARAMS.order_moves, len(sequence))
    places = find_order(unrolled(problem, sequence), seed, moves, watch)
    return prune(problem, [sequence[place] for place in places])
