"""The compiled part of passing through a zone: the cheapest way from any set of values in memory to the end of a few first computations."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .compile import inner, outer

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@inner
def _reach(cost: Floats, peak: Ints, at: int, new_cost: float, new_peak: int) -> bool:
    """Note a way to a set if it is cheaper, or as cheap and takes less memory."""
    if new_cost < cost[at] or (new_cost == cost[at] and new_peak < peak[at]):
        cost[at] = new_cost
        peak[at] = new_peak
        return True
    return False


@inner
def _lead(
    taken: Ints, at: int, target: int, workspace: int, price: float, limit: int, cost: Floats, peak: Ints, to_cost: Floats, to_peak: Ints
) -> bool:
    """Note the way that an operation leads from one set to another, if it leads anywhere and fits."""
    if target < 0 or cost[at] == np.inf:
        return False
    held = taken[target] + workspace
    if held > limit:
        return False
    return _reach(to_cost, to_peak, target, cost[at] + price, held if held > peak[at] else peak[at])


@inner
def _recompute_and_drop(
    taken: Ints, drops: Ints, again: Ints, since: Ints, workspace: Ints, price: Floats, limit: int, step: int, cost: Floats, peak: Ints
) -> None:
    """Everything that can be done between two first computations, as often as it pays. Sets are numbered so that parts come first."""
    changed = True
    while changed:
        changed = False
        for operation in range(len(price)):
            if since[operation] > step:
                continue
            for at in range(len(taken)):
                target = again[operation, at]
                changed |= _lead(taken, at, target, workspace[operation], price[operation], limit, cost, peak, cost, peak)
        for at in range(len(taken) - 1, -1, -1):
            if cost[at] < np.inf:
                for value in range(drops.shape[1]):
                    target = drops[at, value]
                    if target >= 0:
                        changed |= _reach(cost, peak, target, cost[at], peak[at])


@outer
def pass_through(
    taken: Ints,
    drops: Ints,
    again: Ints,
    since: Ints,
    workspace: Ints,
    price: Floats,
    steps: Ints,
    step_workspace: Ints,
    limit: int,
    cost: Floats,
    peak: Ints,
    next_cost: Floats,
    next_peak: Ints,
    settled: Floats,
    settled_peak: Ints,
) -> None:
    """From what it costs to have each set at the beginning to what it costs at the end, and the least peak for that cost, in place.

    What it costs right before each first computation, and the peak until then, is written down to find the way back.
    """
    for step in range(len(step_workspace)):
        _recompute_and_drop(taken, drops, again, since, workspace, price, limit, step, cost, peak)
        for at in range(len(taken)):
            settled[step, at] = cost[at]
            settled_peak[step, at] = peak[at]
            next_cost[at] = np.inf
            next_peak[at] = 0
        for at in range(len(taken)):
            _lead(taken, at, steps[step, at], step_workspace[step], 0.0, limit, cost, peak, next_cost, next_peak)
        for at in range(len(taken)):
            cost[at] = next_cost[at]
            peak[at] = next_peak[at]
