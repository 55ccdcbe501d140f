"""What a choice for the gaps means for the stages, compiled: what each recomputes, what that costs, and how to take a choice back.

numba's cache does not notice a change here in what `stage_kernels.py` calls: after one, remove `__pycache__`.

Stages are evaluated in ascending order. What a stage recomputes may be held from there on, which touches later stages, never earlier
ones; so one pass over the touched stages brings everything up to date.
"""

from __future__ import annotations

from ..jit.basics import sort
from ..jit.compile import inner, outer
from ..jit.tables import Row
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
