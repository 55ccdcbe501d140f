"""The compiled kernels of the search over orders: nothing is recomputed, so an order alone says what is in memory when.

All in one file: numba's cache looks at the date of the file a function is in and not at those it calls.

A move takes one operation, or a short run of them, to an earlier or later place. What stands in the way and must go first (inputs) or
last (readers) goes along, so every move ends in a valid order. Only the places between the old and the new one change.
"""

from __future__ import annotations

import math

import numpy as np

from .compile import inner, outer
from .order_space import Links, Walk

LONGEST_RUN = 4
"""Operations a move takes along of its own will."""
LONGEST_MOVE = 20_000
"""Places a move may change."""
LOOKS = 8
"""Tries to find what a move is looking for."""


@inner
def draw(walk: Walk) -> np.uint64:
    """xorshift64*: the same numbers on every machine."""
    x = walk.random[0]
    x ^= x >> np.uint64(12)
    x ^= x << np.uint64(25)
    x ^= x >> np.uint64(27)
    walk.random[0] = x
    return np.uint64(x * np.uint64(2685821657736338717))


@inner
def below(walk: Walk, limit: int) -> int:
    return int(draw(walk) >> np.uint64(33)) % limit


@inner
def uniform(walk: Walk) -> float:
    return float(draw(walk) >> np.uint64(11)) / 9007199254740992.0


@inner
def scale(walk: Walk, limit: int) -> int:
    """A number from 1 to about `limit`, small ones more likely than large ones."""
    bits = 1
    while limit >> bits:
        bits += 1
    return 1 + below(walk, 1 << min(below(walk, bits), below(walk, bits)))


@inner
def find_last_reads(links: Links, walk: Walk, begin: int, end: int) -> None:
    """Between two places (both included) the operations changed places: where is what they read read last?"""
    for place in range(begin, end + 1):
        operation = walk.order[place]
        walk.place[operation] = place
        for index in range(links.read_start[operation], links.read_start[operation + 1]):
            value = links.reads[index]
            if walk.last[value] <= end:
                walk.last[value] = place


@inner
def weigh(links: Links, walk: Walk, begin: int, end: int) -> float:
    """Set the memory between two places, both included (before and after nothing changed); bytes above the level there."""
    find_last_reads(links, walk, begin, end)
    live = walk.live[begin]
    level = walk.level[0]
    excess = 0.0
    for place in range(begin, end + 1):
        operation = walk.order[place]
        walk.live[place] = live
        live += links.made[operation]
        walk.memory[place] = live + links.workspace[operation]
        excess += max(0.0, walk.memory[place] - level)
        live -= links.dropped[operation]
        for index in range(links.read_start[operation], links.read_start[operation + 1]):
            value = links.reads[index]
            if walk.last[value] == place:
                live -= links.size[value]
    return excess


@outer
def reset(links: Links, walk: Walk) -> None:
    """Evaluate everything from the order."""
    count = len(walk.order)
    for value in range(len(walk.last)):
        walk.last[value] = count if links.kept[value] else -1
    walk.live[0] = 0
    # A bare 0 would be a type of its own to numba, and compiled once more.
    walk.excess[0] = weigh(links, walk, int(np.int64(0)), count - 1)


@inner
def shift(links: Links, walk: Walk, first: int, final: int, target: int) -> tuple[int, int]:
    """Take the operations at `first` to `final` up or back to `target`, with all on the way that must stay before or behind them.

    Gives the places between which the order changed, both included; the second is the smaller if none did.
    """
    begin, end = min(first, target), max(final, target)
    up = target < first
    if first <= target <= final or end - begin > LONGEST_MOVE:
        return end, begin - 1
    walk.stamp[0] += 1
    stamp = walk.stamp[0]
    for place in range(first, final + 1):
        walk.mark[walk.order[place]] = stamp
    for step in range(end - begin + 1):
        operation = walk.order[end - step if up else begin + step]
        if walk.mark[operation] == stamp:
            if up:
                for index in range(links.before_start[operation], links.before_start[operation + 1]):
                    walk.mark[links.before[index]] = stamp
            else:
                for index in range(links.after_start[operation], links.after_start[operation + 1]):
                    walk.mark[links.after[index]] = stamp
    early, late = begin, 0
    for place in range(begin, end + 1):
        operation = walk.order[place]
        walk.old_order[place] = operation
        if (walk.mark[operation] == stamp) == up:
            walk.order[early] = operation
            early += 1
        else:
            walk.aside[late] = operation
            late += 1
    for index in range(late):
        walk.order[early + index] = walk.aside[index]
    return begin, end


