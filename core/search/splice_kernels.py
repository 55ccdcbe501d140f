"""The compiled kernels of the search over sequences: recomputations are put in, taken out and moved, one or a few at a time.

All in one file: numba's cache looks at the date of the file a function is in and not at those it calls. Few functions, called from few
places: numba compiles a function again into every one that calls it.

Every state is a valid sequence. What a computation reads must stay in memory until it runs, and what it makes need not be there before:
a step changes memory over a few ranges of places, and nothing else. A move is a step or several. The last one is only tried: memory says
what it would be, and is most often set back.
"""

from __future__ import annotations

import math

from .basics import pick, uniform
from .compile import inner, outer
from .splice_space import COPIES, LONGEST, Splice
from .tables import Row

LOOKS = 8
"""Tries to find what a move is looking for."""
NOTHING = 0
INSERTION = 1
REMOVAL = 2
SHIFT = 3
"""What a step does: recompute at a place, no longer recompute there, take a first computation from a place to another."""


@inner
def scale(totals: Row, limit: int) -> int:
    """A number from 1 to about `limit`, small ones more likely than large ones."""
    bits = 1
    while limit >> bits:
        bits += 1
    first = pick(totals) % bits
    second = pick(totals) % bits
    return 1 + pick(totals) % (1 << (first if first < second else second))


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
def follow(state: Splice) -> bool:
    """The next step of a move: what the recomputation put in needs and is held for it alone, or was made for the one taken out alone."""
    totals = state.totals[0]
    forever = totals.length + 1
    while totals.expanded < totals.steps <= totals.longest:
        step = state.steps[totals.expanded]
        row = state.operations[step.operation]
        here = step.now
        while row.reads + totals.input < row.reads_end:
            value = state.links[row.reads + totals.input]
            totals.input += 1
            producer = state.values[value].producer
            maker = state.operations[producer]
            made = copy_before(state, producer, here)
            if step.inserted:
                held = (pick(totals) % LOOKS > 0) == maker.large and last_read(state, value, made, forever) == here
                if held and here - last_read(state, value, made, here) > 1:
                    totals.kind = INSERTION
                    totals.operation = producer
                    totals.target = here
                    return True
                continue
            idle = maker.copies > 1 and copy_before(state, producer, made) >= 0
            for index in range(maker.makes, maker.makes_end):
                idle = idle and last_read(state, state.links[index], made, forever) == made
            if idle:
                totals.kind = REMOVAL
                totals.operation = producer
                totals.place = made
                return True
        totals.expanded += 1
        totals.input = 0
    return False


@inner
def relieve(state: Splice) -> bool:
    """What is in memory only to be read later is to be recomputed for that: preferably where there is too little memory."""
    totals = state.totals[0]
    crowded = -1
    looks = 4 * LOOKS if totals.over > 0.0 else 0
    while looks:
        looks -= 1
        place = pick(totals) % totals.length
        if state.memory[place] > totals.limit:
            crowded = place
            looks = 0
    for _ in range(LOOKS):
        operation = state.large[pick(totals) % len(state.large)]
        row = state.operations[operation]
        value = state.links[row.makes + pick(totals) % (row.makes_end - row.makes)]
        since = crowded
        made = copy_before(state, operation, crowded)
        if crowded < 0:
            made = state.where[operation, pick(totals) % row.copies]
            since = last_read(state, value, made, made + 1 + pick(totals) % (totals.length - made))
        if made < 0:
            continue
        last = last_read(state, value, made, totals.length + 1)
        if last <= since:
            continue
        target = next_read(state, value, since, last)
        if crowded < 0 and target - since < 2:
            continue
        if target - since > 1 and pick(totals) % LOOKS == 0:
            target -= scale(totals, target - since - 1)
        totals.kind = INSERTION
        totals.operation = operation
        totals.target = target
        return True
    return False


@inner
def reorder(state: Splice) -> bool:
    """A first computation is to be made earlier or later, as far as its inputs and readers let it."""
    totals = state.totals[0]
    place = pick(totals) % totals.length
    operation = state.sequence[place]
    if copy_before(state, operation, place) >= 0:
        return False
    row = state.operations[operation]
    distance = scale(totals, totals.length)
    if pick(totals) % 2:
        target = max(0, place - distance)
        for index in range(row.reads, row.reads_end):
            producer = state.values[state.links[index]].producer
            first = place
            for number in range(state.operations[producer].copies):
                first = min(first, state.where[producer, number])
            target = max(target, first + 1)
    else:
        target = min(place + 1 + distance, totals.length)
        for number in range(row.copies):
            if state.where[operation, number] > place:
                target = min(target, state.where[operation, number])
        for index in range(row.makes, row.makes_end):
            target = next_read(state, state.links[index], place, target)
    totals.kind = SHIFT
    totals.operation = operation
    totals.place = place
    totals.target = target
    return target < place or target > place + 1


