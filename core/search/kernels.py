"""The compiled kernels of the search: stages, moves, proposals, annealing.

All in one file: numba's cache looks at the date of the file a function is in and not at those it calls.

Stages are evaluated in ascending order. What a stage recomputes may be held from there on, which touches later stages, never earlier
ones; so one pass over the touched stages brings everything up to date.
"""

from __future__ import annotations

import math

from ..jit.basics import pick, sort, uniform
from ..jit.compile import inner, outer
from ..jit.tables import Ints, Row
from .space import LOG, State

IMPOSSIBLE = 1e30
"""The cost of recomputing what cannot be recomputed: no move that needs it is ever taken."""


@inner
def gap_at(state: State, value: int, stage: int) -> int:
    """The gap of a value that a stage lies in, or -1."""
    row = state.values[value]
    if row.seen_gap >= 0:
        gap = state.gaps[row.seen_gap]
        if gap.low < stage <= gap.high:
            return row.seen_gap
    for number in range(row.gap_start, row.gap_end):
        gap = state.gaps[number]
        if stage <= gap.high:
            row.seen_gap = number if gap.low < stage else -1
            return row.seen_gap
    return -1


@inner
def present(state: State, value: int, stage: int) -> bool:
    return (state.present[value, stage >> 6] >> (stage & 63)) & 1 != 0


@outer
def recomputed(state: State, stage: int) -> int:
    """Collect into `chosen`, ascending, what a stage recomputes; how many, or -1 if something cannot be recomputed."""
    totals = state.totals[0]
    stamp = totals.stamp + 1
    totals.stamp = stamp
    first = state.stages[stage].first
    found = 0
    waiting = state.stages[stage].end - first
    for position in range(waiting):
        state.stack[position] = first + position
    while waiting:
        waiting -= 1
        reader = state.stack[waiting]
        operation = state.operations[reader]
        if reader < first:
            if operation.pinned:
                return -1
            state.chosen[found] = reader
            found += 1
        for index in range(operation.input_start, operation.input_end):
            value = state.links[index]
            producer = state.values[value].producer
            if producer < first and not present(state, value, stage):
                maker = state.operations[producer]
                if maker.mark != stamp:
                    maker.mark = stamp
                    state.stack[waiting] = producer
                    waiting += 1
    if found > 1:
        sort(state.chosen, found, state.stack)
    return found


@inner
def weigh(state: State, number: int, found: int) -> None:
    """Set cost, memory and signature of a stage that recomputes the first `found` of `chosen`."""
    stamp = state.totals[0].stamp
    stage = state.stages[number]
    reads = 0
    steps = found + stage.end - stage.first
    for step in range(found, steps):
        state.chosen[step] = stage.first + step - found
    for step in range(steps):
        operation = state.operations[state.chosen[step]]
        for index in range(operation.input_start, operation.input_end):
            read = state.links[index]
            value = state.values[read]
            value.last_read = step
            value.read_stamp = stamp
            reads |= 1 << (read & 63)
    spent = 0.0
    extra = 0
    most = 0
    for step in range(steps):
        operation = state.operations[state.chosen[step]]
        if step < found:
            spent += operation.cost
        for index in range(operation.output_start, operation.output_end):
            made = state.links[index]
            reads |= 1 << (made & 63)
            if not present(state, made, number):
                extra += state.values[made].size
        if extra + operation.workspace > most:
            most = extra + operation.workspace
        for index in range(operation.input_start, operation.input_end):
            read = state.links[index]
            value = state.values[read]
            if value.last_read == step and not present(state, read, number + 1):
                extra -= value.size
        for index in range(operation.output_start, operation.output_end):
            made = state.links[index]
            value = state.values[made]
            if value.read_stamp != stamp and not present(state, made, number + 1):
                extra -= value.size
    stage.spent = spent
    stage.extra = most
    stage.reads = reads


