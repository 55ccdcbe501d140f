"""The order of first computations is ours to choose, and choosing it well is free memory: annealing over topological orders."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..events import Event, Watch
from ..jit.tables import Ints
from ..model.problem import Problem
from ..params import PARAMS
from .order_builds import build_eagerly, build_lazily, least_peak
from .order_kernels import anneal, reset
from .order_space import Links, Walk, blank_walk, build_links


class Manner(NamedTuple):
    """How a walk goes: hot and cold are shares of the peak it begins with, the level is this share below the best peak."""

    hot: float
    cold: float
    falling: float


def find_order(problem: Problem, seed: int, moves: int, watch: Watch, goal: int | None = None) -> tuple[int, ...]:
    """The topological order of the lowest peak found, nothing recomputed; never one worse than the given order.

    Stops early at a peak of `goal` bytes or less, base included, or where no order can be better. Deterministic unless time runs out.
    """
    if problem.count < 2:
        return tuple(range(problem.count))
    watch.on_event(Event("searching orders"))
    links = build_links(problem)
    enough = max(least_peak(links), 0 if goal is None else goal - problem.base)
    if _peak(links, np.arange(problem.count)) <= enough:
        return tuple(range(problem.count))
    starts = sorted(_constructions(links), key=lambda order: _peak(links, order))
    found = [
        _lowest_peak(links, starts[number], Manner(*order), seed * 1000 + number, moves, watch, enough)
        for number, order in enumerate(PARAMS.orders)
    ]
    best = min([np.arange(problem.count), *found], key=lambda order: _peak(links, order))  # the given order wins where nothing is better
    return tuple(int(operation) for operation in best)


def _lowest_peak(links: Links, start: Ints, manner: Manner, seed: int, moves: int, watch: Watch, enough: int) -> Ints:
    walk = new_walk(links, start, seed, 0.0)
    walk.totals["level"] = walk.best_peak * (1.0 - manner.falling)
    reset(links, walk)
    run_walk(links, walk, manner, moves, watch, enough)
    return walk.best


def run_walk(links: Links, walk: Walk, manner: Manner, moves: int, watch: Watch, enough: int) -> None:
    """Anneal once, in chunks so that the clock is looked at."""
    peak = max(1, walk.best_peak)
    chunks = max(1, moves // PARAMS.chunk_moves)
    cooling = manner.cold / manner.hot
    for chunk in range(chunks):
        if watch.expired or walk.best_peak <= enough:
            return
        hot, cold = (peak * manner.hot * cooling ** (part / chunks) for part in (chunk, chunk + 1))
        anneal(links, walk, min(PARAMS.chunk_moves, moves), hot, cold, manner.falling, enough)


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


def _peak(links: Links, order: Ints) -> int:
    """Without the base."""
    return new_walk(links, order, 0, 0.0).best_peak


def new_walk(links: Links, order: Ints, seed: int, level: float) -> Walk:
    """A walk that begins with an order, which is the best so far."""
    walk = blank_walk(links, order, seed, level)
    reset(links, walk)
    walk.totals["best_peak"] = walk.places["memory"].max()
    return walk
