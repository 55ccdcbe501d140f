"""Chen et al. (2016): keep some values of the forward pass, and recompute the values between them once, when the backward pass needs them.

Checkpoints split the forward pass into segments. The values of a segment are kept while it is first computed and again while its backward
part runs. Checkpoints and the values of the backward pass are kept throughout. If another segment reads a value of a segment, the value is
recomputed there.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

from .forward import ForwardPass
from .retention import Retention


def with_checkpoints(forward: ForwardPass, checkpoints: Sequence[int], times: int = 200) -> tuple[int, ...] | None:
    """The sequence that keeps the values of these ranks of the forward pass, ascending; None if it has over `times` runs per operation."""
    problem = forward.problem
    retention = Retention(problem)
    retention.hold_for_readers()
    forward.hold_the_rest(retention)
    for rank in checkpoints:
        retention.hold_to_the_end(forward.operations[rank])
    count = len(forward.operations)
    for begin, end in zip([0, *checkpoints], [*checkpoints, count], strict=True):
        if begin == end:
            continue
        filled = forward.operations[end] if end < count else forward.returns[-1]
        for operation in forward.operations[begin:end]:
            retention.hold(operation, operation + 1, filled)
            retention.hold(operation, forward.returns[end - 1], forward.leaves(begin))
    return retention.sequence(times)


def every_sqrt(candidates: Sequence[int]) -> list[int]:
    """Every k-th of n candidates, k = floor(sqrt(n)), in the order of the paper's own code."""
    step = max(1, math.isqrt(len(candidates)))
    return sorted(in_hash_order(candidates)[step - 1 :: step])


def by_bytes(forward: ForwardPass, candidates: Collection[int], most: int) -> list[int]:
    """A checkpoint at each candidate where more than this many bytes were made since the last checkpoint, including the candidate's own."""
    problem = forward.problem
    allowed = set(candidates)
    chosen: list[int] = []
    since = 0
    for rank, operation in enumerate(forward.operations):
        since += sum(problem.size[value] for value in problem.outputs[operation])
        if since > most and rank in allowed:
            chosen.append(rank)
            since = 0
    return chosen


def in_hash_order(numbers: Sequence[int]) -> list[int]:
    """The numbers in the iteration order of a Python set of integers; ascending if they have no gaps.

    The paper's code counts its candidates while it iterates over a Python set, and its published figures depend on this: if the
    articulation points are counted in topological order, ResNet50 costs 1.176 times the ideal, not the 1.196 that Table 2 rounds to 1.20.
    Implemented here, to be the same in every interpreter: the table grows fourfold before it is three fifths full, and a number whose
    slot is taken gets the next free one.
    """
    slots = 8
    while 5 * len(numbers) >= 3 * (slots - 1):
        slots *= 4
    table: dict[int, int] = {}
    for number in numbers:
        slot = number % slots
        while slot in table:
            slot = (slot + 1) % slots
        table[slot] = number
    return [table[slot] for slot in sorted(table)]
