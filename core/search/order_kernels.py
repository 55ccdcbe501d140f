"""The compiled kernels of the search over orders: nothing is recomputed, so an order alone says what is in memory when.

All in one file: numba's cache looks at the date of the file a function is in and not at those it calls.

A move takes one operation to an earlier or later place. What stands in the way and must go first (inputs) or
last (readers) goes along, so every move ends in a valid order. Only the places between the old and the new one change.
"""

from __future__ import annotations

import math

import numpy as np

from ..jit.basics import pick, scale, uniform
from ..jit.compile import inner, outer
from ..params import PARAMS
from .order_space import Links, Walk

LOOKS = PARAMS.looks


@inner
def within(place: int, count: int) -> int:
    """The nearest place there is."""
    return 0 if place < 0 else (place if place < count else count - 1)


@inner
def find_last_reads(links: Links, walk: Walk, begin: int, end: int) -> None:
    """Between two places (both included) the operations changed places: where is what they read read last?"""
    for place in range(begin, end + 1):
        number = walk.places[place].operation
        walk.spots[number].place = place
        operation = links.operations[number]
        for index in range(operation.reads, operation.reads_end):
            value = links.links[index]
            if walk.last[value] <= end:
                walk.last[value] = place


@inner
def weigh(links: Links, walk: Walk, begin: int, end: int) -> float:
    """Set the memory between two places, both included (before and after nothing changed); bytes above the level there."""
    find_last_reads(links, walk, begin, end)
    live = walk.places[begin].live
    level = walk.totals[0].level
    excess = 0.0
    for number in range(begin, end + 1):
        place = walk.places[number]
        operation = links.operations[place.operation]
        place.live = live
        live += operation.made
        place.memory = live + operation.workspace
        if place.memory > level:
            excess += place.memory - level
        live -= operation.dropped
        for index in range(operation.reads, operation.reads_end):
            value = links.links[index]
            if walk.last[value] == number:
                live -= links.values[value].size
    return excess


@outer
def reset(links: Links, walk: Walk) -> None:
    """Evaluate everything from the order."""
    count = len(walk.places)
    for value in range(len(walk.last)):
        walk.last[value] = count if links.values[value].kept else -1
    walk.places[0].live = 0
    # A bare 0 would be a type of its own to numba, and compiled once more.
    walk.totals[0].excess = weigh(links, walk, np.int64(0), count - 1)


@inner
def shift(links: Links, walk: Walk, source: int, target: int) -> None:
    """Take the operation at `source` up or back to `target`, with all on the way that must stay before or behind it."""
    totals = walk.totals[0]
    up = target < source
    begin = target if up else source
    end = source if up else target
    totals.begin = begin
    if source == target:
        totals.end = begin - 1
        return
    totals.end = end
    totals.stamp += 1
    stamp = totals.stamp
    walk.spots[walk.places[source].operation].mark = stamp
    for step in range(end - begin + 1):
        number = walk.places[end - step if up else begin + step].operation
        if walk.spots[number].mark == stamp:
            operation = links.operations[number]
            for index in range(operation.before if up else operation.after, operation.before_end if up else operation.after_end):
                walk.spots[links.links[index]].mark = stamp
    early = begin
    late = 0
    for number in range(begin, end + 1):
        place = walk.places[number]
        moved = place.operation
        place.old_operation = moved
        if (walk.spots[moved].mark == stamp) == up:
            walk.places[early].operation = moved
            early += 1
        else:
            walk.places[late].aside = moved
            late += 1
    for index in range(late):
        walk.places[early + index].operation = walk.places[index].aside


@inner
def crowded(walk: Walk) -> int:
    """A place above the level, if a few looks find one; else the last place that was one."""
    totals = walk.totals[0]
    for _ in range(LOOKS):
        place = pick(totals) % len(walk.places)
        if walk.places[place].memory > totals.level:
            totals.crowded = place
            break
    return totals.crowded