@inner
def choose(state: Splice, free: bool) -> bool:
    """The first step of a random move, and what may follow: False if nothing comes of it."""
    totals = state.totals[0]
    totals.longest = 0
    totals.again = -1
    totals.expanded = 0
    totals.input = 0
    if free and pick(totals) % 2:
        return reorder(state)
    way = pick(totals) % 8
    looks = 4 * LOOKS if way > 3 else 0
    while looks:
        looks -= 1
        place = pick(totals) % totals.length
        operation = state.sequence[place]
        if state.operations[operation].copies > 1 and copy_before(state, operation, place) >= 0:
            totals.kind = REMOVAL
            totals.operation = operation
            totals.place = place
            if way > 5:
                totals.again = place
            elif pick(totals) % 2:
                totals.longest = LONGEST
            return True
    if not relieve(state):
        return False
    if pick(totals) % 2:
        totals.longest = scale(totals, LONGEST)
    return True


@inner
def elsewhere(state: Splice) -> None:
    """A recomputation that was taken out is to be put in at another place: anywhere near, or right before somebody reads it."""
    totals = state.totals[0]
    operation = totals.operation
    place = totals.again
    row = state.operations[operation]
    totals.again = -1
    way = pick(totals) % 4
    if way < 2:
        value = state.links[row.makes + pick(totals) % (row.makes_end - row.makes)]
        totals.target = next_read(state, value, place - 1 if way else copy_before(state, operation, place), totals.length)
    elif way == 2:
        totals.target = place + scale(totals, totals.length)
    else:
        totals.target = place - scale(totals, totals.length)
    totals.kind = INSERTION
    if pick(totals) % 4 == 0:
        totals.longest = 1 + scale(totals, LONGEST)
        totals.expanded = 1


@inner
def possible(state: Splice) -> bool:
    """Can the next step be taken, and can the move pay for it?"""
    totals = state.totals[0]
    if totals.kind != INSERTION:
        return True
    row = state.operations[totals.operation]
    if row.pinned or row.copies == COPIES or totals.target > totals.length or totals.cost + row.cost > totals.affordable:
        return False
    return copy_before(state, totals.operation, totals.target) >= 0


@inner
def move(state: Splice, free: bool) -> bool:
    """Carry out a random move but for its last step, which is only tried. False if it came to nothing."""
    totals = state.totals[0]
    going = choose(state, free)
    while going and possible(state):
        if not attempt(state):
            return False
        if totals.again < 0 and totals.steps >= totals.longest:
            return True
        note(state)
        carry_out(state)
        if totals.again >= 0:
            elsewhere(state)
        elif not follow(state):
            return True
    return False


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


@outer
def reset(state: Splice) -> None:
    """Evaluate everything from the sequence."""
    totals = state.totals[0]
    for number in range(len(state.operations)):
        state.operations[number].copies = 0
    totals.cost = 0.0
    for place in range(totals.length):
        operation = state.sequence[place]
        row = state.operations[operation]
        state.where[operation, row.copies] = place
        row.copies += 1
        totals.cost += row.cost
        state.memory[place] = row.workspace
    for place in range(totals.length):
        row = state.operations[state.sequence[place]]
        for index in range(row.makes, row.makes_end):
            value = state.links[index]
            until = last_read(state, value, place, totals.length + 1)
            for at in range(place, min(until, totals.length - 1) + 1):
                state.memory[at] += state.values[value].size
    totals.over = 0.0
    for place in range(totals.length):
        if state.memory[place] > totals.limit:
            totals.over += state.memory[place] - totals.limit


@outer
def anneal(state: Splice, moves: int, hot: float, cold: float, cheap: float, dear: float, free: bool) -> None:
    """Try `moves` moves while the temperature falls from hot to cold and the price of all memory too much, at one place, rises.

    All three in units of cost.
    """
    totals = state.totals[0]
    for number in range(moves):
        part = number / moves
        price = cheap * math.pow(dear / cheap, part) / totals.limit
        allowed = -hot * math.pow(cold / hot, part) * math.log(1.0 - uniform(totals))
        cost = totals.cost
        over = totals.over
        totals.affordable = cost + allowed + over * price
        taken = move(state, free)
        if taken:
            worse = totals.cost - cost + (totals.over - over) * price
            if totals.kind == INSERTION:
                worse += state.operations[totals.operation].cost
            elif totals.kind == REMOVAL:
                worse -= state.operations[totals.operation].cost
            taken = worse <= allowed
        if not taken:
            undo(state)
            totals.over = over
            totals.cost = cost
            continue
        if totals.kind:
            carry_out(state)
        totals.steps = 0
        if totals.over < 1.0 and totals.cost < totals.best_cost:
            totals.best_cost = totals.cost
            totals.best_length = totals.length
            for place in range(totals.length):
                state.best[place] = state.sequence[place]
