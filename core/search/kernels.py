"""The compiled kernels of the search: stages, moves, proposals, annealing.

All in one file, though they are four things: numba's cache looks at the date of the file a function is in and not at those it calls, so a
kernel that calls one from another file would go on running an old version of it.

Stages are evaluated in ascending order. What a stage recomputes may be held from there on, which touches later stages, never earlier
ones; so one pass over the touched stages brings everything up to date.
"""

from __future__ import annotations

import math

import numpy as np

from .compile import inner, outer
from .space import LOG, Ints, Space, State

IMPOSSIBLE = 1e30
"""The cost of recomputing what cannot be recomputed: no move that needs it is ever taken."""


@inner
def gap_at(space: Space, value: int, stage: int) -> int:
    """The gap of a value that a stage lies in, or -1."""
    for gap in range(space.gap_start[value], space.gap_start[value + 1]):
        if stage <= space.high[gap]:
            return gap if space.low[gap] < stage else -1
    return -1


@outer
def recomputed(space: Space, state: State, stage: int) -> int:
    """Collect into `chosen`, ascending, what a stage recomputes; how many, or -1 if something cannot be recomputed."""
    state.stamp[0] += 1
    stamp = state.stamp[0]
    found = 0
    waiting = 1
    state.stack[0] = stage
    while waiting:
        waiting -= 1
        reader = state.stack[waiting]
        if reader != stage:
            if space.pinned[reader]:
                return -1
            state.chosen[found] = reader
            found += 1
        for index in range(space.input_start[reader], space.input_start[reader + 1]):
            value = space.input_values[index]
            maker = space.producer[value]
            if not state.present[value, stage] and state.mark[maker] != stamp:
                state.mark[maker] = stamp
                state.stack[waiting] = maker
                waiting += 1
    if found > 1:
        state.chosen[:found].sort()
    return found


@inner
def weigh(space: Space, state: State, stage: int, found: int) -> None:
    """Set cost, memory and signature of a stage that recomputes the first `found` of `chosen`."""
    count = len(space.cost)
    values = len(space.size)
    stamp = state.stamp[0]
    one = np.uint64(1)
    reads = np.uint64(0)
    state.chosen[found] = stage
    for step in range(found + 1):
        operation = state.chosen[step]
        for index in range(space.input_start[operation], space.input_start[operation + 1]):
            value = space.input_values[index]
            state.last_read[value] = step
            state.last_read[values + value] = stamp
            reads |= one << np.uint64(value & 63)
    spent = 0.0
    extra = 0
    most = 0
    for step in range(found + 1):
        operation = state.chosen[step]
        if step < found:
            spent += space.cost[operation]
        for index in range(space.output_start[operation], space.output_start[operation + 1]):
            value = space.output_values[index]
            reads |= one << np.uint64(value & 63)
            if not state.present[value, stage]:
                extra += space.size[value]
        most = max(most, extra + space.workspace[operation])
        if operation == count:
            break
        for index in range(space.input_start[operation], space.input_start[operation + 1]):
            value = space.input_values[index]
            if state.last_read[value] == step and not state.present[value, stage + 1]:
                extra -= space.size[value]
        for index in range(space.output_start[operation], space.output_start[operation + 1]):
            value = space.output_values[index]
            if state.last_read[values + value] != stamp and not state.present[value, stage + 1]:
                extra -= space.size[value]
    state.spent[stage] = spent
    state.extra[stage] = most
    state.reads[stage] = reads


@inner
def over(space: Space, state: State, stage: int) -> float:
    """By how much of the available memory a stage exceeds it."""
    excess = state.held[stage] + state.extra[stage] - space.available
    return excess / max(1, space.available) if excess > 0 else 0.0