@inner
def relieve(links: Links, walk: Walk, here: int) -> None:
    """Take something out of a place: what is in memory there is made later, or read for the last time earlier."""
    totals = walk.totals[0]
    count = len(walk.places)
    totals.begin = here
    totals.end = here - 1
    for _ in range(LOOKS):
        place = within(here - scale(totals, here + 1), count)
        maker = links.operations[walk.places[place].operation]
        if maker.makes == maker.makes_end:
            continue
        reader = walk.last[links.links[maker.makes + pick(totals) % (maker.makes_end - maker.makes)]]
        if reader < here:
            continue
        if reader == count or pick(totals) % 2:
            target = within(here + scale(totals, count - here), count)
        else:
            target = within(here + 1 - scale(totals, here + 1), count)
            place = reader
        shift(links, walk, place, target)
        return


@inner
def wander(links: Links, walk: Walk, near: int) -> None:
    """Take an operation to another place, mostly one it can take alone."""
    totals = walk.totals[0]
    count = len(walk.places)
    forth = scale(totals, count)
    place = within(near + forth - scale(totals, count), count)
    distance = scale(totals, count)
    alone = pick(totals) % 4 > 0
    if pick(totals) % 2:
        target = within(place - distance, count)
        if alone:
            operation = links.operations[walk.places[place].operation]
            for index in range(operation.before, operation.before_end):
                behind = walk.spots[links.links[index]].place + 1
                target = behind if behind > target else target
    else:
        target = within(place + distance, count)
        if alone:
            operation = links.operations[walk.places[place].operation]
            for index in range(operation.after, operation.after_end):
                ahead = walk.spots[links.links[index]].place - 1
                target = ahead if ahead < target else target
    shift(links, walk, place, target)


@inner
def highest(walk: Walk) -> int:
    """The place of the peak."""
    peak = 0
    for place in range(len(walk.places)):
        if walk.places[place].memory > walk.places[peak].memory:
            peak = place
    return peak


@inner
def remember(walk: Walk, falling: float) -> None:
    """Keep the order if its peak is a record; let the level fall below the new record."""
    totals = walk.totals[0]
    peak = walk.places[highest(walk)].memory
    if peak >= totals.best_peak:
        return
    totals.best_peak = peak
    totals.level = peak * (1.0 - falling)
    totals.excess = 0.0
    for number in range(len(walk.places)):
        place = walk.places[number]
        place.best = place.operation
        if place.memory > totals.level:
            totals.excess += place.memory - totals.level


@outer
def anneal(links: Links, walk: Walk, moves: int, hot: float, cold: float, falling: float, goal: int) -> None:
    """Try `moves` moves while the temperature, in bytes, falls from hot to cold. Stops at a peak of `goal` bytes or less.

    The level follows the best peak, the share `falling` below it.
    """
    totals = walk.totals[0]
    for move in range(moves):
        if totals.best_peak <= goal:
            return
        if move % 256 == 0:
            totals.crowded = highest(walk)
        near = crowded(walk)
        kind = pick(totals) % 4
        if kind < 2:
            relieve(links, walk, near)
        else:
            wander(links, walk, near if kind == 2 else pick(totals) % len(walk.places))
        begin = totals.begin
        end = totals.end
        if end < begin:
            continue
        before = 0.0
        for number in range(begin, end + 1):
            place = walk.places[number]
            place.old_live = place.live
            place.old_memory = place.memory
            if place.memory > totals.level:
                before += place.memory - totals.level
        worse = weigh(links, walk, begin, end) - before
        if worse > 0 and uniform(totals) >= math.exp(-worse / (hot * math.pow(cold / hot, move / moves))):
            for number in range(begin, end + 1):
                place = walk.places[number]
                place.operation = place.old_operation
                place.live = place.old_live
                place.memory = place.old_memory
            find_last_reads(links, walk, begin, end)
            continue
        totals.excess += worse
        if worse < 0:
            remember(walk, falling)
