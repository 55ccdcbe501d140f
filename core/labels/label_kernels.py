"""The compiled part of label setting: Dijkstra's algorithm over needed-sets, backwards from the end of the schedule.

A label says which values are needed from here on, which first computations are still to come behind it, and what the recomputations behind
it cost. Backwards, an operation that makes some of what is needed turns it into another set: without what it makes, with what it reads.
Nothing is held that is not needed, so there are few sets. All in one file: numba's cache looks at the date of the file a function is in and
not at those it calls.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..jit.compile import inner, outer
from ..jit.tables import Ints, Row, Table, columns

WORD = 62
"""Bits of a number that are used, with some to spare; sets have two numbers, `low` and `high`."""
MOST_BITS = 2 * WORD
MIX = -7046029254386353131
"""Spreads sets over places: an odd number with bits at random."""
OPEN, SETTLED, DOMINATED = 0, 1, 2
"""A label whose cost may still fall; one whose cost is known; one that needs more than another and is no cheaper."""

OPERATION = columns("reads_low reads_high makes_low makes_high after_low after_high workspace price step")
"""What is read and made, as bits of values; the first computations that come after it in every schedule, as bits of steps; bytes beside
that; what it costs to do it again; which step it is, -1 if none."""
LABEL = columns("need_low need_high done_low done_high cost ahead then operation state")
"""What is needed; which steps have been gone back over; the cost from here on; how many steps are ahead; the label that an operation leads
to: steps count from 0, recomputations from -1 down."""
WAITING = columns("cost ahead label")
TOTALS = columns("labels waiting frontier", bools="full")
"""Labels so far; how many wait to be settled; the least cost of those that were not settled."""


class Search(NamedTuple):
    """The operations, and the labels found so far."""

    steps: Table
    """First computations that the end of every schedule has."""
    again: Table
    """What can be recomputed."""
    sums: Ints
    """Bytes of each combination of eight values, one row for every eight, `low` values first."""
    labels: Table
    places: Ints
    """Where each label is found by its sets."""
    waiting: Table
    """Labels to settle, the cheapest first: a heap."""
    totals: Table


def new_search(steps: Table, again: Table, sizes: Ints, most: int) -> Search:
    """Nothing found so far; room for so many labels."""
    rows = -(-WORD // 8)
    sums = np.zeros((2 * rows, 256), np.int64)
    for value, size in enumerate(sizes.tolist()):
        word, bit = divmod(value, WORD)
        sums[word * rows + bit // 8, (np.arange(256) >> bit % 8) & 1 == 1] += size
    places = np.full(1 << (2 * most).bit_length(), -1, np.int64)
    return Search(steps, again, sums, np.zeros(most, LABEL), places, np.zeros(2 * most, WAITING), np.zeros(1, TOTALS))


@inner
def bytes_of(state: Search, low: int, high: int) -> int:
    total = 0
    rows = state.sums.shape[0] >> 1
    for part in range(rows):
        total += state.sums[part, (low >> (8 * part)) & 255]
    if high:
        for part in range(rows):
            total += state.sums[rows + part, (high >> (8 * part)) & 255]
    return total


@inner
def place_of(state: Search, need_low: int, need_high: int, done_low: int, done_high: int) -> int:
    """Where the label with these sets is found, or would be."""
    last = len(state.places) - 1
    mixed = need_low * MIX
    mixed = (mixed ^ (mixed >> 29) ^ need_high) * MIX
    mixed = (mixed ^ (mixed >> 31) ^ done_low) * MIX
    mixed = (mixed ^ (mixed >> 30) ^ done_high) * MIX
    place = (mixed ^ (mixed >> 29)) & last
    while True:
        number = state.places[place]
        if number < 0:
            return place
        label = state.labels[number]
        if label.need_low == need_low and label.need_high == need_high and label.done_low == done_low and label.done_high == done_high:
            return place
        place = (place + 1) & last


@inner
def is_before(one: Row, other: Row) -> bool:
    """The cheaper first; of those that cost the same, the one that is nearer the beginning."""
    return bool(one.cost < other.cost or (one.cost == other.cost and one.ahead < other.ahead))


@inner
def move(source: Row, target: Row) -> None:
    target.cost = source.cost
    target.ahead = source.ahead
    target.label = source.label


@inner
def wait(state: Search, number: int) -> None:
    """Put a label into the heap."""
    totals = state.totals[0]
    if totals.waiting == len(state.waiting):
        totals.full = True
        return
    label = state.labels[number]
    at = totals.waiting
    totals.waiting += 1
    while at:
        above = state.waiting[(at - 1) >> 1]
        if not is_before(label, above):
            break
        move(above, state.waiting[at])
        at = (at - 1) >> 1
    here = state.waiting[at]
    here.cost = label.cost
    here.ahead = label.ahead
    here.label = number


@inner
def next_waiting(state: Search) -> int:
    """Take the cheapest label out of the heap."""
    totals = state.totals[0]
    found = state.waiting[0].label
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
            if is_before(other, lower):
                below += 1
                lower = other
        if not is_before(lower, last):
            break
        move(lower, state.waiting[at])
        at = below
    move(last, state.waiting[at])
    return found


@inner
def fits(state: Search, label: Row, row: Row, limit: int) -> bool:
    """Is there room for what is needed after an operation, what it reads and what it makes?"""
    low = label.need_low | row.reads_low | row.makes_low
    high = label.need_high | row.reads_high | row.makes_high
    return bytes_of(state, low, high) + row.workspace <= limit


@inner
def lead(state: Search, number: int, row: Row, operation: int, price: int, limit: int, dearest: int) -> None:
    """Note what is needed before an operation that leads to a label, unless that does not fit, is too dear or is known more cheaply."""
    totals = state.totals[0]
    after = state.labels[number]
    cost = after.cost + price
    if not fits(state, after, row, limit):
        return
    if cost > dearest:
        if cost < totals.frontier:
            totals.frontier = cost
        return
    need_low = (after.need_low & ~row.makes_low) | row.reads_low
    need_high = (after.need_high & ~row.makes_high) | row.reads_high
    done_low, done_high = after.done_low, after.done_high
    low, high = bit_of(operation)
    done_low |= low
    done_high |= high
    place = place_of(state, need_low, need_high, done_low, done_high)
    found = state.places[place]
    if found < 0:
        found = totals.labels
        if found == len(state.labels):
            totals.full = True
            return
        totals.labels += 1
        state.places[place] = found
        label = state.labels[found]
        label.need_low = need_low
        label.need_high = need_high
        label.done_low = done_low
        label.done_high = done_high
        label.ahead = after.ahead - (operation >= 0)
        label.state = OPEN
    else:
        label = state.labels[found]
        if label.cost <= cost:
            return
    label.cost = cost
    label.then = number
    label.operation = operation
    wait(state, found)


@inner
def is_no_dearer(state: Search, cost: int, need_low: int, need_high: int, done_low: int, done_high: int) -> bool:
    """Is there a settled label with these sets that costs no more?"""
    found = state.places[place_of(state, need_low, need_high, done_low, done_high)]
    if found < 0:
        return False
    other = state.labels[found]
    return bool(other.state != OPEN and other.cost <= cost)


@inner
def is_dominated(state: Search, label: Row) -> bool:
    """Is a label with one value less or one step more no dearer?"""
    need_low, need_high, done_low, done_high = label.need_low, label.need_high, label.done_low, label.done_high
    left = need_low
    while left:
        bit = left & -left
        left ^= bit
        if is_no_dearer(state, label.cost, need_low ^ bit, need_high, done_low, done_high):
            return True
    left = need_high
    while left:
        bit = left & -left
        left ^= bit
        if is_no_dearer(state, label.cost, need_low, need_high ^ bit, done_low, done_high):
            return True
    for step in range(len(state.steps) - 1):
        if is_next(label, state.steps[step]):
            low, high = bit_of(step)
            if is_no_dearer(state, label.cost, need_low, need_high, done_low | low, done_high | high):
                return True
    return False


@inner
def bit_of(step: int) -> tuple[int, int]:
    """Of a recomputation, none."""
    if step < 0:
        return 0, 0
    if step < WORD:
        return 1 << step, 0
    return 0, 1 << (step - WORD)


@inner
def is_next(label: Row, row: Row) -> bool:
    """Has everything that comes after a step been gone back over, and the step itself not?"""
    if row.after_low & ~label.done_low or row.after_high & ~label.done_high:
        return False
    return not is_done(label, row.step)


@inner
def is_done(label: Row, step: int) -> bool:
    if step < 0:
        return False
    if step < WORD:
        return bool((label.done_low >> step) & 1)
    return bool((label.done_high >> (step - WORD)) & 1)


@inner
def undo(state: Search, number: int, row: Row, operation: int) -> int:
    """Go back over an operation that costs nothing, on the way to somewhere: a label that is not looked up."""
    totals = state.totals[0]
    made = totals.labels
    if made == len(state.labels):
        totals.full = True
        return number
    totals.labels += 1
    after, label = state.labels[number], state.labels[made]
    low, high = bit_of(operation)
    label.need_low = (after.need_low & ~row.makes_low) | row.reads_low
    label.need_high = (after.need_high & ~row.makes_high) | row.reads_high
    label.done_low = after.done_low | low
    label.done_high = after.done_high | high
    label.cost = after.cost
    label.ahead = after.ahead - (operation >= 0)
    label.then = number
    label.operation = operation
    label.state = DOMINATED
    return made


@inner
def undo_maker(state: Search, number: int, low: int, high: int, limit: int) -> int:
    """Go back over a step, or a recomputation for nothing, that makes some of these values and fits; -1 if there is none."""
    label = state.labels[number]
    for step in range(len(state.steps) - 1):
        row = state.steps[step]
        if (row.makes_low & low or row.makes_high & high) and is_next(label, row) and fits(state, label, row, limit):
            return undo(state, number, row, step)
    for operation in range(len(state.again)):
        row = state.again[operation]
        is_free = not row.price and not is_done(label, row.step)
        if is_free and (row.makes_low & low or row.makes_high & high) and fits(state, label, row, limit):
            return undo(state, number, row, -1 - operation)
    return -1


@inner
def free_steps(state: Search, number: int, limit: int) -> int:
    """Steps before which nothing is needed that is not needed anyway, gone back over: that is never worse than doing so later. -1 if there
    are none."""
    totals = state.totals[0]
    label = state.labels[number]
    room = totals.labels
    for first in range(len(state.steps) - 1):
        if not is_next(label, state.steps[first]) or not fits(state, label, state.steps[first], limit):
            continue
        at = undo(state, number, state.steps[first], first)
        for _ in range(MOST_BITS):
            now = state.labels[at]
            more_low, more_high = now.need_low & ~label.need_low, now.need_high & ~label.need_high
            if totals.full or not (more_low or more_high):
                return -1 if totals.full else at
            at = undo_maker(state, at, more_low, more_high, limit)
            if at < 0:
                break
        totals.labels = room
    return -1


@inner
def expand(state: Search, number: int, limit: int, dearest: int) -> None:
    """Everything that may come right before what a label stands for."""
    free = free_steps(state, number, limit)
    if free >= 0:
        enter(state, free)
        return
    label = state.labels[number]
    for step in range(len(state.steps)):
        row = state.steps[step]
        if is_next(label, row):
            lead(state, number, row, step, 0, limit, dearest)
    for operation in range(len(state.again)):
        row = state.again[operation]
        if (row.makes_low & label.need_low or row.makes_high & label.need_high) and not is_done(label, row.step):
            lead(state, number, row, -1 - operation, row.price, limit, dearest)


@inner
def enter(state: Search, number: int) -> None:
    """Let a label that was made on the way be looked up, unless one with its sets is known that is no dearer."""
    label = state.labels[number]
    place = place_of(state, label.need_low, label.need_high, label.done_low, label.done_high)
    found = state.places[place]
    if found >= 0 and state.labels[found].cost <= label.cost:
        return
    state.places[place] = number
    label.state = OPEN
    wait(state, number)


@outer
def set_labels(state: Search, need_low: int, need_high: int, limit: int, dearest: int) -> None:
    """From what is needed at the end back to the last of the steps, which comes first in time: labels that are done with it are not gone
    back from any further. What was not settled costs `frontier` or more."""
    totals = state.totals[0]
    label = state.labels[0]
    label.need_low = need_low
    label.need_high = need_high
    label.then = -1
    label.operation = len(state.steps)
    label.ahead = len(state.steps)
    totals.labels = 1
    totals.frontier = 1 << 62
    state.places[place_of(state, need_low, need_high, 0, 0)] = 0
    wait(state, 0)
    last = len(state.steps) - 1
    while totals.waiting:
        number = next_waiting(state)
        label = state.labels[number]
        if label.state != OPEN:
            continue
        label.state = SETTLED
        if is_dominated(state, label):
            label.state = DOMINATED
        elif not is_done(label, last):
            expand(state, number, limit, dearest)
            if totals.full:
                if label.cost < totals.frontier:
                    totals.frontier = label.cost
                return
