"""The moves of the search over stages, compiled: random changes of one gap and of those that matter to it, and annealing."""

from __future__ import annotations

import math

from ..jit.basics import pick, uniform
from ..jit.compile import inner, outer
from ..jit.tables import Ints
from .space import LOG, State
from .stage_steps import commit, over, present, recount, refresh, reset, roll_back, set_gap


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
