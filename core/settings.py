"""The options of solving that are common to all strategies."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from .result import Scope


class Order(StrEnum):
    """The order of first computations."""

    GIVEN = "given"
    """The order of the graph."""
    SEARCH = "search"
    """An order found by search."""


class FormulationName(StrEnum):
    """Which MILP the exact strategies solve."""

    LIVENESS = "liveness"
    """The paper's schedules with fewer variables."""
    PAPER = "paper"
    """As printed."""
    ANY_ORDER = "any-order"
    """A few breakpoints, any order of first computations: a relaxation."""


@dataclass(frozen=True, slots=True)
class Known:
    """What is known before the search starts, for the same graph, costs and budget.

    A schedule that fits a smaller budget fits this one too, and a bound for a larger budget holds for this one too: a sweep passes
    on results between budgets in this way.
    """

    sequence: tuple[int, ...] | None = None
    """A schedule as operations of the problem; ignored if it does not fit the budget."""
    bound: float = 0.0
    """A bound: no schedule is cheaper ..."""
    bound_scope: Scope = Scope.ORDER
    """... with first computations in the order of `sequence` (`order`), or in any order (`any`)."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Options of the strategies; some strategies ignore most of them."""

    solver: str = "highs"
    formulation: FormulationName = FormulationName.LIVENESS
    gap: float = 1e-4
    """The gap at which a schedule counts as optimal."""
    order: Order = Order.GIVEN
    threads: int | None = None
    seed: int = 0
    iterations: int | None = None
    """Rounds of search after which `auto` stops. It then solves no MILP, because only a clock can limit one: unless the time limit is
    reached, the result depends on the seed only."""
    nodes: int | None = None
    """Nodes of branch and bound after which a solver stops: an amount of work, the same on every machine."""
    good_enough: float | None = None
    """The objective of a solution, in the units of the program, at which a solver may stop: it is known that none is better."""
    presolve: bool = True
    """Whether HiGHS may presolve integer programs; off for programs of a kind that its presolve has solved wrongly."""
    known: Known = Known()
    """Where strategies that improve a given schedule start; the others ignore it."""
