"""What is known while a problem is being solved: the incumbent, starts that nearly fit, and bounds with their scope."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ..events import Event, relative_gap
from ..model.problem import Problem
from ..result import Scope
from ..schedule.sequence import Candidate, candidate, drop_unread, prune

MOST_STARTS = 12
"""Candidates that nearly fit which are remembered, the newest: of more, nobody would begin with the oldest."""


@dataclass(slots=True)
class Pool:
    """Improves only: costs fall, bounds rise. Whoever finds something offers it here."""

    problem: Problem
    order_is_free: bool
    """May first computations be in any order?"""
    on_event: Callable[[Event], None] = lambda event: None
    incumbent: Candidate | None = None
    any_bound: float = 0.0
    """No schedule that fits is cheaper, whatever its order."""
    order_bounds: dict[tuple[int, ...], float] = field(default_factory=dict)
    """No schedule that fits is cheaper with first computations in this order."""
    starts: list[Candidate] = field(default_factory=list)
    """Candidates that take a little too much: where a search may begin. The newest last."""

    def __post_init__(self) -> None:
        self.any_bound = max(self.any_bound, self.problem.ideal_cost)

    @property
    def cost(self) -> float:
        return float("inf") if self.incumbent is None else self.incumbent.cost

    @property
    def order(self) -> tuple[int, ...]:
        """Of first computations in the incumbent."""
        return tuple(range(self.problem.count)) if self.incumbent is None else tuple(dict.fromkeys(self.incumbent.sequence))

    @property
    def bound(self) -> float:
        """The better of the bounds that hold for the incumbent."""
        return max(self.any_bound, self.order_bounds.get(self.order, 0.0) if self.order_bounds else 0.0)

    @property
    def scope(self) -> Scope:
        return Scope.ANY if self.bound <= self.any_bound else Scope.ORDER

    @property
    def gap(self) -> float:
        return 1.0 if self.incumbent is None else relative_gap(self.incumbent.cost, self.bound)

    @property
    def any_gap(self) -> float:
        """To the bound for any order."""
        return 1.0 if self.incumbent is None else relative_gap(self.incumbent.cost, self.any_bound)

    def offer(self, sequence: Sequence[int], found_by: str) -> Candidate:
        """Take a sequence: as the incumbent if it fits and is cheaper, as a start if it does not fit."""
        tidy = drop_unread if self.order_is_free else prune
        found = candidate(self.problem, tidy(self.problem, sequence), found_by)
        if found.fits(self.problem):
            if found.cost < self.cost:
                self.incumbent = found
                self.on_event(Event(found_by, found.cost, self.bound))
        elif all(found.sequence != other.sequence for other in self.starts):
            self.starts = [*self.starts[1 - MOST_STARTS :], found]
        return found

    def raise_bound(self, bound: float, name: str, order: tuple[int, ...] | None = None) -> None:
        """Take what was proven, for any order or for one."""
        if order is not None:
            if bound > self.order_bounds.get(order, 0.0):
                self.order_bounds[order] = bound
        elif bound > self.any_bound:
            self.any_bound = bound
            self.on_event(Event(name, None if self.incumbent is None else self.cost, self.bound))
