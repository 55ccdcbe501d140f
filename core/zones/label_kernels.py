"""The compiled part of passing through a zone, found backwards: what must be in memory before each first computation, at what cost.

A set of values stands for "this is needed from here on". Backwards, an operation that makes some of it turns it into another: without what
it makes, with what it reads. Nothing is ever dropped, for nothing is held that is not needed; so there are few sets, and each of them once
for every first computation. All in one file: numba's cache looks at the date of the file a function is in and not at those it calls.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..jit.compile import inner, outer
from ..jit.tables import Ints, Table, columns

MOST_VALUES = 62
"""Values that fit into the bits of a number, with some to spare."""
MIX = -7046029254386353131
"""Spreads sets over places: an odd number with bits at random."""
OPEN = 0
SETTLED = 1
WORSE = 2
"""A set whose cost may still fall; one whose cost is known; one that needs more than another and is no cheaper."""

OPERATION = columns("reads makes workspace price since")
"""What is read and made, as bits of values; bytes beside that; what it costs to do it again; the first computation after which that can be
done, as a number of steps."""
NODE = columns("needed cost peak then operation step state")
"""What is needed, as bits; what it costs from here on, and the most it takes; the node that an operation leads to, and which
first computation comes next."""
WAITING = columns("cost peak node")
TOTALS = columns("nodes waiting first", bools="full")
"""Nodes so far; those that wait to be settled; the first node of the step at hand; whether there were more than there is room for."""


class Passage(NamedTuple):
    """The operations of a zone, and the nodes found so far."""

    operations: Table
    """Those that can be done again."""
    steps: Table
    """First computations, in order: operations too."""
    sums: Ints
    """Bytes of each combination of eight values, one row for every eight."""
    nodes: Table
    places: Ints
    """Where each node of the step at hand is found by what it needs."""
    waiting: Table
    """Nodes to settle, the cheapest first: a heap."""
    totals: Table


def new_passage(operations: Table, steps: Table, sizes: Ints, most: int) -> Passage:
    """Nothing found so far; room for so many nodes."""
    sums = np.zeros((-(-max(1, len(sizes)) // 8), 256), np.int64)
    for value, size in enumerate(sizes.tolist()):
        sums[value // 8, (np.arange(256) >> value % 8) & 1 == 1] += size
    places = np.full(1 << (2 * most).bit_length(), -1, np.int64)
    return Passage(operations, steps, sums, np.zeros(most, NODE), places, np.zeros(2 * most, WAITING), np.zeros(1, TOTALS))


@inner
def bytes_of(state: Passage, needed: int) -> int:
    total = 0
    for part in range(state.sums.shape[0]):
        total += state.sums[part, (needed >> (8 * part)) & 255]
    return total


@inner
def place_of(state: Passage, needed: int, step: int) -> int:
    """Where the node of a step that needs this is found, or would be: what is there may be of another step, and is then as good as none."""
    last = len(state.places) - 1
    mixed = needed * MIX
    place = (mixed ^ (mixed >> 29)) & last
    while True:
        number = state.places[place]
        if number < 0:
            return place
        node = state.nodes[number]
        if node.step != step or node.needed == needed:
            return place
        place = (place + 1) & last


@inner
def wait(state: Passage, number: int) -> None:
    """Put a node into the heap."""
    totals = state.totals[0]
    if totals.waiting == len(state.waiting):
        totals.full = True
        return
    node = state.nodes[number]
    at = totals.waiting
    totals.waiting += 1
    while at:
        above = state.waiting[(at - 1) >> 1]
        if above.cost < node.cost or (above.cost == node.cost and above.peak <= node.peak):
            break
        here = state.waiting[at]
        here.cost = above.cost
        here.peak = above.peak
        here.node = above.node
        at = (at - 1) >> 1
    here = state.waiting[at]
    here.cost = node.cost
    here.peak = node.peak
    here.node = number


@inner
def next_waiting(state: Passage) -> int:
    """Take the cheapest node out of the heap."""
    totals = state.totals[0]
    found = state.waiting[0].node
    totals.waiting -= 1
    last = state.waiting[totals.waiting]
    at = 0
    while True:
        below = 2 * at + 1
        if below >= totals.waiting:
            break
        lower = state.waiting[below]
        if below + 1 < totals.waiting:
            other = state.waiting[below + 1]
            if other.cost < lower.cost or (other.cost == lower.cost and other.peak < lower.peak):
                below += 1
                lower = other
        if last.cost < lower.cost or (last.cost == lower.cost and last.peak <= lower.peak):
            break
        here = state.waiting[at]
        here.cost = lower.cost
        here.peak = lower.peak
        here.node = lower.node
        at = below
    here = state.waiting[at]
    here.cost = last.cost
    here.peak = last.peak
    here.node = last.node
    return found


@inner
def lead(state: Passage, number: int, kind: Table, operation: int, price: int, step: int, limit: int, dearest: int) -> None:
    """Note what is needed before an operation that leads to a node, unless that does not fit, is too dear or is known more cheaply."""
    totals = state.totals[0]
    after = state.nodes[number]
    row = kind[operation]
    cost = after.cost + price
    if cost > dearest:
        return
    peak = bytes_of(state, after.needed | row.reads | row.makes) + row.workspace
    if peak > limit:
        return
    if peak < after.peak:
        peak = after.peak
    needed = (after.needed & ~row.makes) | row.reads
    place = place_of(state, needed, step)
    found = state.places[place]
    if found < 0 or state.nodes[found].step != step:
        found = totals.nodes
        if found == len(state.nodes):
            totals.full = True
            return
        totals.nodes += 1
        state.places[place] = found
        node = state.nodes[found]
        node.needed = needed
        node.step = step
        node.state = OPEN
    else:
        node = state.nodes[found]
        if node.cost < cost or (node.cost == cost and node.peak <= peak):
            return
    node.cost = cost
    node.peak = peak
    node.then = number
    node.operation = operation
    wait(state, found)


@inner
def needs_more(state: Passage, number: int, values: int) -> bool:
    """Does a node need one value more than another of its step that costs and takes no more?"""
    node = state.nodes[number]
    for value in range(values):
        if (node.needed >> value) & 1:
            found = state.places[place_of(state, node.needed ^ (1 << value), node.step)]
            if found >= 0:
                other = state.nodes[found]
                if other.step == node.step and other.state != OPEN and other.cost <= node.cost and other.peak <= node.peak:
                    return True
    return False


@inner
def settle(state: Passage, step: int, values: int, limit: int, dearest: int) -> None:
    """Everything that can be made again right before a step, as often as it pays."""
    totals = state.totals[0]
    while totals.waiting and not totals.full:
        number = next_waiting(state)
        node = state.nodes[number]
        if node.state != OPEN:
            continue
        node.state = SETTLED
        if needs_more(state, number, values):
            node.state = WORSE
            continue
        for operation in range(len(state.operations)):
            row = state.operations[operation]
            if row.makes & node.needed and row.since <= step:
                lead(state, number, state.operations, operation, row.price, step, limit, dearest)


@outer
def pass_backwards(state: Passage, needed: int, values: int, limit: int, dearest: int) -> None:
    """From what is needed at the end to what is needed before the first step, `first` and the nodes behind it; none if nothing passes."""
    totals = state.totals[0]
    last = len(state.steps)
    node = state.nodes[0]
    node.needed = needed
    node.cost = 0
    node.peak = bytes_of(state, needed)
    node.then = -1
    node.operation = -1
    node.step = last
    node.state = OPEN
    totals.nodes = 1
    totals.first = 0
    totals.waiting = 0
    totals.full = False
    state.places[place_of(state, needed, last)] = 0
    wait(state, 0)
    for step in range(last, -1, -1):
        settle(state, step, values, limit, dearest)
        if step == 0 or totals.full:
            break
        begin = totals.first
        totals.first = totals.nodes
        for number in range(begin, totals.first):
            if state.nodes[number].state == SETTLED:
                lead(state, number, state.steps, step - 1, 0, step - 1, limit, dearest)
