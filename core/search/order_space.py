"""The problem of orders and a walk through them as a few tables, the only thing compiled code likes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..jit.tables import Ints, Table, columns, filled, first_random, linked
from ..model.problem import Problem

OPERATION = columns("made dropped workspace reads reads_end before before_end after after_end makes makes_end")
"""Bytes of what each operation makes, and of these, bytes that nobody reads: free again right after. Then where in `links` begins and ends
which values with bytes it reads, on which operations it waits, which wait for it, and which values with bytes it makes."""
VALUE = columns("size users users_end", bools="kept")
PLACE = columns("operation live memory old_operation old_live old_memory aside best")
"""The operation at each place, bytes in memory before it and while it runs; the same before the present move; the best order so far."""
SPOT = columns("place mark")
TOTALS = columns("begin end crowded best_peak stamp random", "level excess")
"""The places between which the last move changed the order, both included (the second is the smaller if it did not). A place that was
lately above the level. Bytes above the level are what a walk makes fewer: all of them, over all places, are the excess."""


class Links(NamedTuple):
    """What does not change: who needs whom, and bytes."""

    operations: Table
    values: Table
    links: Ints


class Walk(NamedTuple):
    """What moves change, and scratch space."""

    places: Table
    spots: Table
    """Where each operation is."""
    last: Ints
    """The place where each value is read last; behind all places if it is never freed."""
    totals: Table
    """One row of numbers that compiled code can change."""

    @property
    def order(self) -> Ints:
        return self.places["operation"]

    @property
    def best(self) -> Ints:
        return self.places["best"]

    @property
    def best_peak(self) -> int:
        return int(self.totals["best_peak"][0])


def build_links(problem: Problem) -> Links:
    """Flatten a problem."""
    size = problem.size
    unread = [not users and not kept for users, kept in zip(problem.consumers, problem.kept, strict=True)]
    operations = filled(
        OPERATION,
        problem.count,
        made=[sum(size[value] for value in row) for row in problem.outputs],
        dropped=[sum(size[value] for value in row if unread[value]) for row in problem.outputs],
        workspace=problem.workspace,
    )
    values = filled(VALUE, len(size), size=size, kept=problem.kept)
    links = linked(
        (operations, "reads", [[value for value in row if size[value]] for row in problem.inputs]),
        (operations, "before", [sorted({problem.producer[value] for value in row}) for row in problem.inputs]),
        (operations, "after", [sorted({user for value in row for user in problem.consumers[value]}) for row in problem.outputs]),
        (operations, "makes", [[value for value in row if size[value]] for row in problem.outputs]),
        (values, "users", problem.consumers),
    )
    return Links(operations, values, links)


def blank_walk(links: Links, order: Ints, seed: int, level: float) -> Walk:
    """A walk in which nothing has been evaluated yet."""
    count = len(order)
    return Walk(
        places=filled(PLACE, count, operation=order, best=order),
        spots=np.zeros(count, SPOT),
        last=np.zeros(len(links.values), np.int64),
        totals=filled(TOTALS, 1, random=[first_random(seed)], level=[level]),
    )