@outer
def reset(space: Space, state: State) -> None:
    """Evaluate everything from what was chosen for the gaps."""
    stages = len(state.spent)
    state.held[:] = 0
    state.extra[:] = 0
    state.spent[:] = 0.0
    state.present[:] = False
    state.first_back[:] = -1
    state.dirty[:] = False
    for gap in range(len(space.low)):
        value = space.gap_value[gap]
        state.back[gap] = state.until[gap]
        for stage in range(space.low[gap] + 1, state.stay[gap] + 1):
            state.held[stage] += space.size[value]
            state.present[value, stage] = True
    state.total_cost[0] = 0.0
    state.total_over[0] = 0.0
    for stage in range(stages):
        state.total_over[0] += over(space, state, stage)
    for stage in range(stages):
        commit(state)
        _evaluate(space, state, stage)
    commit(state)
    state.dirty[:] = False
    recount(space, state)


@outer
def recount(space: Space, state: State) -> None:
    """Add the totals up afresh: they drift by rounding over millions of moves."""
    state.total_cost[0] = np.sum(state.spent)
    total = 0.0
    for stage in range(len(state.spent)):
        total += over(space, state, stage)
    state.total_over[0] = total


@inner
def set_gap(space: Space, state: State, gap: int, stay: int, hold: bool, until: int) -> None:
    """Choose for one gap. `refresh` must follow, once for any number of gaps."""
    _place(space, state, gap, stay, hold, until, until)
    bit = np.uint64(1) << np.uint64(space.gap_value[gap] & 63)
    for stage in range(space.low[gap], space.high[gap] + 1):
        if state.reads[stage] & bit:
            state.dirty[stage] = True


@inner
def refresh(space: Space, state: State, low: int) -> None:
    """Evaluate the touched stages from `low` on, in order."""
    for stage in range(low, len(state.spent)):
        if state.dirty[stage]:
            state.dirty[stage] = False
            _evaluate(space, state, stage)


@inner
def _place(space: Space, state: State, gap: int, stay: int, hold: bool, until: int, back: int) -> None:
    """Set a gap and what follows for memory at the start of its stages; log how it was; mark the stages this touches."""
    entry = state.log_sizes[0]
    if entry < LOG:
        state.log_gap[5 * entry] = gap
        state.log_gap[5 * entry + 1] = state.stay[gap]
        state.log_gap[5 * entry + 2] = state.hold[gap]
        state.log_gap[5 * entry + 3] = state.until[gap]
        state.log_gap[5 * entry + 4] = state.back[gap]
    state.log_sizes[0] += 1
    _shift(space, state, gap, stay, hold, until, back, True)


@inner
def _shift(space: Space, state: State, gap: int, stay: int, hold: bool, until: int, back: int, touch: bool) -> None:
    value = space.gap_value[gap]
    size = space.size[value]
    old_stay, old_back, old_until = state.stay[gap], state.back[gap], state.until[gap]
    if old_back < old_until:
        _unlink(state, gap)
    state.stay[gap], state.hold[gap], state.until[gap], state.back[gap] = stay, hold, until, back
    if back < until:
        _link(state, gap)
    bit = np.uint64(1) << np.uint64(value & 63)
    for stage in range(space.low[gap] + 1, space.high[gap] + 1):
        before = stage <= old_stay or old_back < stage <= old_until
        after = stage <= stay or back < stage <= until
        if before != after:
            if touch:
                state.total_over[0] -= over(space, state, stage)
                state.held[stage] += size if after else -size
                state.total_over[0] += over(space, state, stage)
                if state.reads[stage] & bit:
                    state.dirty[stage] = True
                if state.reads[stage - 1] & bit:
                    state.dirty[stage - 1] = True
            else:
                state.held[stage] += size if after else -size
            state.present[value, stage] = after


@inner
def _link(state: State, gap: int) -> None:
    """Enter a gap into the list of the stage from which its value is held again."""
    head = state.first_back[state.back[gap]]
    state.next_back[gap] = head
    state.previous_back[gap] = -1
    if head >= 0:
        state.previous_back[head] = gap
    state.first_back[state.back[gap]] = gap


@inner
def _unlink(state: State, gap: int) -> None:
    before, after = state.previous_back[gap], state.next_back[gap]
    if before >= 0:
        state.next_back[before] = after
    else:
        state.first_back[state.back[gap]] = after
    if after >= 0:
        state.previous_back[after] = before