@inner
def crowded(walk: Walk) -> int:
    """A place above the level, if a few looks find one; else the last place that was one."""
    for _ in range(LOOKS):
        place = below(walk, len(walk.order))
        if walk.memory[place] > walk.level[0]:
            walk.crowded[0] = place
            break
    return int(walk.crowded[0])


@inner
def relieve(links: Links, walk: Walk, here: int) -> tuple[int, int]:
    """Take something out of a place: what is in memory there is made later, or read for the last time earlier."""
    count = len(walk.order)
    for _ in range(LOOKS):
        place = max(here - scale(walk, here + 1), 0)
        maker = walk.order[place]
        begin, end = links.made_start[maker], links.made_start[maker + 1]
        if begin == end:
            continue
        reader = walk.last[links.makes[begin + below(walk, end - begin)]]
        if reader < here:
            continue
        if reader == count or below(walk, 2):
            return shift(links, walk, place, place, min(here + scale(walk, count - here), count - 1))
        return shift(links, walk, reader, reader, max(here + 1 - scale(walk, here + 1), 0))
    return here, here - 1


@inner
def wander(links: Links, walk: Walk, near: int) -> tuple[int, int]:
    """Take an operation, sometimes a few, to another place, mostly one it can take alone."""
    count = len(walk.order)
    place = min(max(near + scale(walk, count) - scale(walk, count), 0), count - 1)
    final = min(place + below(walk, LONGEST_RUN), count - 1) if below(walk, 4) == 0 else place
    distance = scale(walk, count)
    alone = below(walk, 4) > 0
    if below(walk, 2):
        target = max(place - distance, 0)
        operation = walk.order[place]
        for index in range(links.before_start[operation], links.before_start[operation + 1] if alone else 0):
            target = max(target, walk.place[links.before[index]] + 1)
    else:
        target = min(final + distance, count - 1)
        operation = walk.order[final]
        for index in range(links.after_start[operation], links.after_start[operation + 1] if alone else 0):
            target = min(target, walk.place[links.after[index]] - 1)
    return shift(links, walk, place, final, target)


@inner
def highest(walk: Walk) -> int:
    """The place of the peak."""
    peak = 0
    for place in range(len(walk.order)):
        if walk.memory[place] > walk.memory[peak]:
            peak = place
    return peak


@inner
def remember(walk: Walk, falling: float) -> None:
    """Keep the order if its peak is a record (or, for a fixed level, its excess); let the level fall below the new record."""
    peak = walk.memory[highest(walk)]
    if falling > 0.0 and peak >= walk.best_peak[0]:
        return
    walk.best_peak[0] = peak
    walk.best_excess[0] = walk.excess[0]
    for place in range(len(walk.order)):
        walk.best[place] = walk.order[place]
    if falling > 0.0:
        walk.level[0] = peak * (1.0 - falling)
        walk.excess[0] = 0.0
        for place in range(len(walk.order)):
            walk.excess[0] += max(0.0, walk.memory[place] - walk.level[0])


@outer
def anneal(links: Links, walk: Walk, moves: int, hot: float, cold: float, falling: float, goal: int) -> None:
    """Try `moves` moves while the temperature, in bytes, falls from hot to cold. Stops at a peak of `goal` bytes or less.

    With `falling` above 0 the level follows the best peak, this share below it, and the best order is that of the lowest peak; with 0
    the level stays and the best order is that of the least excess.
    """
    for move in range(moves):
        if walk.best_peak[0] <= goal:
            return
        if move % 256 == 0:
            walk.crowded[0] = highest(walk)
        near = crowded(walk)
        kind = below(walk, 4)
        if kind < 2:
            begin, end = relieve(links, walk, near)
        else:
            begin, end = wander(links, walk, near if kind == 2 else below(walk, len(walk.order)))
        if end < begin:
            continue
        before = 0.0
        for place in range(begin, end + 1):
            walk.old_live[place] = walk.live[place]
            walk.old_memory[place] = walk.memory[place]
            before += max(0.0, walk.memory[place] - walk.level[0])
        worse = weigh(links, walk, begin, end) - before
        if worse > 0 and uniform(walk) >= math.exp(-worse / (hot * math.pow(cold / hot, move / moves))):
            for place in range(begin, end + 1):
                walk.order[place] = walk.old_order[place]
                walk.live[place] = walk.old_live[place]
                walk.memory[place] = walk.old_memory[place]
            find_last_reads(links, walk, begin, end)
            continue
        walk.excess[0] += worse
        if worse < 0 and (falling > 0.0 or walk.excess[0] < walk.best_excess[0]):
            remember(walk, falling)
