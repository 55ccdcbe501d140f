"""One strategy's cost as a function of the budget, from runs at a few budgets, and which budget to solve next.

The cost of the best schedule never rises with the budget. So a schedule found for a smaller budget counts at every larger one, and a bound
proven for a larger budget counts at every smaller one; where the two meet, nothing is left to solve. Budgets are therefore taken from
both ends towards the middle: between two that have the same cost no other needs a run.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from .events import relative_gap
from .result import Status, Stop
from .settings import Known

BUDGET_FREE = ("keep-all", "last-node", "chen-sqrt", "ap-sqrt", "linearized-sqrt")
"""Strategies that make the same schedule whatever the budget: one run is a whole curve."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What one run of a strategy gave under one budget; cost, peak and recomputations are the simulator's."""

    budget: int
    status: Status
    stop: Stop
    sequence: tuple[int, ...] | None = None
    """In operations of the problem; it may not fit the budget, if the strategy ignores budgets."""
    cost: float = float("inf")
    peak: int = 0
    recomputed: int = 0
    bound: float = 0.0
    bound_scope: str = "any"
    seconds: float = 0.0
    found_by: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Point:
    """What is known at one budget once all findings are put together."""

    budget: int
    status: Status
    schedule: Finding | None
    """The run that made the cheapest schedule that fits; its budget is this one or a smaller one, or it ignores budgets."""
    bound: float
    bound_scope: str
    gap: float | None
    solved: Finding | None
    """The run at this very budget, if there was one."""


@dataclass(frozen=True, slots=True)
class _Placed:
    """A finding, and the number of its order of first computations; -1 without a schedule."""

    finding: Finding
    order: int


class Curve:
    """Findings of one strategy, put together. `gap` is how near the bound is near enough."""

    def __init__(self, budgets: Iterable[int], *, ideal_cost: float, gap: float, budget_free: bool = False) -> None:
        self.budgets = sorted(set(budgets))
        self._turns = bisecting(self.budgets)
        self._ideal = ideal_cost
        self._gap = gap
        self._budget_free = budget_free
        self._solved: dict[int, _Placed] = {}
        self._others: list[_Placed] = []
        self._orders: dict[tuple[int, ...], int] = {}

    def add(self, finding: Finding) -> None:
        """The outcome of a run at one of the budgets."""
        self._solved[finding.budget] = self._placed(finding)

    def add_schedule(self, finding: Finding) -> None:
        """A schedule from elsewhere; it saves no run but may make some needless."""
        self._others.append(self._placed(finding))

    def _placed(self, finding: Finding) -> _Placed:
        if finding.sequence is None:
            return _Placed(finding, -1)
        return _Placed(finding, self._orders.setdefault(first_computations(finding.sequence), len(self._orders)))

    def next_budget(self, running: Collection[int] = ()) -> int | None:
        """The budget to solve next, none of those being solved already; None if nothing is left to begin."""
        if self._budget_free and running:
            return None
        return next((budget for budget in self._turns if budget not in running and not self.settled(budget)), None)

    def settled(self, budget: int) -> bool:
        """Would another run at this budget tell nothing new?"""
        if budget in self._solved or (self._budget_free and any(placed.order >= 0 for placed in self._solved.values())):
            return True
        return self.at(budget).status in (Status.OPTIMAL, Status.INFEASIBLE)

    def known(self, budget: int) -> Known:
        """What a run at this budget can begin with."""
        best = self._cheapest(budget)
        bound, scope = self._bound(budget, best)
        return Known(best.finding.sequence if best else None, bound, scope)

    def at(self, budget: int) -> Point:
        placed = self._solved.get(budget)
        solved = None if placed is None else placed.finding
        best = self._cheapest(budget)
        bound, scope = self._bound(budget, best)
        if best is not None:
            cost = best.finding.cost
            bound = min(bound, cost)
            gap = relative_gap(cost, bound)
            return Point(budget, Status.OPTIMAL if gap <= self._gap else Status.FEASIBLE, best.finding, bound, scope, gap, solved)
        proven = any(other.finding.status is Status.INFEASIBLE for size, other in self._solved.items() if size >= budget)
        return Point(budget, Status.INFEASIBLE if proven else Status.UNKNOWN, None, bound, scope, None, solved)

    def _cheapest(self, budget: int) -> _Placed | None:
        fitting = [placed for placed in (*self._solved.values(), *self._others) if placed.order >= 0 and placed.finding.peak <= budget]
        return min(fitting, key=lambda placed: (placed.finding.cost, placed.finding.budget != budget, placed.finding.budget), default=None)

    def _bound(self, budget: int, best: _Placed | None) -> tuple[float, str]:
        """What is proven for one order of first computations says nothing about another."""
        bound, scope = self._ideal, "any"
        for size, placed in self._solved.items():
            found = placed.finding
            same_order = best is not None and placed.order == best.order
            if size >= budget and found.bound > bound and (found.bound_scope == "any" or same_order):
                bound, scope = found.bound, found.bound_scope
        return bound, scope


def first_computations(sequence: Sequence[int]) -> tuple[int, ...]:
    """The order in which operations are computed for the first time."""
    return tuple(dict.fromkeys(sequence))


def bisecting(budgets: Sequence[int]) -> list[int]:
    """The last, the first, then the middle of what lies between, and so on."""
    if not budgets:
        return []
    turns = list(dict.fromkeys((budgets[-1], budgets[0])))
    spans = [(0, len(budgets) - 1)]
    for low, high in spans:
        if high - low > 1:
            middle = (low + high) // 2
            turns.append(budgets[middle])
            spans += [(low, middle), (middle, high)]
    return turns
