"""Constructions of orders, and a limit on what any order can reach. No kernel here calls another.

numba's cache looks at the date of the file a function is in and not at those it calls: what calls one another shares a file.
"""

from __future__ import annotations

import numpy as np

from ..jit.compile import outer
from ..jit.tables import Ints
from .order_space import Links, Walk


def build_eagerly(links: Links, walk: Walk) -> None:
    """In the walk's order, but whatever leaves less in memory than it found comes as soon as it can."""
    operations = links.operations
    unread = np.bincount(links.links[: operations["reads_end"].max(initial=0)], minlength=len(links.values))
    _eagerly(links, walk, unread, operations["before_end"] - operations["before"], np.zeros(len(operations), np.int64))


def build_lazily(links: Links, walk: Walk) -> None:
    """In the walk's order, but whatever leaves more in memory than it found comes as late as it can."""
    operations = links.operations
    live = links.values["kept"].astype(np.int64)
    _lazily(links, walk, live, operations["after_end"] - operations["after"], np.zeros(len(operations), np.int64))


def least_peak(links: Links) -> int:
    """A peak that no order beats if nothing is recomputed: what lies between the ancestors and the descendants of one operation."""
    count = len(links.operations)
    return int(_least_peak(links, np.zeros(count, np.int64), np.zeros(count, np.int64)))


@outer
def _eagerly(links: Links, walk: Walk, unread: Ints, missing: Ints, ready: Ints) -> None:
    """`unread` says how many are still to read each value, `missing` for how many each operation waits."""
    waiting = 0
    for number in range(len(missing)):
        if missing[number] == 0:
            ready[waiting] = number
            waiting += 1
    for place in range(len(missing)):
        chosen = 0
        least = 0
        for slot in range(waiting):
            operation = links.operations[ready[slot]]
            grown = operation.made - operation.dropped
            for index in range(operation.reads, operation.reads_end):
                value = links.values[links.links[index]]
                if unread[links.links[index]] == 1 and not value.kept:
                    grown -= value.size
            if grown < least or (least == 0 and walk.spots[ready[slot]].place < walk.spots[ready[chosen]].place):
                chosen = slot
                least = grown if grown < 0 else 0
        number = ready[chosen]
        waiting -= 1
        ready[chosen] = ready[waiting]
        walk.places[place].operation = number
        operation = links.operations[number]
        for index in range(operation.reads, operation.reads_end):
            unread[links.links[index]] -= 1
        for index in range(operation.after, operation.after_end):
            follower = links.links[index]
            missing[follower] -= 1
            if missing[follower] == 0:
                ready[waiting] = follower
                waiting += 1


@outer
def _lazily(links: Links, walk: Walk, live: Ints, missing: Ints, ready: Ints) -> None:
    """From the end: `live` says what is read later on, `missing` how many wait for each operation."""
    waiting = 0
    for number in range(len(missing)):
        if missing[number] == 0:
            ready[waiting] = number
            waiting += 1
    for place in range(len(missing) - 1, -1, -1):
        chosen = 0
        least = 0
        for slot in range(waiting):
            operation = links.operations[ready[slot]]
            grown = operation.dropped - operation.made
            for index in range(operation.reads, operation.reads_end):
                value = links.links[index]
                if not live[value]:
                    grown += links.values[value].size
            if grown < least or (least == 0 and walk.spots[ready[slot]].place > walk.spots[ready[chosen]].place):
                chosen = slot
                least = grown if grown < 0 else 0
        number = ready[chosen]
        waiting -= 1
        ready[chosen] = ready[waiting]
        walk.places[place].operation = number
        operation = links.operations[number]
        for index in range(operation.reads, operation.reads_end):
            live[links.links[index]] = 1
        for index in range(operation.before, operation.before_end):
            former = links.links[index]
            missing[former] -= 1
            if missing[former] == 0:
                ready[waiting] = former
                waiting += 1


@outer
def _least_peak(links: Links, ancestor_of: Ints, descendant_of: Ints) -> int:
    """The arrays say for which operation, counted from 1, each was last found to be an ancestor or a descendant."""
    count = len(links.operations)
    most = 0
    for middle in range(count):
        stamp = middle + 1
        ancestor_of[middle] = stamp
        descendant_of[middle] = stamp
        total = links.operations[middle].workspace + links.operations[middle].dropped
        for number in range(middle, count):
            if descendant_of[number] == stamp:
                operation = links.operations[number]
                for index in range(operation.after, operation.after_end):
                    descendant_of[links.links[index]] = stamp
        for number in range(middle, -1, -1):
            if ancestor_of[number] == stamp:
                operation = links.operations[number]
                for index in range(operation.before, operation.before_end):
                    ancestor_of[links.links[index]] = stamp
                for index in range(operation.makes, operation.makes_end):
                    value = links.values[links.links[index]]
                    needed = value.kept
                    for user in range(value.users, value.users_end):
                        needed = needed or descendant_of[links.links[user]] == stamp
                    if needed:
                        total += value.size
        if total > most:
            most = total
    return most