@inner
def over(totals: Row, stage: Row) -> float:
    """By how much of the available memory a stage exceeds it."""
    excess = stage.held + stage.extra - totals.available
    return excess / totals.unit if excess > 0 else 0.0


@outer
def reset(state: State) -> None:
    """Evaluate everything from what was chosen for the gaps."""
    for value in range(state.present.shape[0]):
        for word in range(state.present.shape[1]):
            state.present[value, word] = 0
    for number in range(len(state.stages)):
        stage = state.stages[number]
        stage.held = 0
        stage.extra = 0
        stage.spent = 0.0
        state.operations[number].first_back = -1
    for number in range(len(state.gaps)):
        gap = state.gaps[number]
        gap.back = gap.until
        size = state.values[gap.value].size
        for covered in range(gap.low + 1, gap.stay + 1):
            state.stages[covered].held += size
            state.present[gap.value, covered >> 6] |= 1 << (covered & 63)
    recount(state)
    for number in range(len(state.stages)):
        _evaluate(state, number)
        commit(state.totals[0])
    for word in range(len(state.dirty)):
        state.dirty[word] = 0
    recount(state)


@inner
def recount(state: State) -> None:
    """Add the totals up afresh: they drift by rounding over millions of moves."""
    totals = state.totals[0]
    cost = 0.0
    excess = 0.0
    for number in range(len(state.stages)):
        stage = state.stages[number]
        cost += stage.spent
        excess += over(totals, stage)
    totals.cost = cost
    totals.over = excess


@inner
def set_gap(state: State, number: int, stay: int, hold: bool, until: int) -> None:
    """Choose for one gap. `refresh` must follow, once for any number of gaps."""
    _place(state, number, stay, hold, until, until)
    gap = state.gaps[number]
    bit = 1 << (gap.value & 63)
    for stage in range(gap.low, gap.high + 1):
        if state.stages[stage].reads & bit:
            state.dirty[stage >> 6] |= 1 << (stage & 63)


@inner
def refresh(state: State, low: int) -> None:
    """Evaluate the touched stages from `low` on, in order."""
    for word in range(low >> 6, len(state.dirty)):
        if state.dirty[word]:
            for stage in range(word << 6, (word << 6) + 64):
                bit = 1 << (stage & 63)
                if state.dirty[word] & bit:
                    _evaluate(state, stage)
                    state.dirty[word] &= ~bit


@inner
def _place(state: State, number: int, stay: int, hold: bool, until: int, back: int) -> None:
    """Set a gap and what follows for memory at the start of its stages; log how it was; mark the stages this touches."""
    totals = state.totals[0]
    gap = state.gaps[number]
    old_stay = gap.stay
    old_until = gap.until
    old_back = gap.back
    if totals.changed_gaps < LOG:
        old = state.changed_gaps[totals.changed_gaps]
        old.gap = number
        old.stay = old_stay
        old.hold = gap.hold
        old.until = old_until
        old.back = old_back
    totals.changed_gaps += 1
    _choose(state, number, stay, hold, until, back)
    size = state.values[gap.value].size
    bit = 1 << (gap.value & 63)
    for position in range((stay if stay < old_stay else old_stay) + 1, (until if until > old_until else old_until) + 1):
        after = position <= stay or back < position <= until
        if after != (position <= old_stay or old_back < position <= old_until):
            stage = state.stages[position]
            totals.over -= over(totals, stage)
            stage.held += size if after else -size
            totals.over += over(totals, stage)
            if stage.reads & bit:
                state.dirty[position >> 6] |= 1 << (position & 63)
            if state.stages[position - 1].reads & bit:
                state.dirty[(position - 1) >> 6] |= 1 << ((position - 1) & 63)
            state.present[gap.value, position >> 6] ^= 1 << (position & 63)


