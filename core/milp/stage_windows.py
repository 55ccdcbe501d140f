"""Windows: in which stages of an any-order program operations may be computed, and values be of use (`any_order.py`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..model.precedence import Precedence
from .presolve import Presolved
from .sparse import Ints


def first_stages(count: int, precedence: Precedence, chain: Sequence[int]) -> tuple[Ints, Ints]:
    """The windows of all operations: the first and the last stage in which each may be computed for the first time."""
    begin = np.zeros(count, dtype=np.int64)
    end = np.full(count, len(chain), dtype=np.int64)
    for stage, breakpoint_ in enumerate(chain, start=1):
        relatives = precedence.relatives(breakpoint_)
        end[relatives.ancestors] = np.minimum(end[relatives.ancestors], stage - 1)
        begin[relatives.descendants] = np.maximum(begin[relatives.descendants], stage)
        begin[breakpoint_] = end[breakpoint_] = stage
    return begin, end


@dataclass(frozen=True, slots=True, eq=False)
class Windows:
    """In which stages operations may be computed and values be of use, given the breakpoints."""

    begin: list[int]
    """The first stage in which each operation may be computed."""
    end: list[int]
    """The last stage in which it may be computed for the first time."""
    useful: list[int]
    """The last stage in which computing it can be of use."""
    last: list[int]
    """The last stage in which each value can be of use; below its first if never."""

    @staticmethod
    def of(presolved: Presolved, begin: Ints, end: Ints, final: int) -> Windows:
        """From the windows of all operations: one that stands for several begins with the latest and ends with the last."""
        problem = presolved.problem
        begins = np.zeros(problem.count, dtype=np.int64)
        np.maximum.at(begins, presolved.group_of, begin)
        begin, end = begins, end[[members[-1] for members in presolved.members]]
        useful = end.tolist()
        last = [0] * len(problem.size)
        for operation in reversed(range(problem.count)):
            for value in problem.outputs[operation]:
                readers = max((useful[user] for user in problem.consumers[value]), default=-1)
                last[value] = final if problem.kept[value] else readers
                if problem.size[value] and not problem.pinned[operation]:
                    useful[operation] = max(useful[operation], last[value])
        return Windows(begin.tolist(), end.tolist(), useful, last)
