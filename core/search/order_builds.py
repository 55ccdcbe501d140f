"""Compiled constructions of orders, and a limit on what any order can reach. No kernel here calls another.

numba's cache looks at the date of the file a function is in and not at those it calls: what calls one another shares a file.
"""

from __future__ import annotations

import numpy as np

from .compile import outer
from .order_space import Links, Walk


@outer
def build_eagerly(links: Links, walk: Walk) -> None:
    """In the walk's order, but whatever leaves less in memory than it found comes as soon as it can."""
    count = len(walk.order)
    unread = np.zeros(len(links.size), np.int64)
    for value in links.reads:
        unread[value] += 1
    missing = links.before_start[1:] - links.before_start[:-1]
    ready = np.zeros(count, np.int64)
    waiting = 0
    for operation in range(count):
        if missing[operation] == 0:
            ready[waiting] = operation
            waiting += 1
    for place in range(count):
        chosen, least = 0, 0
        for slot in range(waiting):
            operation = ready[slot]
            grown = links.made[operation] - links.dropped[operation]
            for index in range(links.read_start[operation], links.read_start[operation + 1]):
                value = links.reads[index]
                if unread[value] == 1 and not links.kept[value]:
                    grown -= links.size[value]
            if grown < least or (least == 0 and walk.place[operation] < walk.place[ready[chosen]]):
                chosen = slot
                least = min(grown, 0)
        operation = ready[chosen]
        waiting -= 1
        ready[chosen] = ready[waiting]
        walk.order[place] = operation
        for index in range(links.read_start[operation], links.read_start[operation + 1]):
            unread[links.reads[index]] -= 1
        for index in range(links.after_start[operation], links.after_start[operation + 1]):
            follower = links.after[index]
            missing[follower] -= 1
            if missing[follower] == 0:
                ready[waiting] = follower
                waiting += 1


@outer
def build_lazily(links: Links, walk: Walk) -> None:
    """In the walk's order, but whatever leaves more in memory than it found comes as late as it can."""
    count = len(walk.order)
    live = links.kept.copy()
    missing = links.after_start[1:] - links.after_start[:-1]
    ready = np.zeros(count, np.int64)
    waiting = 0
    for operation in range(count):
        if missing[operation] == 0:
            ready[waiting] = operation
            waiting += 1
    for place in range(count - 1, -1, -1):
        chosen, least = 0, 0
        for slot in range(waiting):
            operation = ready[slot]
            grown = links.dropped[operation] - links.made[operation]
            for index in range(links.read_start[operation], links.read_start[operation + 1]):
                value = links.reads[index]
                if not live[value]:
                    grown += links.size[value]
            if grown < least or (least == 0 and walk.place[operation] > walk.place[ready[chosen]]):
                chosen = slot
                least = min(grown, 0)
        operation = ready[chosen]
        waiting -= 1
        ready[chosen] = ready[waiting]
        walk.order[place] = operation
        for index in range(links.read_start[operation], links.read_start[operation + 1]):
            live[links.reads[index]] = True
        for index in range(links.before_start[operation], links.before_start[operation + 1]):
            former = links.before[index]
            missing[former] -= 1
            if missing[former] == 0:
                ready[waiting] = former
                waiting += 1


@outer
def least_peak(links: Links) -> int:
    """A peak that no order beats if nothing is recomputed: what lies between the ancestors and the descendants of one operation."""
    count = len(links.made)
    ancestor = np.zeros(count, np.bool_)
    descendant = np.zeros(count, np.bool_)
    most = 0
    for middle in range(count):
        ancestor[:] = False
        descendant[:] = False
        ancestor[middle] = descendant[middle] = True
        for operation in range(middle, -1, -1):
            if ancestor[operation]:
                for index in range(links.before_start[operation], links.before_start[operation + 1]):
                    ancestor[links.before[index]] = True
        for operation in range(middle, count):
            if descendant[operation]:
                for index in range(links.after_start[operation], links.after_start[operation + 1]):
                    descendant[links.after[index]] = True
        total = links.workspace[middle] + links.dropped[middle]
        for operation in range(middle + 1):
            if ancestor[operation]:
                for index in range(links.made_start[operation], links.made_start[operation + 1]):
                    value = links.makes[index]
                    needed = links.kept[value]
                    for user in range(links.user_start[value], links.user_start[value + 1]):
                        needed = needed or descendant[links.users[user]]
                    if needed:
                        total += links.size[value]
        most = max(most, total)
    return most