@inner
def _choose(state: State, number: int, stay: int, hold: bool, until: int, back: int) -> None:
    """Enter the choice for a gap, and the gap into the list of the stage from which its value is held again."""
    gap = state.gaps[number]
    if gap.back < gap.until:
        if gap.previous_back >= 0:
            state.gaps[gap.previous_back].next_back = gap.next_back
        else:
            state.operations[gap.back].first_back = gap.next_back
        if gap.next_back >= 0:
            state.gaps[gap.next_back].previous_back = gap.previous_back
    gap.stay = stay
    gap.hold = hold
    gap.until = until
    gap.back = back
    if back < until:
        head = state.operations[back].first_back
        gap.next_back = head
        gap.previous_back = -1
        if head >= 0:
            state.gaps[head].previous_back = number
        state.operations[back].first_back = number


@inner
def _evaluate(state: State, number: int) -> None:
    """Evaluate a stage anew and let what it recomputes be held from there on, or no longer."""
    totals = state.totals[0]
    stage = state.stages[number]
    if totals.changed_stages < LOG:
        old = state.changed_stages[totals.changed_stages]
        old.stage = number
        old.extra = stage.extra
        old.spent = stage.spent
        old.reads = stage.reads
    totals.changed_stages += 1
    found = recomputed(state, number)
    totals.cost -= stage.spent
    if found < 0:
        stage.spent = IMPOSSIBLE
        totals.cost += IMPOSSIBLE
        return
    follow = state.operations[number].first_back
    while follow >= 0:
        gap = state.gaps[follow]
        following = gap.next_back
        if state.operations[state.values[gap.value].producer].mark != totals.stamp:
            _place(state, follow, gap.stay, gap.hold, gap.until, gap.until)
        follow = following
    for step in range(found):
        operation = state.operations[state.chosen[step]]
        for index in range(operation.output_start, operation.output_end):
            made = gap_at(state, state.links[index], number)
            if made >= 0:
                gap = state.gaps[made]
                if gap.hold and gap.stay < number < gap.back:
                    _place(state, made, gap.stay, gap.hold, gap.until, number)
        for index in range(operation.input_start, operation.input_end):
            read = gap_at(state, state.links[index], number)
            if read >= 0:
                state.gaps[read].seen_read = number
    totals.over -= over(totals, stage)
    weigh(state, number, found)
    totals.over += over(totals, stage)
    totals.cost += stage.spent


@inner
def commit(totals: Row) -> None:
    totals.changed_gaps = 0
    totals.changed_stages = 0


@inner
def roll_back(state: State, cost: float, excess: float) -> None:
    """Undo everything since the last commit; the totals are given back exactly, so that rounding never adds up."""
    totals = state.totals[0]
    for entry in range(totals.changed_gaps - 1, -1, -1):
        old = state.changed_gaps[entry]
        gap = state.gaps[old.gap]
        size = state.values[gap.value].size
        for position in range((gap.stay if gap.stay < old.stay else old.stay) + 1, (gap.until if gap.until > old.until else old.until) + 1):
            after = position <= old.stay or old.back < position <= old.until
            if after != (position <= gap.stay or gap.back < position <= gap.until):
                state.stages[position].held += size if after else -size
                state.present[gap.value, position >> 6] ^= 1 << (position & 63)
        _choose(state, old.gap, old.stay, old.hold, old.until, old.back)
    for entry in range(totals.changed_stages - 1, -1, -1):
        was = state.changed_stages[entry]
        stage = state.stages[was.stage]
        stage.extra = was.extra
        stage.spent = was.spent
        stage.reads = was.reads
    totals.cost = cost
    totals.over = excess
    commit(totals)


@inner
def change(state: State, number: int) -> None:
    """A random change of one gap, of the kinds that tend to help in its present state."""
    gap = state.gaps[number]
    kind = pick(state.totals[0]) % 8
    seen = gap.low < gap.seen_read < gap.high
    stay = gap.low
    hold = gap.hold
    until = gap.high
    if gap.stay == gap.high:
        hold = kind % 2 == 0
        if kind == 7 and seen:
            stay = gap.seen_read
    elif kind < 3:
        stay = gap.high
        hold = False
    elif kind < 6 or not seen:
        hold = not hold
    elif kind == 6:
        stay = gap.seen_read
    else:
        hold = True
        until = gap.seen_read
    set_gap(state, number, stay, hold, until)


