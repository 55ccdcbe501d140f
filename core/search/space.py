"""The problem and the state of the search as a few tables, the only thing compiled code likes.

A stage is a run of first computations, often only one, and before them what is recomputed for them; one more stage at the end reads the
graph outputs. A gap of a value lies between two consecutive first uses (stages lo < hi); the last gap ends where no recomputation can need
the value any more. Within a gap the value is in memory at the start of stage t if

    lo < t <= stay   or   back < t <= until        (lo <= stay <= back <= until <= hi)

`stay` and `until` are ours to choose: `stay = hi` keeps the value throughout, `stay = lo` drops it after its first use. `back` follows:
it is the first stage after `stay` that recomputes the value, if `hold` says that what is recomputed is held from then on (and `until` if
there is none).
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from ..jit.tables import Ints, Table, columns, filled, first_random, in_rows
from ..model.problem import Problem
from .layout import Layout

LOG = 100_000
"""A move that changes more than this many gaps or stages is given up."""

LONG = 3
LONG_OFTEN = 6
"""Gaps over more stages than this are proposed this many times as often."""

GAP = columns("low high seen_read stay back until value next_back previous_back", bools="hold may_move")
"""Gaps whose value is made again and held from a stage on are in a list that begins in that operation's row (`first_back`).

`seen_read` is a stage in which the value was recently read by a recomputation: where moves look first."""
STAGE = columns("held extra reads first end", "spent")
"""Bytes in memory at the start of each stage, the most bytes on top of that while it runs, a signature of 64 bits of the values it reads,
its first computations (from `first` to before `end`), the cost of what it recomputes."""
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


def new_state(problem: Problem, seed: int, layout: Layout) -> State:
    """A state in which nothing has been set up yet; `kernels.reset` does that."""
    count, values = problem.count, len(problem.size)
    gaps, gap_start = _gaps(problem, layout)
    first, end = [run.start for run in layout.runs], [run.stop for run in layout.runs]
    words = (count + 2) // 64 + 1
    operations, links = _operations(problem)
    return State(
        gaps=gaps,
        stages=filled(STAGE, len(layout.runs), first=first, end=end),
        operations=operations,
        values=_values(problem, gap_start),
        links=links,
        movable=_often(gaps),
        present=np.zeros((values, words), np.int64),
        dirty=np.zeros(words, np.int64),
        totals=filled(TOTALS, 1, available=[problem.available], unit=[max(1, problem.available)], random=[first_random(seed)]),
        stack=np.zeros(count + 1, np.int64),
        chosen=np.zeros(count + 1, np.int64),
        changed_gaps=np.zeros(LOG, CHANGED_GAP),
        changed_stages=np.zeros(LOG, CHANGED_STAGE),
    )


def stage_numbers(problem: Problem, layout: Layout) -> list[int]:
    """The stage of each first computation, and of the reader of the graph outputs."""
    stage_of = [0] * (problem.count + 1)
    for stage, run in enumerate(layout.runs):
        stage_of[run.start : run.stop] = [stage] * len(run)
    return stage_of


def _gaps(problem: Problem, layout: Layout) -> tuple[Table, list[int]]:
    """The gaps of all values, one value's after another's, and where each value's begin."""
    count = problem.count
    stage_of = stage_numbers(problem, layout)
    starts = [0]
    rows: list[tuple[int, int, int, bool, int]] = []
    for value, producer in enumerate(problem.producer):
        uses = [producer, *problem.consumers[value], *([count] if problem.kept[value] else [])]
        needed = stage_of[uses[-1]]
        stages = list(dict.fromkeys(stage_of[use] for use in (*uses, max(uses[-1], layout.until[value]))))
        for begin, finish in pairwise(stages):
            may_move = problem.size[value] > 0 and not layout.always_kept[value] and not (problem.pinned[producer] and begin < needed)
            rows.append((value, begin, finish, may_move, finish if layout.always_kept[value] else begin))
        starts.append(len(rows))
    value_of, low, high, may_moves, stay = zip(*rows, strict=True) if rows else ((), (), (), (), ())
    gaps = filled(GAP, len(rows), value=value_of, low=low, high=high, stay=stay, until=high, back=high, may_move=may_moves)
    for name in ("next_back", "previous_back", "seen_read"):
        gaps[name] = -1
    return gaps, starts


def _often(gaps: Table) -> Ints:
    """Gaps that may move, the long ones several times: they decide, and the short ones are many."""
    movable = np.flatnonzero(gaps["may_move"])
    long = movable[(gaps["high"] - gaps["low"])[movable] > LONG]
    return np.concatenate((movable, *[long] * (LONG_OFTEN - 1)))


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
