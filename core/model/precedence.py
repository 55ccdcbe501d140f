"""The partial order of a problem's operations: which come before which in every schedule.

Reachability of all pairs would take n * n bits. Few operations are ever asked for their relatives, so these are found one by one; only how
many each operation has is counted for all, with bit sets that are dropped as soon as nobody needs them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from .problem import Problem

Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Relatives:
    """The operations that every schedule computes for the first time before one, and those that come after it."""

    ancestors: Flags
    descendants: Flags

    def comparable(self, operation: int) -> bool:
        return bool(self.ancestors[operation] or self.descendants[operation])


class Precedence(Protocol):
    """Which operations come before which."""

    is_total: bool
    """Is there only one order?"""

    def relatives(self, operation: int) -> Relatives: ...

    def in_order(self, chain: Sequence[int]) -> list[int]:
        """The operations of a chain, each before its descendants."""

    @property
    def comparable_shares(self) -> NDArray[np.float64]:
        """Of each operation, the share of the others that come before or after it in every schedule."""


def has_only_one_order(problem: Problem) -> bool:
    """Does every operation read from the one before it?"""
    makers = ({problem.producer[value] for value in read} for read in problem.inputs)
    return all(operation == 0 or operation - 1 in before for operation, before in enumerate(makers))


class TotalOrder:
    """All operations in one order: then every operation is comparable with every other."""

    is_total = True

    def __init__(self, order: Sequence[int]) -> None:
        self._position = np.empty(len(order), dtype=np.int64)
        self._position[np.asarray(order, dtype=np.int64)] = np.arange(len(order))

    def relatives(self, operation: int) -> Relatives:
        own = self._position[operation]
        return Relatives(self._position < own, self._position > own)

    def in_order(self, chain: Sequence[int]) -> list[int]:
        return sorted(chain, key=lambda operation: int(self._position[operation]))

    @property
    def comparable_shares(self) -> NDArray[np.float64]:
        return np.ones(len(self._position))


class PartialOrder:
    """What the graph demands: predecessors and successors, and what follows from them."""

    is_total = False

    def __init__(self, problem: Problem) -> None:
        self.count = problem.count
        self.predecessors = [tuple({problem.producer[value]: None for value in read}) for read in problem.inputs]
        self.successors: list[list[int]] = [[] for _ in range(problem.count)]
        for operation, before in enumerate(self.predecessors):
            for other in before:
                self.successors[other].append(operation)
        self._relatives: dict[int, Relatives] = {}

    def relatives(self, operation: int) -> Relatives:
        if operation not in self._relatives:
            self._relatives[operation] = Relatives(_reached(operation, self.predecessors), _reached(operation, self.successors))
        return self._relatives[operation]

    def in_order(self, chain: Sequence[int]) -> list[int]:
        return sorted(chain, key=lambda operation: sum(bool(self.relatives(other).descendants[operation]) for other in chain))

    @cached_property
    def comparable_shares(self) -> NDArray[np.float64]:
        forward = range(self.count)
        related = _relative_counts(forward, self.predecessors, self.successors)
        related += _relative_counts(forward[::-1], self.successors, self.predecessors)
        return related / max(1, self.count - 1)


def _reached(start: int, steps: list[tuple[int, ...]] | list[list[int]]) -> Flags:
    reached = np.zeros(len(steps), dtype=np.bool_)
    pending = [start]
    while pending:
        for other in steps[pending.pop()]:
            if not reached[other]:
                reached[other] = True
                pending.append(other)
    return reached


def _relative_counts(
    order: range, towards: list[tuple[int, ...]] | list[list[int]], away: list[list[int]] | list[tuple[int, ...]]
) -> NDArray[np.int64]:
    """How many operations are reached from each by `towards`; a bit set lives until the last of `away` has used it."""
    counts = np.zeros(len(towards), dtype=np.int64)
    waiting = [len(others) for others in away]
    sets: dict[int, int] = {}
    for operation in order:
        found = 0
        for other in towards[operation]:
            found |= sets[other] | 1 << other
            waiting[other] -= 1
            if not waiting[other]:
                del sets[other]
        counts[operation] = found.bit_count()
        if waiting[operation]:
            sets[operation] = found
    return counts
