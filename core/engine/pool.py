"""What the engine knows: the incumbent, candidates that nearly fit, bounds. Workers read a snapshot of it and report what they found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from ..events import Event, relative_gap
from ..model.memory_model import MemoryModel
from ..model.problem import Problem
from ..params import PARAMS
from ..result import Scope
from ..schedule.peak import most_overestimated, simulated_peak
from ..schedule.sequence import Candidate, candidate, drop_unread, prune

Computations = tuple[int, ...]
"""A sequence of operations, recomputations included."""


@dataclass(frozen=True, slots=True)
class Report:
    """What a slice of work gave."""

    found: tuple[tuple[str, Computations], ...] = ()
    """Sequences, whether or not they fit, and what found them."""
    bound: float = 0.0
    """No schedule that fits is cheaper ..."""
    order: Computations | None = None
    """... with first computations in this order; None for any order."""
    infeasible: bool = False
    """Is it proven that no schedule fits (in that order)?"""
    phase: str = ""
    """What was done, for the progress display."""
    work: float = 0.0
    """How much work it was: about the seconds it takes on one core, but counted, not measured."""


def is_near(problem: Problem, found: Candidate) -> bool:
    return found.peak <= problem.budget * (1 + PARAMS.near)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The pool between two rounds. All workers of a round see the same."""

    round: int
    incumbent: Candidate | None
    starts: tuple[Candidate, ...]
    """Candidates that do not fit and are cheaper than the incumbent: where a search may begin. The newest last."""
    any_bound: float
    """No schedule that fits is cheaper, whatever its order."""
    bound: float
    """The best bound that holds for the incumbent."""
    lowest: Candidate | None = None
    """The candidate of the lowest peak so far."""

    @property
    def cost(self) -> float:
        return float("inf") if self.incumbent is None else self.incumbent.cost

    @property
    def is_far_from_proven(self) -> bool:
        """Is there an incumbent, and the gap to the bound for any order so wide that labels are worth their time?"""
        return self.incumbent is not None and relative_gap(self.cost, self.any_bound) > PARAMS.tails_gap

    def near(self, problem: Problem) -> list[Candidate]:
        """The starts that take only a little too much."""
        return [start for start in self.starts if is_near(problem, start)]

    @property
    def order(self) -> Computations | None:
        """Of first computations in the incumbent."""
        return None if self.incumbent is None else tuple(dict.fromkeys(self.incumbent.sequence))


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of the log: who improved what, and when."""

    round: int
    worker: str
    cost: float
    bound: float


@dataclass(slots=True)
class Pool:
    """Improves only: costs fall, bounds rise."""

    problem: Problem
    order_is_free: bool
    """May first computations be in any order?"""
    on_event: Callable[[Event], None] = lambda event: None
    incumbent: Candidate | None = None
    any_bound: float = 0.0
    order_bounds: dict[Computations, float] = field(default_factory=dict)
    """No schedule that fits is cheaper with first computations in this order."""
    order_model: MemoryModel | None = None
    """The memory model that these hold for, if it is not the problem's own."""
    starts: list[Candidate] = field(default_factory=list)
    lowest: Candidate | None = None
    """The candidate of the lowest peak, whether or not it fits."""
    infeasible: bool = False
    log: list[Entry] = field(default_factory=list)

    overestimated: int = 0
    """Bytes by which the peak of a candidate may be lower than its profile says: then it is simulated."""

    def __post_init__(self) -> None:
        self.overestimated = most_overestimated(self.problem)
        self.any_bound = max(self.any_bound, self.problem.ideal_cost)

    @property
    def cost(self) -> float:
        return float("inf") if self.incumbent is None else self.incumbent.cost

    @property
    def order(self) -> Computations:
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

    def snapshot(self, round_: int) -> Snapshot:
        starts = tuple(start for start in self.starts if start.cost < self.cost)
        return Snapshot(round_, self.incumbent, starts, self.any_bound, self.bound, self.lowest)

    def merge(self, round_: int, worker: str, report: Report) -> bool:
        """Take what a worker found; True if the incumbent or a bound is better for it, or, while nothing fits, the lowest peak is."""
        cost, bound, lowest = self.cost, self.bound, self.lowest
        if report.infeasible:
            self.infeasible = True
            return True
        self._raise(report.bound, report.order)
        for found_by, sequence in report.found:
            self.offer(sequence, found_by)
        if self.cost >= cost and self.bound <= bound and (self.incumbent is not None or self.lowest is lowest):
            return False
        self.log.append(Entry(round_, worker, self.cost, self.bound))
        self.on_event(Event(report.phase or worker, None if self.incumbent is None else self.cost, self.bound))
        return True

    def offer(self, sequence: Sequence[int], found_by: str) -> Candidate:
        """Take a sequence: as the incumbent if it fits and is cheaper, as a start if it does not fit.

        Computations that nobody reads are left out, first ones too where the order is free. Of too many starts those that take far too much
        go first, then the oldest.
        """
        tidy = drop_unread if self.order_is_free else prune
        found = candidate(self.problem, tidy(self.problem, sequence), found_by)
        if 0 < found.peak - self.problem.budget <= self.overestimated and found.cost < self.cost:
            found = replace(found, peak=simulated_peak(self.problem, found.sequence))
        if self.lowest is None or found.peak < self.lowest.peak:
            self.lowest = found
        if found.fits(self.problem):
            if found.cost < self.cost:
                self.incumbent = found
        elif found.cost < self.cost and all(found.sequence != other.sequence for other in self.starts):
            if len(self.starts) == PARAMS.starts:
                self.starts.remove(next((start for start in self.starts if not is_near(self.problem, start)), self.starts[0]))
            self.starts = [*self.starts, found]
        return found

    def _raise(self, bound: float, order: Computations | None) -> None:
        if order is None:
            self.any_bound = max(self.any_bound, bound)
        elif bound > self.order_bounds.get(order, 0.0):
            self.order_bounds[order] = bound