@inner
def _evaluate(space: Space, state: State, stage: int) -> None:
    """Evaluate a stage anew and let what it recomputes be held from there on, or no longer."""
    entry = state.log_sizes[1]
    if entry < LOG:
        state.log_stage[2 * entry] = stage
        state.log_stage[2 * entry + 1] = state.extra[stage]
        state.log_spent[entry] = state.spent[stage]
        state.log_reads[entry] = state.reads[stage]
    state.log_sizes[1] += 1
    found = recomputed(space, state, stage)
    state.total_cost[0] -= state.spent[stage]
    if found < 0:
        state.spent[stage] = IMPOSSIBLE
        state.total_cost[0] += IMPOSSIBLE
        return
    stamp = state.stamp[0]
    gap = state.first_back[stage]
    while gap >= 0:
        following = state.next_back[gap]
        if state.mark[space.producer[space.gap_value[gap]]] != stamp:
            _place(space, state, gap, state.stay[gap], state.hold[gap], state.until[gap], state.until[gap])
        gap = following
    for position in range(found):
        operation = state.chosen[position]
        for index in range(space.output_start[operation], space.output_start[operation + 1]):
            value = space.output_values[index]
            gap = gap_at(space, value, stage)
            if gap >= 0:
                state.seen_made[gap] = stage
                if state.hold[gap] and state.stay[gap] < stage < state.back[gap]:
                    _place(space, state, gap, state.stay[gap], True, state.until[gap], stage)
        for index in range(space.input_start[operation], space.input_start[operation + 1]):
            gap = gap_at(space, space.input_values[index], stage)
            if gap >= 0:
                state.seen_read[gap] = stage
    state.dirty[stage] = False
    state.total_over[0] -= over(space, state, stage)
    weigh(space, state, stage, found)
    state.total_over[0] += over(space, state, stage)
    state.total_cost[0] += state.spent[stage]


@inner
def commit(state: State) -> None:
    state.log_sizes[0] = 0
    state.log_sizes[1] = 0


@inner
def overflowed(state: State) -> bool:
    """Did the move change more than the log can take back?"""
    return state.log_sizes[0] > LOG or state.log_sizes[1] > LOG


@inner
def roll_back(space: Space, state: State, cost: float, excess: float) -> None:
    """Undo everything since the last commit; the totals are given back exactly, so that rounding never adds up."""
    for entry in range(state.log_sizes[0] - 1, -1, -1):
        old = state.log_gap[5 * entry : 5 * entry + 5]
        _shift(space, state, old[0], old[1], old[2] != 0, old[3], old[4], False)
    for entry in range(state.log_sizes[1] - 1, -1, -1):
        stage = state.log_stage[2 * entry]
        state.extra[stage] = state.log_stage[2 * entry + 1]
        state.spent[stage] = state.log_spent[entry]
        state.reads[stage] = state.log_reads[entry]
    state.total_cost[0] = cost
    state.total_over[0] = excess
    commit(state)


@inner
def draw(state: State) -> np.uint64:
    """xorshift64*: the same numbers on every machine."""
    x = state.random[0]
    x ^= x >> np.uint64(12)
    x ^= x << np.uint64(25)
    x ^= x >> np.uint64(27)
    state.random[0] = x
    return x * np.uint64(2685821657736338717)


@inner
def below(state: State, limit: int) -> int:
    return int(draw(state) >> np.uint64(33)) % limit


@inner
def uniform(state: State) -> float:
    return float(draw(state) >> np.uint64(11)) / 9007199254740992.0


@inner
def change(space: Space, state: State, gap: int) -> None:
    """A random change of one gap, of the kinds that tend to help in its present state."""
    low, high = space.low[gap], space.high[gap]
    stay, hold = state.stay[gap], state.hold[gap]
    kind = below(state, 8)
    read = state.seen_read[gap]
    if stay == high:
        if kind < 7 or not low < read < high:
            set_gap(space, state, gap, low, kind % 2 == 0, high)
        else:
            set_gap(space, state, gap, read, False, high)
    elif kind < 3:
        set_gap(space, state, gap, high, False, high)
    elif kind < 6 or not low < read < high:
        set_gap(space, state, gap, low, not hold, high)
    elif kind == 6:
        set_gap(space, state, gap, read, hold, high)
    else:
        set_gap(space, state, gap, low, True, read)


