"""The order of first computations is ours to choose, and choosing it well is free memory: annealing over topological orders."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..events import Event, Watch
from ..jit.tables import Ints
from ..model.problem import Problem
from .order_builds import build_eagerly, build_lazily, least_peak
from .order_kernels import anneal, reset
from .order_space import Links, Walk, blank_walk, build_links
from .walkers import walkers

CHUNK = 2000
"""Moves between two looks at the clock."""


class Manner(NamedTuple):
    """How a walk goes: hot and cold are shares of the peak it begins with, the level is this share below the best peak."""

    hot: float
    cold: float
    falling: float


MANNERS = (Manner(1e-2, 1e-4, 0.005), Manner(1e-1, 1e-3, 0.02))
"""One walk each."""


def find_order(
    problem: Problem, seed: int, moves: int, watch: Watch, goal: int | None = None, threads: int | None = None
) -> tuple[int, ...]:
    """The topological order of the lowest peak found, nothing recomputed; never one worse than the given order.

    Stops early at a peak of `goal` bytes or less, base included, or where no order can be better. Deterministic unless time runs out.
    """
    if problem.count < 2:
        return tuple(range(problem.count))
    watch.on_event(Event("searching orders"))
    links = build_links(problem)
    enough = max(least_peak(links), 0 if goal is None else goal - problem.base)
    if _weighed(links, np.arange(problem.count), 0.0)[1] <= enough:
        return tuple(range(problem.count))
    starts = sorted(_constructions(links), key=lambda order: _weighed(links, order, 0.0)[1])
    with walkers(threads) as pool:
        walks = [
            pool.submit(_lowest_peak, links, starts[number], manner, seed * 1000 + number, moves, watch, enough)
            for number, manner in enumerate(MANNERS)
        ]
        found = [walk.result() for walk in walks]
    return _best(problem, links, found, 0.0)


def order_for_budget(problem: Problem, seed: int, moves: int, watch: Watch, threads: int | None = None) -> tuple[int, ...]:
    """The order with the fewest bytes above the budget, summed over all steps, then with the lowest peak: where to start recomputing."""
    if problem.count < 2:
        return tuple(range(problem.count))
    watch.on_event(Event("searching orders for the budget"))
    links = build_links(problem)
    level = float(problem.available)
    starts = sorted(_constructions(links), key=lambda order: _weighed(links, order, level))
    with walkers(threads) as pool:
        walks = [
            pool.submit(_least_excess, links, starts[number], manner, seed * 1000 + number, moves, watch, problem.available)
            for number, manner in enumerate(MANNERS)
        ]
        found = [walk.result() for walk in walks]
    return _best(problem, links, found, level)


def _lowest_peak(links: Links, start: Ints, manner: Manner, seed: int, moves: int, watch: Watch, enough: int) -> Ints:
    walk = new_walk(links, start, seed, 0.0)
    walk.totals["level"] = walk.best_peak * (1.0 - manner.falling)
    reset(links, walk)
    run_walk(links, walk, manner, moves, watch, manner.falling, enough)
    return walk.best


def _least_excess(links: Links, start: Ints, manner: Manner, seed: int, moves: int, watch: Watch, available: int) -> Ints:
    walk = new_walk(links, start, seed, float(available))
    run_walk(links, walk, manner, moves, watch, 0.0, available)
    return walk.best


def run_walk(links: Links, walk: Walk, manner: Manner, moves: int, watch: Watch, falling: float, enough: int) -> None:
    """Anneal once, in chunks so that the clock is looked at."""
    peak = max(1, walk.best_peak)
    chunks = max(1, moves // CHUNK)
    cooling = manner.cold / manner.hot
    for chunk in range(chunks):
        if watch.expired or walk.best_peak <= enough:
            return
        hot, cold = (peak * manner.hot * cooling ** (part / chunks) for part in (chunk, chunk + 1))
        anneal(links, walk, min(CHUNK, moves), hot, cold, falling, enough)


def _best(problem: Problem, links: Links, found: Sequence[Ints], level: float) -> tuple[int, ...]:
    """The best of what was found and the given order, which wins where nothing is better."""
    candidates = [np.arange(problem.count), *found]
    best = min(candidates, key=lambda order: _weighed(links, order, level) if level else (0.0, _weighed(links, order, level)[1]))
    return tuple(int(operation) for operation in best)


def _constructions(links: Links) -> list[Ints]:
    """The given order; the same with all that shrinks what is in memory as early as can be, or all that grows it as late; and both."""
    given = np.arange(len(links.operations))
    orders = [given]
    for steps in ((build_eagerly,), (build_lazily,), (build_eagerly, build_lazily), (build_lazily, build_eagerly)):
        walk = new_walk(links, given, 0, 0.0)
        for build in steps:
            build(links, walk)
            reset(links, walk)
        orders.append(walk.order.copy())
    return orders


def _weighed(links: Links, order: Ints, level: float) -> tuple[float, int]:
    """All bytes above a level, and the peak, both without the base."""
    walk = new_walk(links, order, 0, level)
    return walk.excess, walk.best_peak


def new_walk(links: Links, order: Ints, seed: int, level: float) -> Walk:
    """A walk that begins with an order, which is the best so far."""
    walk = blank_walk(links, order, seed, level)
    reset(links, walk)
    walk.totals["best_peak"] = walk.places["memory"].max()
    walk.totals["best_excess"] = walk.excess
    return walk
