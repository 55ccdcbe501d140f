"""Griewank and Walther's REVOLVE: the fewest recomputations for a chain of unit costs with a given number of checkpoints.

To reverse the states a to b, of which a is stored: compute forward to a state m, store it, reverse b to m, free it, and reverse m - 1 to a.
With s slots, and each state computed at most r times, C(s + r, s) states can be reversed; m is chosen so that this holds for both parts.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import comb

from ..events import Watch
from ..model.problem import Problem
from ..result import Result
from ..settings import Settings
from .choice import SWEEP_TIMES, Parameters, affordable_tries, cheapest, not_a_chain, thinned
from .forward import ForwardPass, forward_pass
from .retention import Retention


def griewank(problem: Problem, settings: Settings, watch: Watch) -> Result:
    """Griewank and Walther's binomial checkpoints (REVOLVE, log n), their number searched; for forward passes that are chains."""
    forward = forward_pass(problem)
    if not forward.is_chain:
        return not_a_chain("a linearized strategy or lp-rounding")
    return cheapest(problem, _tries(forward), watch)


def _tries(forward: ForwardPass) -> Iterator[tuple[Parameters, tuple[int, ...] | None]]:
    for slots in thinned(range(1, max(1, len(forward.operations)) + 1), affordable_tries(forward.problem)):
        yield {"checkpoints": slots}, with_slots(forward, slots)


def with_slots(forward: ForwardPass, slots: int) -> tuple[int, ...] | None:
    """The sequence with at most this many checkpoints at a time; None if it grew too long."""
    problem = forward.problem
    retention = Retention(problem)
    retention.hold_in_use()
    forward.hold_the_rest(retention)
    for rank, goal in stored_states(len(forward.operations), slots):
        since = 0 if goal is None else forward.returns[goal] + 1
        retention.hold(forward.operations[rank], since, forward.leaves(rank))
    return retention.sequence(SWEEP_TIMES)


def stored_states(count: int, slots: int) -> Iterator[tuple[int, int | None]]:
    """States to store, each with the target state of the forward computation during which it is stored; None in the first forward pass.

    State -1 is the chain's input, which needs no slot.
    """
    parts: list[tuple[int, int, int, bool]] = [(-1, count - 1, slots + 1, True)]
    while parts:
        stored, last, free, first_time = parts.pop()
        states = last - stored + 1
        if states < 2 or free < 2:
            continue
        middle = stored + _advance(states, free)
        yield middle, None if first_time else last
        parts.append((stored, middle - 1, free, False))
        parts.append((middle, last, free - 1, first_time))


def _advance(states: int, slots: int) -> int:
    """How far to compute before storing the next state: the least such that the other slots are enough for the rest."""
    repeats = 1
    while comb(slots + repeats, slots) < states:
        repeats += 1
    fewest = comb(slots + repeats - 2, slots)
    return max(1, fewest, states - comb(slots - 1 + repeats, slots - 1))
