"""A problem with runs of small operations as one, for searches: what belongs together moves together."""

from __future__ import annotations

from functools import cached_property

from ..events import Watch
from ..model.problem import Problem
from ..model.transforms.group import Grouped, group_operations, small_below
from ..schedule.sequence import candidate, completed
from .pool import Computations


class Groups:
    """Made when first asked for, and shared by all who search in it. What is small depends on the budget, or on another amount."""

    def __init__(self, problem: Problem, *, free: bool, amount: int | None = None) -> None:
        self._original, self._free = problem, free
        self._amount = problem.budget if amount is None else amount

    @cached_property
    def _grouped(self) -> Grouped:
        return group_operations(self._original, small_below(self._original.with_budget(self._amount)))

    @property
    def problem(self) -> Problem:
        return self._grouped.problem

    @property
    def everything(self) -> Computations:
        """Nothing recomputed."""
        return tuple(range(self.problem.count))

    def expand(self, sequence: Computations) -> Computations:
        return self._grouped.expand(sequence)

    def contract(self, sequence: Computations, seed: int, watch: Watch) -> Computations:
        """The nearest sequence of groups. An order that tears groups apart is another one for groups: it is put in an order of low peak."""
        from .reordering import lower_peak  # imports the compiled kernels

        nearest = candidate(self.problem, completed(self.problem, self._grouped.contract(sequence)))
        return lower_peak(self.problem, nearest, seed, watch).sequence if self._free else nearest.sequence
