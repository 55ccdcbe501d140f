"""The problem and the state of the search as flat arrays, the only thing compiled code likes.

Stage t ends with the first computation of operation t; one more stage at the end reads the graph outputs. A gap of a value lies between
two consecutive first uses (stages lo < hi); the last gap ends where no recomputation can need the value any more. Within a gap the value
is in memory at the start of stage t if

    lo < t <= stay   or   back < t <= until        (lo <= stay <= back <= until <= hi)

`stay` and `until` are ours to choose: `stay = hi` keeps the value throughout, `stay = lo` drops it after its first use. `back` follows:
it is the first stage after `stay` that recomputes the value, if `hold` says that what is recomputed is held from then on (and `until` if
there is none).
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..problem import Problem, horizons

LOG = 100_000
"""A move that changes more than this many gaps or stages is given up."""

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class Space(NamedTuple):
    """What does not change."""

    available: int
    cost: Floats
    workspace: Ints
    pinned: NDArray[np.bool_]
    size: Ints
    producer: Ints
    input_start: Ints
    input_values: Ints
    output_start: Ints
    output_values: Ints
    gap_start: Ints
    gap_value: Ints
    low: Ints
    high: Ints
    movable: Ints
    may_move: NDArray[np.bool_]
    """Gaps that a move may change, as a list and as a mask."""


class State(NamedTuple):
    """What a move changes, and scratch space. Arrays of one element are numbers that compiled code can change."""

    stay: Ints
    hold: NDArray[np.bool_]
    until: Ints
    back: Ints
    present: NDArray[np.bool_]
    """Is a value in memory at the start of a stage? One row per value; what the gaps say, spelt out."""
    held: Ints
    """Bytes in memory at the start of each stage."""
    extra: Ints
    """The most bytes on top of that while the stage runs."""
    spent: Floats
    """Cost of what each stage recomputes."""
    reads: NDArray[np.uint64]
    """A 64-bit signature of the values each stage reads."""
    first_back: Ints
    next_back: Ints
    previous_back: Ints
    """Linked lists of the gaps whose value is made again and held from each stage on."""
    seen_made: Ints
    seen_read: Ints
    """A stage in which a value was recently recomputed, or read by a recomputation, in each gap: where moves look first."""
    total_cost: Floats
    total_over: Floats
    random: NDArray[np.uint64]
    stamp: Ints
    mark: Ints
    stack: Ints
    chosen: Ints
    last_read: Ints
    dirty: NDArray[np.bool_]
    """Stages to evaluate again."""
    log_gap: Ints
    log_stage: Ints
    log_spent: Floats
    log_reads: NDArray[np.uint64]
    log_sizes: Ints
    """What the present move changed, to take it back."""


def build_space(problem: Problem) -> Space:
    """Flatten a problem."""
    count = problem.count
    readers: list[tuple[int, ...]] = [*problem.inputs, tuple(value for value, kept in enumerate(problem.kept) if kept)]
    last = horizons(problem)
    gap_start = [0]
    gap_value: list[int] = []
    low: list[int] = []
    high: list[int] = []
    movable: list[int] = []
    for value, producer in enumerate(problem.producer):
        uses = [producer, *problem.consumers[value], *([count] if problem.kept[value] else [])]
        edges = list(pairwise(uses))
        end = max((last[user] for user in problem.consumers[value]), default=producer)
        if min(end, count) > uses[-1]:
            edges.append((uses[-1], min(end, count)))
        for number, (begin, finish) in enumerate(edges):
            if problem.size[value] and not (problem.pinned[producer] and number < len(uses) - 1):
                movable.append(len(low))
            gap_value.append(value)
            low.append(begin)
            high.append(finish)
        gap_start.append(len(low))
    return Space(
        available=problem.available,
        cost=np.array(problem.cost, dtype=np.float64),
        workspace=np.array([*problem.workspace, 0], dtype=np.int64),
        pinned=np.array(problem.pinned, dtype=np.bool_),
        size=np.array(problem.size, dtype=np.int64),
        producer=np.array(problem.producer, dtype=np.int64),
        input_start=_starts(readers),
        input_values=np.array([value for row in readers for value in row], dtype=np.int64),
        output_start=_starts([*problem.outputs, ()]),
        output_values=np.array([value for row in problem.outputs for value in row], dtype=np.int64),
        gap_start=np.array(gap_start, dtype=np.int64),
        gap_value=np.array(gap_value, dtype=np.int64),
        low=np.array(low, dtype=np.int64),
        high=np.array(high, dtype=np.int64),
        movable=np.array(movable, dtype=np.int64),
        may_move=np.isin(np.arange(len(low)), movable),
    )


def new_state(space: Space, seed: int) -> State:
    """A state in which nothing has been set up yet; `stage.reset` does that."""
    count, gaps, values = len(space.cost), len(space.low), len(space.size)
    stages = count + 1
    return State(
        stay=space.low.copy(),
        hold=np.zeros(gaps, np.bool_),
        until=space.high.copy(),
        back=space.high.copy(),
        present=np.zeros((values, stages + 1), np.bool_),
        held=np.zeros(stages + 1, np.int64),
        extra=np.zeros(stages, np.int64),
        spent=np.zeros(stages, np.float64),
        reads=np.zeros(stages, np.uint64),
        first_back=np.full(stages, -1, np.int64),
        next_back=np.full(gaps, -1, np.int64),
        previous_back=np.full(gaps, -1, np.int64),
        seen_made=np.full(gaps, -1, np.int64),
        seen_read=np.full(gaps, -1, np.int64),
        total_cost=np.zeros(1, np.float64),
        total_over=np.zeros(1, np.float64),
        random=np.array([seed * 2 + 1], dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(0xD1B54A32D192ED03),
        stamp=np.zeros(1, np.int64),
        mark=np.zeros(count, np.int64),
        stack=np.zeros(count + 1, np.int64),
        chosen=np.zeros(count + 1, np.int64),
        last_read=np.zeros(2 * values, np.int64),
        dirty=np.zeros(stages + 1, np.bool_),
        log_gap=np.zeros(5 * LOG, np.int64),
        log_stage=np.zeros(2 * LOG, np.int64),
        log_spent=np.zeros(LOG, np.float64),
        log_reads=np.zeros(LOG, np.uint64),
        log_sizes=np.zeros(2, np.int64),
    )


def _starts(rows: list[tuple[int, ...]]) -> Ints:
    return np.concatenate(([0], np.cumsum([len(row) for row in rows]))).astype(np.int64)
