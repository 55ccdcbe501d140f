"""The moves of the search over sequences, compiled: recomputations are put in, taken out and moved, one or a few at a time.

Every state is a valid sequence. A move is a step or several; the last one is only tried. Few functions, called from few places: numba
compiles a function again into every one that calls it.
"""

from __future__ import annotations

import math

from ..jit.basics import pick, scale, uniform
from ..jit.compile import inner, outer
from ..params import PARAMS
from .splice_space import Splice
from .splice_steps import INSERTION, REMOVAL, SHIFT, attempt, carry_out, copy_before, last_read, next_read, note, undo

LOOKS = PARAMS.looks


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
    if totals.over > 0.0:
        begin = pick(totals) % totals.length
        for step in range(totals.length):
            place = begin + step if begin + step < totals.length else begin + step - totals.length
            if state.memory[place] > totals.limit:
                crowded = place
                break
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
    """A first computation is to be made earlier or later, as far as its inputs and readers let it, or nearly so far.

    All the way: what nobody reads, such as the gradient of a weight, is best made at the very end if it is larger than what it is made of.
    """
    totals = state.totals[0]
    place = pick(totals) % totals.length
    operation = state.sequence[place]
    if copy_before(state, operation, place) >= 0:
        return False
    row = state.operations[operation]
    distance = scale(totals, totals.length) if pick(totals) % 4 else totals.length
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
                totals.longest = len(state.steps) >> 1
            return True
    if not relieve(state):
        return False
    if pick(totals) % 2:
        totals.longest = scale(totals, len(state.steps) >> 1)
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
        totals.longest = 1 + scale(totals, len(state.steps) >> 1)
        totals.expanded = 1


@inner
def possible(state: Splice) -> bool:
    """Can the next step be taken, and can the move pay for it?"""
    totals = state.totals[0]
    if totals.kind != INSERTION:
        return True
    row = state.operations[totals.operation]
    if row.pinned or row.copies == state.where.shape[1] or totals.target > totals.length or totals.cost + row.cost > totals.affordable:
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


@inner
def lower(state: Splice) -> None:
    """What fits shall take less: a little less than the peak."""
    totals = state.totals[0]
    peak = 0.0
    for place in range(totals.length):
        peak = max(peak, state.memory[place])
    totals.limit = max(totals.goal, math.floor(min(peak - 1.0, peak * (1.0 - totals.fall))))
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
        if totals.over < 1.0 and (totals.cost < totals.best_cost or totals.fall > 0.0):
            totals.best_cost = totals.cost
            totals.best_length = totals.length
            for place in range(totals.length):
                state.best[place] = state.sequence[place]
            if totals.fall > 0.0:
                if totals.limit <= totals.goal:
                    return
                lower(state)