@inner
def related(space: Space, state: State, gap: int) -> int:
    """A gap that matters to this one: of an input of the operation that makes the value, or of a value beside it, at the same time."""
    operation = space.producer[space.gap_value[gap]]
    stage = space.high[gap]
    if below(state, 2):
        stage = space.low[gap] + 1 + below(state, max(1, space.high[gap] - space.low[gap]))
    begin, end = space.input_start[operation], space.input_start[operation + 1]
    if begin == end or below(state, 4) == 0:
        begin, end = space.input_start[stage], space.input_start[stage + 1]
        if begin == end:
            return -1
    value = space.input_values[begin + below(state, end - begin)]
    begin, end = space.gap_start[value], space.gap_start[value + 1]
    for other in range(begin, end):
        if other != gap and space.low[other] < stage <= space.high[other] and space.may_move[other]:
            return other
    return -1


@inner
def held_in(space: Space, state: State, stage: int) -> int:
    """A random movable gap whose value is in memory at the start of a stage, by a few tries; -1 if none turns up."""
    for _ in range(24):
        gap = space.movable[below(state, len(space.movable))]
        if space.low[gap] < stage <= space.high[gap] and state.present[space.gap_value[gap], stage]:
            return gap
    return -1


@outer
def anneal(
    space: Space, state: State, best: Ints, best_cost: float, moves: int, hot: float, cold: float, price: float, reference: float
) -> tuple[float, float]:
    """Try `moves` changes while the temperature falls from hot to cold.

    `best` (3 rows: stay, hold, until) and the returned cost are of the cheapest state that fits; the price of excess memory adapts and is
    returned for the next call. Temperatures and the price are relative to `reference`.
    """
    stages = len(state.spent)
    gaps = len(space.movable)
    peak_stage = 0
    for move in range(moves):
        temperature = hot * math.pow(cold / hot, move / moves) * reference
        if move % 512 == 0:
            recount(space, state)
            price = min(max(price * (1.15 if state.total_over[0] > 0 else 0.9), 1e-3), 1e6)
            peak_stage = 0
            for stage in range(stages):
                if over(space, state, stage) > over(space, state, peak_stage):
                    peak_stage = stage
        before_cost, before_over = state.total_cost[0], state.total_over[0]
        gap = -1
        if before_over > 0 and below(state, 3) == 0:
            gap = held_in(space, state, peak_stage)
        if gap < 0:
            gap = space.movable[below(state, gaps)]
        low = space.low[gap]
        change(space, state, gap)
        for _ in range(2):
            if below(state, 5) >= 2:
                break
            gap = related(space, state, gap)
            if gap < 0:
                break
            low = min(low, space.low[gap])
            change(space, state, gap)
        refresh(space, state, low)
        if overflowed(state):
            state.stay[:], state.until[:] = best[0], best[2]
            for index in range(len(best[1])):
                state.hold[index] = best[1, index] != 0
            reset(space, state)
            continue
        cost, excess = state.total_cost[0], state.total_over[0]
        worse = cost - before_cost + price * reference * (excess - before_over)
        if worse > 0 and (temperature <= 0 or uniform(state) >= math.exp(-worse / temperature)):
            roll_back(space, state, before_cost, before_over)
            continue
        commit(state)
        if excess <= 1e-9 and cost < best_cost - 1e-12 * reference:
            recount(space, state)
            if state.total_over[0] == 0.0 and state.total_cost[0] < best_cost - 1e-12 * reference:
                best_cost = state.total_cost[0]
                best[0, :] = state.stay
                best[1, :] = state.hold
                best[2, :] = state.until
    return best_cost, price
