"""A sequence that takes a little too much, made to fit: in a better order, then with as little more recomputation as can be.

Imports the compiled kernels; whoever needs no search does not load them.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from ..events import Watch
from ..model.problem import Problem
from ..model.transforms.unroll import unrolled
from ..search.order import find_order
from ..search.splice import Annealing, anneal_sequence
from ..search.walkers import walkers
from ..settings import Settings
from .params import PARAMS


def lower_peak(problem: Problem, sequence: Sequence[int], settings: Settings, round_: int, watch: Watch) -> tuple[int, ...]:
    """The same computations in the order of the lowest peak found."""
    moves = min(PARAMS.order_moves, PARAMS.order_moves_per_operation * problem.count)
    seed = settings.seed * 1000 + round_
    places = find_order(unrolled(problem, sequence), seed, moves, watch, problem.budget, settings.threads)
    return tuple(sequence[place] for place in places)


def repaired(
    problem: Problem, starts: Sequence[Sequence[int]], settings: Settings, round_: int, watch: Watch, *, free: bool
) -> list[tuple[int, ...]]:
    """What annealing at a low temperature makes of sequences that take too much: those that fit, cheapest first."""
    moves = min(PARAMS.repair_moves, PARAMS.repair_moves_per_operation * problem.count)
    annealing = Annealing(PARAMS.repair_hot, PARAMS.repair_penalty)
    with walkers(settings.threads) as pool:
        runs = [
            pool.submit(anneal_sequence, problem, start, annealing, (settings.seed * 1000 + round_) * 10 + number, moves, watch, free=free)
            for number, (start, _) in enumerate(product(dict.fromkeys(map(tuple, starts)), range(PARAMS.repair_runs)))
        ]
        found = [sequence for run in runs if (sequence := run.result()) is not None]
    return sorted(found, key=lambda sequence: sum(problem.cost[operation] for operation in sequence))
