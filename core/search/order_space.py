"""The problem of orders and a walk through them as flat arrays, the only thing compiled code likes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..problem import Problem

Ints = NDArray[np.int64]


class Links(NamedTuple):
    """What does not change: who needs whom, and bytes."""

    made: Ints
    """Bytes of what each operation makes."""
    dropped: Ints
    """Of these, bytes that nobody reads: free again right after."""
    workspace: Ints
    size: Ints
    read_start: Ints
    reads: Ints
    """Values with bytes that each operation reads."""
    before_start: Ints
    before: Ints
    """Operations whose results each operation reads."""
    after_start: Ints
    after: Ints
    """Operations that read the results of each operation."""
    made_start: Ints
    makes: Ints
    """Values with bytes that each operation makes."""
    user_start: Ints
    users: Ints
    """Operations that read each value."""
    kept: NDArray[np.bool_]


class Walk(NamedTuple):
    """What moves change, and scratch space. Arrays of one element are numbers that compiled code can change."""

    order: Ints
    place: Ints
    """Where each operation is."""
    last: Ints
    """The place where each value is read last; behind all places if it is never freed."""
    live: Ints
    """Bytes in memory before each place."""
    memory: Ints
    """Bytes while the operation at each place runs."""
    level: NDArray[np.float64]
    """Bytes above it are what a walk makes fewer."""
    excess: NDArray[np.float64]
    """All bytes above the level, over all places."""
    crowded: Ints
    """A place that was lately above the level."""
    best: Ints
    best_peak: Ints
    best_excess: NDArray[np.float64]
    random: NDArray[np.uint64]
    mark: Ints
    stamp: Ints
    aside: Ints
    old_order: Ints
    old_live: Ints
    old_memory: Ints


def build_links(problem: Problem) -> Links:
    """Flatten a problem."""
    size = problem.size
    unread = [not users and not kept for users, kept in zip(problem.consumers, problem.kept, strict=True)]
    reads = _rows([[value for value in row if size[value]] for row in problem.inputs])
    before = _rows([sorted({problem.producer[value] for value in row}) for row in problem.inputs])
    after = _rows([sorted({user for value in row for user in problem.consumers[value]}) for row in problem.outputs])
    makes = _rows([[value for value in row if size[value]] for row in problem.outputs])
    users = _rows(problem.consumers)
    return Links(
        made=np.array([sum(size[value] for value in row) for row in problem.outputs], np.int64),
        dropped=np.array([sum(size[value] for value in row if unread[value]) for row in problem.outputs], np.int64),
        workspace=np.array(problem.workspace, np.int64),
        size=np.array(size, np.int64),
        read_start=reads[0],
        reads=reads[1],
        before_start=before[0],
        before=before[1],
        after_start=after[0],
        after=after[1],
        made_start=makes[0],
        makes=makes[1],
        user_start=users[0],
        users=users[1],
        kept=np.array(problem.kept, np.bool_),
    )


def blank_walk(links: Links, order: Ints, seed: int, level: float) -> Walk:
    """A walk in which nothing has been evaluated yet."""
    count = len(order)
    return Walk(
        order=order.copy(),
        place=np.zeros(count, np.int64),
        last=np.zeros(len(links.size), np.int64),
        live=np.zeros(count, np.int64),
        memory=np.zeros(count, np.int64),
        level=np.array([level]),
        excess=np.zeros(1),
        crowded=np.zeros(1, np.int64),
        best=order.copy(),
        best_peak=np.zeros(1, np.int64),
        best_excess=np.zeros(1),
        random=np.array([seed * 2 + 1], dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(0xD1B54A32D192ED03),
        mark=np.zeros(count, np.int64),
        stamp=np.zeros(1, np.int64),
        aside=np.zeros(count, np.int64),
        old_order=np.zeros(count, np.int64),
        old_live=np.zeros(count, np.int64),
        old_memory=np.zeros(count, np.int64),
    )


def _rows(rows: Sequence[Sequence[int]]) -> tuple[Ints, Ints]:
    """Rows of different lengths as one array, and where each begins."""
    starts = np.concatenate(([0], np.cumsum([len(row) for row in rows]))).astype(np.int64)
    return starts, np.array([item for row in rows for item in row], dtype=np.int64)
