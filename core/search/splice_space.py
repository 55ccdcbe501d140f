"""A sequence with its recomputations as a few tables, the only thing compiled code likes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..jit.tables import Ints, Table, columns, filled, first_random, linked
from ..model.problem import Problem
from ..model.transforms.group import small_below
from ..params import PARAMS

OPERATION = columns("reads reads_end makes makes_end copies", "made workspace cost", "pinned large")
"""Where in `links` begins and ends which values each operation reads and makes; how often it is computed at present; bytes of all it makes;
whether it can be recomputed, and whether it then makes something worth the while."""
VALUE = columns("producer users users_end", "size", "kept")
CHANGE = columns("first final", "size")
"""By how much memory was changed at which places, both included."""
STEP = columns("operation place now", bools="inserted")
"""What a move has already done: where it was then and where that is now."""
TOTALS = columns(
    "length kind operation place target again longest expanded input changes steps best_length random",
    "limit goal fall over cost own affordable outputs best_cost",
)
"""The length of the sequence. The step at hand: what, of which operation, from and to which place. Where a recomputation was taken out that
is to be put in elsewhere, or -1; how many steps the move may take, and which step and which of its inputs is looked at for the next.
Bytes that may be taken, are taken too much over all places, are taken while the new computation runs, and are taken at the end."""


class Splice(NamedTuple):
    """A sequence, what is in memory at each of its places, and scratch space."""

    operations: Table
    values: Table
    links: Ints
    large: Ints
    """Operations that are worth recomputing."""
    sequence: Ints
    memory: NDArray[np.float64]
    where: Ints
    """The places of each operation, in no order."""
    changes: Table
    steps: Table
    best: Ints
    totals: Table
    """One row of numbers that compiled code can change."""

    @property
    def best_sequence(self) -> list[int]:
        """The cheapest sequence that fits; empty if there was none."""
        found: list[int] = self.best[: int(self.totals["best_length"][0])].tolist()
        return found

    @property
    def has_descended(self) -> bool:
        """Was a lower peak looked for, and does the present sequence reach the goal?"""
        totals = self.totals[0]
        return bool(totals["fall"] > 0.0 and totals["limit"] <= totals["goal"] and totals["over"] < 1.0)

    @property
    def present_sequence(self) -> list[int]:
        present: list[int] = self.sequence[: int(self.totals["length"][0])].tolist()
        return present


def new_splice(problem: Problem, sequence: Sequence[int], seed: int) -> Splice:
    """A state in which nothing has been evaluated yet."""
    count, size = problem.count, problem.size
    small = max(1, small_below(problem))
    large = [not problem.pinned[i] and any(size[value] >= small for value in problem.outputs[i]) for i in range(count)]
    made = [sum(size[value] for value in row) for row in problem.outputs]
    operations = filled(OPERATION, count, made=made, workspace=problem.workspace, cost=problem.cost, pinned=problem.pinned, large=large)
    values = filled(VALUE, len(size), producer=problem.producer, size=size, kept=problem.kept)
    links = linked((operations, "reads", problem.inputs), (operations, "makes", problem.outputs), (values, "users", problem.consumers))
    copies = max(PARAMS.most_copies, *Counter(sequence).values()) if sequence else PARAMS.most_copies
    room = copies * count + 1
    places = np.zeros(room, np.int64)
    places[: len(sequence)] = sequence
    widest = max((len(problem.inputs[i]) + len(problem.outputs[i]) for i in range(count)), default=0)
    outputs = sum(bytes for bytes, kept in zip(size, problem.kept, strict=True) if kept)
    return Splice(
        operations=operations,
        values=values,
        links=links,
        large=np.flatnonzero(large),
        sequence=places,
        memory=np.zeros(room),
        where=np.zeros((count, copies), np.int64),
        changes=np.zeros(3 * widest, CHANGE),
        steps=np.zeros(2 * PARAMS.most_steps, STEP),
        best=np.zeros(room, np.int64),
        totals=filled(
            TOTALS,
            1,
            length=[len(sequence)],
            random=[first_random(seed)],
            limit=[float(problem.available)],
            goal=[float(problem.available)],
            outputs=[float(outputs)],
            best_cost=[np.inf],
        ),
    )
