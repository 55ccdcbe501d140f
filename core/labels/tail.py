"""Tails: what a schedule costs from the first computation of an operation on, by the large values that are in memory then.

Programs count memory at breakpoints. What happens between two of them is free: large values can be recomputed in one stage as if they took
turns at will. Near the smallest budget, where only a few large values fit at once, whether they can is the whole question, and a small one:
go back from the end through all sets of large values that may be needed, everything smaller taken to be there for nothing.

**The labels.** Let v be an operation. In every schedule, the tail is what runs from the moment on when v is first computed: it has the
first computations of v and its descendants, in an order that the graph allows, and recomputations. Of the large values only those are
considered that are needed: read later in the tail before they are made again, or graph outputs. While an operation runs, what is needed
after it, what it reads and what it makes are in memory together. `label_kernels.py` finds, for every set that may be needed when v runs,
the cheapest recomputations of large values that do. Whatever schedule there is, its tail costs no less than the label whose set is within
what it has in memory then. With the order of first computations given, it is the same with a total order instead of the partial one.

**Dominance.** A label that needs less and is no dearer makes another superfluous. A step for which nothing more is needed is gone back over
at once: whatever came before it can come before it later too.

**Never too many.** Labels are settled in the order of their cost, so the work can end at any time: what is left costs at least as much as
the next label, and is one label that needs nothing.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Label:
    """Recomputations in a tail cost so much if no large values but these are in memory when it begins."""

    needed: frozenset[int]
    cost: float
    operations: tuple[int, ...]
    """In the order of time, first computations too, of those that read or make large values; empty where only the cost is known."""
    again: frozenset[int] = frozenset()
    """Those of them that are recomputations."""


@dataclass(frozen=True, slots=True, eq=False)
class Tail:
    """The labels of a tail. Every schedule has what one of them needs, and costs as much: none means that no schedule fits."""

    begin: int
    """The operation whose first computation begins it."""
    makers: tuple[int, ...]
    """The operations whose recomputations count: those that make large values."""
    certain: frozenset[int]
    """Those of them that are computed in the tail in any case, once for nothing."""
    labels: tuple[Label, ...]

    @property
    def least(self) -> float:
        """What every schedule pays."""
        return min((label.cost for label in self.labels), default=float("inf"))
