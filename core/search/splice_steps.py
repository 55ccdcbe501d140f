"""The steps of the search over sequences, compiled: a recomputation put in or taken out, a first computation moved.

What a computation reads must stay in memory until it runs, and what it makes need not be there before: a step changes memory over a few
ranges of places, and nothing else. It is tried first: memory says what it would be, and is most often set back.

numba's cache does not notice a change here: after one, remove `__pycache__`.
"""

from __future__ import annotations

from ..jit.compile import inner
from .splice_space import Splice

NOTHING = 0
INSERTION = 1
REMOVAL = 2
SHIFT = 3
"""What a step does: recompute at a place, no longer recompute there, take a first computation from a place to another."""


@inner
def copy_before(state: Splice, operation: int, place: int) -> int:
    """The last place before this one where an operation is computed, or -1."""
    found = -1
    for number in range(state.operations[operation].copies):
        at = state.where[operation, number]
        if at < place and at > found:
            found = at
    return found


@inner
def next_read(state: Splice, value: int, begin: int, end: int) -> int:
    """The first place between two (both excluded) where a value is read; the second of them if none is."""
    found = end
    row = state.values[value]
    for index in range(row.users, row.users_end):
        user = state.links[index]
        for number in range(state.operations[user].copies):
            at = state.where[user, number]
            if begin < at < found:
                found = at
    return found


@inner
def last_read(state: Splice, value: int, made: int, before: int) -> int:
    """The last place before another where the copy of a value made at a place is read; where it was made if nowhere.

    The end, behind all places, for what is never freed.
    """
    row = state.values[value]
    maker = state.operations[row.producer]
    until = before
    for number in range(maker.copies):
        at = state.where[row.producer, number]
        if made < at < until:
            until = at
    if row.kept and until > state.totals[0].length:
        return state.totals[0].length
    found = made
    for index in range(row.users, row.users_end):
        user = state.links[index]
        for number in range(state.operations[user].copies):
            at = state.where[user, number]
            if found < at < until:
                found = at
    return found


@inner
def add(state: Splice, first: int, final: int, size: float) -> None:
    """Memory changes by so much at these places, both included. Remembered, so that it can be taken back."""
    if final < first or size == 0.0:
        return
    totals = state.totals[0]
    limit = totals.limit
    change = 0.0
    for place in range(first, final + 1):
        old = state.memory[place]
        new = old + size
        state.memory[place] = new
        if new > limit:
            change += new - limit
        if old > limit:
            change -= old - limit
    totals.over += change
    row = state.changes[totals.changes]
    row.first = first
    row.final = final
    row.size = size
    totals.changes += 1


@inner
def attempt(state: Splice) -> bool:
    """Set memory to what it would be after a step, but for what moves places. False if nobody would read what is recomputed."""
    totals = state.totals[0]
    kind = totals.kind
    place = totals.place if kind != INSERTION else -1
    target = totals.target if kind != REMOVAL else place
    row = state.operations[totals.operation]
    forever = totals.length + 1
    if kind != INSERTION:
        if state.memory[place] > totals.limit:
            totals.over -= state.memory[place] - totals.limit
        for index in range(row.reads, row.reads_end):
            value = state.links[index]
            made = copy_before(state, state.values[value].producer, place)
            if last_read(state, value, made, forever) == place:
                add(state, last_read(state, value, made, place) + 1, place - 1, -state.values[value].size)
    before = copy_before(state, totals.operation, target) if kind != SHIFT else place
    elsewhere = 0.0
    useful = kind != INSERTION
    for index in range(row.makes, row.makes_end):
        value = state.links[index]
        size = state.values[value].size
        if kind == REMOVAL:
            if last_read(state, value, place, forever) > place:
                add(state, last_read(state, value, before, place) + 1, place - 1, size)
            continue
        until = last_read(state, value, before, forever)
        if kind == INSERTION:
            if until >= target:
                useful = True
                elsewhere += size
                add(state, last_read(state, value, before, target) + 1, target - 1, -size)
        elif until > place:
            elsewhere += size
            if target < place:
                add(state, target, place - 1, size)
            else:
                add(state, place + 1, target - 1, -size)
    if kind == REMOVAL:
        return True
    own = totals.outputs - elsewhere
    if target < totals.length:
        here = state.operations[state.sequence[target]]
        own = state.memory[target] - here.made - here.workspace - elsewhere
    for index in range(row.reads, row.reads_end):
        value = state.links[index]
        made = copy_before(state, state.values[value].producer, target)
        until = last_read(state, value, made, forever)
        if until == place:
            until = last_read(state, value, made, place)
        if until < target:
            size = state.values[value].size
            own += size
            if until < place < target:
                add(state, until + 1, place - 1, size)
                until = place
            add(state, until + 1, target - 1, size)
    totals.own = own + row.made + row.workspace
    if totals.own > totals.limit:
        totals.over += totals.own - totals.limit
    return useful


@inner
def carry_out(state: Splice) -> None:
    """Do the step that was tried: what stands behind it moves places."""
    totals = state.totals[0]
    kind = totals.kind
    operation = totals.operation
    row = state.operations[operation]
    target = totals.target
    at = totals.place if kind != INSERTION else totals.length
    number = 0
    if kind == INSERTION:
        number = row.copies
        row.copies += 1
        totals.length += 1
        totals.cost += row.cost
    else:
        while state.where[operation, number] != at:
            number += 1
    if kind == REMOVAL:
        row.copies -= 1
        totals.length -= 1
        totals.cost -= row.cost
        state.where[operation, number] = state.where[operation, row.copies]
        target = totals.length
    elif target > at:
        target -= 1
    step = 1 if target > at else -1
    while at != target:
        moved = state.sequence[at + step]
        state.sequence[at] = moved
        state.memory[at] = state.memory[at + step]
        copy = 0
        while state.where[moved, copy] != at + step:
            copy += 1
        state.where[moved, copy] = at
        at += step
    if kind != REMOVAL:
        state.sequence[target] = operation
        state.memory[target] = totals.own
        state.where[operation, number] = target
    totals.changes = 0
    totals.kind = NOTHING


@inner
def note(state: Splice) -> None:
    """Another step follows in this move: how to undo the last one, and where what the steps so far were about is now."""
    totals = state.totals[0]
    inserted = totals.kind == INSERTION
    place = totals.target if inserted else totals.place
    for number in range(totals.steps):
        earlier = state.steps[number]
        if inserted and earlier.now >= place:
            earlier.now += 1
        elif not inserted and earlier.now > place:
            earlier.now -= 1
    step = state.steps[totals.steps]
    step.operation = totals.operation
    step.place = place
    step.now = place
    step.inserted = inserted
    totals.steps += 1


@inner
def undo(state: Splice) -> None:
    """Back to before the move. The caller knows what was over and what it cost."""
    totals = state.totals[0]
    totals.kind = NOTHING
    while totals.changes:
        totals.changes -= 1
        row = state.changes[totals.changes]
        for place in range(row.first, row.final + 1):
            state.memory[place] -= row.size
    while totals.steps:
        totals.steps -= 1
        step = state.steps[totals.steps]
        totals.kind = REMOVAL if step.inserted else INSERTION
        totals.operation = step.operation
        totals.place = step.place
        totals.target = step.place
        attempt(state)
        carry_out(state)
