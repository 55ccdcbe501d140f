"""One strategy's cost as a function of the budget, from runs at a few budgets, and which budget to solve next.

The cost of the best schedule never rises with the budget. So a schedule found for a smaller budget can be used at every larger one, and a
bound proven for a larger budget at every smaller one; where the two meet, nothing is left to solve. Budgets are therefore solved from both
ends towards the middle: no budget between two budgets of the same cost needs a run.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from ..events import relative_gap
from ..result import Result, Scope, Status
from ..settings import Known

BUDGET_FREE = ("keep-all", "last-node", "chen-sqrt", "ap-sqrt", "linearized-sqrt")
"""Strategies whose schedule does not depend on the budget: one run gives the whole curve."""


@dataclass(frozen=True, slots=True)
class Point:
    """What is known at one budget from all results together."""

    budget: int
    status: Status
    schedule: Result | None
    """The run that found the cheapest schedule that fits. Its budget is this one or a smaller one, or it ignores budgets."""
    found_at: int | None
    """The budget of that run."""
    bound: float
    bound_scope: Scope
    gap: float | None
    solved: Result | None
    """The run at exactly this budget, if there was one."""


@dataclass(frozen=True, slots=True)
class _Placed:
    """A result, its budget, and the number of its order of first computations; -1 without a schedule."""

    result: Result
    budget: int
    order: int


class Curve:
    """All results of one strategy. A budget is done when its gap is at most `gap`."""

    def __init__(self, budgets: Iterable[int], *, ideal_cost: float, gap: float, budget_free: bool = False) -> None:
        self.budgets = sorted(set(budgets))
        self._turns = bisecting(self.budgets)
        self._ideal = ideal_cost
        self._gap = gap
        self._budget_free = budget_free
        self._solved: dict[int, _Placed] = {}
        self._others: list[_Placed] = []
        self._orders: dict[tuple[int, ...], int] = {}

    def add(self, budget: int, result: Result) -> None:
        """Add the result of a run at one of the budgets."""
        self._solved[budget] = self._placed(budget, result)

    def add_schedule(self, budget: int, result: Result) -> None:
        """Add a schedule from elsewhere. It does not replace a run, but may make runs unnecessary."""
        self._others.append(self._placed(budget, result))

    def _placed(self, budget: int, result: Result) -> _Placed:
        if result.sequence is None:
            return _Placed(result, budget, -1)
        return _Placed(result, budget, self._orders.setdefault(first_computations(result.sequence), len(self._orders)))

    def next_budget(self, running: Collection[int] = ()) -> int | None:
        """The budget to solve next, except those that are being solved; None if there is none."""
        if self._budget_free and running:
            return None
        return next((budget for budget in self._turns if budget not in running and not self.settled(budget)), None)

    def settled(self, budget: int) -> bool:
        """True if another run at this budget would give no new information."""
        if budget in self._solved or (self._budget_free and any(placed.order >= 0 for placed in self._solved.values())):
            return True
        return self.at(budget).status in (Status.OPTIMAL, Status.INFEASIBLE)

    def known(self, budget: int) -> Known:
        """What a run at this budget can start from."""
        best = self._cheapest(budget)
        bound, scope = self._bound(budget, best)
        return Known(best.result.sequence if best else None, bound, scope)

    def at(self, budget: int) -> Point:
        placed = self._solved.get(budget)
        solved = None if placed is None else placed.result
        best = self._cheapest(budget)
        bound, scope = self._bound(budget, best)
        if best is not None:
            cost = best.result.cost
            bound = min(bound, cost)
            gap = relative_gap(cost, bound)
            return Point(
                budget, Status.OPTIMAL if gap <= self._gap else Status.FEASIBLE, best.result, best.budget, bound, scope, gap, solved
            )
        proven = any(other.result.status is Status.INFEASIBLE for size, other in self._solved.items() if size >= budget)
        return Point(budget, Status.INFEASIBLE if proven else Status.UNKNOWN, None, None, bound, scope, None, solved)

    def _cheapest(self, budget: int) -> _Placed | None:
        fitting = [placed for placed in (*self._solved.values(), *self._others) if placed.order >= 0 and placed.result.peak_bytes <= budget]
        return min(fitting, key=lambda placed: (placed.result.cost, placed.budget != budget, placed.budget), default=None)

    def _bound(self, budget: int, best: _Placed | None) -> tuple[float, Scope]:
        """A bound for one order of first computations does not hold for another."""
        bound, scope = self._ideal, Scope.ANY
        for size, placed in self._solved.items():
            found = placed.result
            same_order = best is not None and placed.order == best.order
            proven = found.bound or 0.0
            if size >= budget and proven > bound and (found.bound_scope is Scope.ANY or same_order):
                bound, scope = proven, found.bound_scope
        return bound, scope


def first_computations(sequence: Sequence[int]) -> tuple[int, ...]:
    """The order in which operations are computed for the first time."""
    return tuple(dict.fromkeys(sequence))


def bisecting(budgets: Sequence[int]) -> list[int]:
    """The last, the first, then the middle between them, and so on."""
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
