"""The problem and the state of the search as a few tables, the only thing compiled code likes.

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

from ..problem import Problem, horizons
from .tables import Ints, Table, columns, filled, first_random, in_rows

LOG = 100_000
"""A move that changes more than this many gaps or stages is given up."""

GAP = columns("low high seen_read stay back until value next_back previous_back", bools="hold may_move")
"""Gaps whose value is made again and held from a stage on are in a list that begins in that operation's row (`first_back`).

`seen_read` is a stage in which the value was recently read by a recomputation: where moves look first."""
STAGE = columns("held extra reads", "spent")
"""Bytes in memory at the start of each stage, the most bytes on top of that while it runs, a signature of 64 bits of the values it reads,
the cost of what it recomputes."""
OPERATION = columns("workspace input_start input_end output_start output_end first_back mark", "cost", "pinned")
VALUE = columns("size producer gap_start gap_end seen_gap last_read read_stamp")
"""`seen_gap` is the gap that was last asked for, or -1: most often the next one too."""
TOTALS = columns("available random stamp changed_gaps changed_stages", "unit cost over")
CHANGED_GAP = columns("gap stay until back", bools="hold")
CHANGED_STAGE = columns("stage extra reads", "spent")


class State(NamedTuple):
    """What is given, what a move changes, and scratch space."""

    gaps: Table
    stages: Table
    operations: Table
    """One more than there are: the last stands for what reads the graph outputs."""
    values: Table
    links: Ints
    """The values every operation reads, then those every operation makes; operations know where theirs begin and end."""
    movable: Ints
    """Gaps that a move may change."""
    present: Ints
    """Is a value in memory at the start of a stage? One row per value, 64 stages to a number; what the gaps say, spelt out."""
    dirty: Ints
    """Stages to evaluate again, 64 to a number."""
    totals: Table
    """One row of numbers that compiled code can change."""
    stack: Ints
    chosen: Ints
    changed_gaps: Table
    changed_stages: Table
    """How the gaps and stages were that the present move changed, to take it back."""


def new_state(problem: Problem, seed: int) -> State:
    """A state in which nothing has been set up yet; `kernels.reset` does that."""
    count, values = problem.count, len(problem.size)
    gaps, gap_start = _gaps(problem)
    words = (count + 2) // 64 + 1
    operations, links = _operations(problem)
    return State(
        gaps=gaps,
        stages=np.zeros(count + 1, STAGE),
        operations=operations,
        values=_values(problem, gap_start),
        links=links,
        movable=np.flatnonzero(gaps["may_move"]),
        present=np.zeros((values, words), np.int64),
        dirty=np.zeros(words, np.int64),
        totals=filled(TOTALS, 1, available=[problem.available], unit=[max(1, problem.available)], random=[first_random(seed)]),
        stack=np.zeros(count + 1, np.int64),
        chosen=np.zeros(count + 1, np.int64),
        changed_gaps=np.zeros(LOG, CHANGED_GAP),
        changed_stages=np.zeros(LOG, CHANGED_STAGE),
    )


def _gaps(problem: Problem) -> tuple[Table, list[int]]:
    """The gaps of all values, one value's after another's, and where each value's begin."""
    count = problem.count
    last = horizons(problem)
    starts = [0]
    rows: list[tuple[int, int, int, bool]] = []
    for value, producer in enumerate(problem.producer):
        uses = [producer, *problem.consumers[value], *([count] if problem.kept[value] else [])]
        edges = list(pairwise(uses))
        end = max((last[user] for user in problem.consumers[value]), default=producer)
        if min(end, count) > uses[-1]:
            edges.append((uses[-1], min(end, count)))
        for number, (begin, finish) in enumerate(edges):
            may_move = problem.size[value] > 0 and not (problem.pinned[producer] and number < len(uses) - 1)
            rows.append((value, begin, finish, may_move))
        starts.append(len(rows))
    value_of, low, high, may_moves = zip(*rows, strict=True) if rows else ((), (), (), ())
    gaps = filled(GAP, len(rows), value=value_of, low=low, high=high, stay=low, until=high, back=high, may_move=may_moves)
    for name in ("next_back", "previous_back", "seen_read"):
        gaps[name] = -1
    return gaps, starts


def _values(problem: Problem, gap_start: list[int]) -> Table:
    table = filled(VALUE, len(problem.size), size=problem.size, producer=problem.producer, gap_start=gap_start[:-1], gap_end=gap_start[1:])
    table["seen_gap"] = -1
    return table


def _operations(problem: Problem) -> tuple[Table, Ints]:
    kept = [value for value, kept in enumerate(problem.kept) if kept]
    input_start, input_end, inputs = in_rows([*problem.inputs, kept])
    output_start, output_end, outputs = in_rows([*problem.outputs, ()])
    table = filled(
        OPERATION,
        problem.count + 1,
        cost=[*problem.cost, 0.0],
        workspace=[*problem.workspace, 0],
        pinned=[*problem.pinned, False],
        input_start=input_start,
        input_end=input_end,
        output_start=output_start + len(inputs),
        output_end=output_end + len(inputs),
        first_back=[-1] * (problem.count + 1),
    )
    return table, np.concatenate((inputs, outputs))