@inner
def related(state: State, number: int) -> int:
    """A gap that matters to this one: of an input of the operation that makes the value, or of a value beside it, at the same time."""
    totals = state.totals[0]
    gap = state.gaps[number]
    stage = gap.high
    if pick(totals) % 2:
        stage = gap.low + 1 + pick(totals) % (gap.high - gap.low)
    reader = state.operations[state.values[gap.value].producer]
    if reader.input_start == reader.input_end or pick(totals) % 4 == 0:
        reader = state.operations[state.stages[stage].first + pick(totals) % (state.stages[stage].end - state.stages[stage].first)]
        if reader.input_start == reader.input_end:
            return -1
    value = state.values[state.links[reader.input_start + pick(totals) % (reader.input_end - reader.input_start)]]
    for index in range(value.gap_start, value.gap_end):
        other = state.gaps[index]
        if index != number and other.low < stage <= other.high and other.may_move:
            return index
    return -1


@inner
def held_in(state: State, stage: int) -> int:
    """A random movable gap whose value is in memory at the start of a stage, by a few tries; -1 if none turns up."""
    for _ in range(24):
        number = state.movable[pick(state.totals[0]) % len(state.movable)]
        gap = state.gaps[number]
        if gap.low < stage <= gap.high and present(state, gap.value, stage):
            return number
    return -1


@inner
def fullest(state: State) -> int:
    """The stage that exceeds the available memory by most."""
    totals = state.totals[0]
    full = 0
    for number in range(len(state.stages)):
        if over(totals, state.stages[number]) > over(totals, state.stages[full]):
            full = number
    return full


@outer
def anneal(
    state: State, best: Ints, best_cost: float, moves: int, hot: float, cold: float, price: float, reference: float
) -> tuple[float, float]:
    """Try `moves` changes while the temperature falls from hot to cold. `best` (3 rows: stay, hold, until) and the returned cost are of the
    cheapest state that fits; the price of excess memory adapts. Temperatures and the price are relative to `reference`."""
    totals = state.totals[0]
    full = -1
    for move in range(moves):
        temperature = hot * math.pow(cold / hot, move / moves) * reference
        if move % 512 == 0:
            recount(state)
            price *= 1.15 if totals.over > 0 else 0.9
            full = fullest(state)
        before_cost = totals.cost
        before_over = totals.over
        number = -1
        if before_over > 0 and pick(totals) % 3 == 0:
            number = held_in(state, full)
        if number < 0:
            number = state.movable[pick(totals) % len(state.movable)]
        low = state.gaps[number].low
        change(state, number)
        for _ in range(2):
            if pick(totals) % 5 >= 2:
                break
            number = related(state, number)
            if number < 0:
                break
            low = state.gaps[number].low if state.gaps[number].low < low else low
            change(state, number)
        refresh(state, low)
        if totals.changed_gaps > LOG or totals.changed_stages > LOG:
            for index in range(len(state.gaps)):
                gap = state.gaps[index]
                gap.stay = best[0, index]
                gap.hold = best[1, index] != 0
                gap.until = best[2, index]
            reset(state)
            continue
        worse = totals.cost - before_cost + price * reference * (totals.over - before_over)
        if worse > 0 and (temperature <= 0 or uniform(totals) >= math.exp(-worse / temperature)):
            roll_back(state, before_cost, before_over)
            continue
        commit(totals)
        if totals.over <= 1e-9 and totals.cost < best_cost - 1e-12 * reference:
            recount(state)
            if totals.over == 0.0 and totals.cost < best_cost - 1e-12 * reference:
                best_cost = totals.cost
                for index in range(len(state.gaps)):
                    gap = state.gaps[index]
                    best[0, index] = gap.stay
                    best[1, index] = gap.hold
                    best[2, index] = gap.until
    return best_cost, price
