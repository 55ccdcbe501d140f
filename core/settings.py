"""What a user may ask of the solving, whatever the strategy."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Known:
    """What is known before the work begins, of the same graph and costs under this budget.

    A schedule that fits a smaller budget fits this one too, and a bound for a larger budget holds for this one too: that is how a curve
    of budgets passes on what it found.
    """

    sequence: tuple[int, ...] | None = None
    """A schedule, in operations of the problem; one that does not fit the budget is ignored."""
    bound: float = 0.0
    """No schedule is cheaper..."""
    bound_scope: str = "order"
    """... with first computations in the order of `sequence` (`order`), or in any order (`any`)."""
    elsewhere: float = float("inf")
    """What a schedule in another order costs: if nothing nearly as cheap is found soon, nobody will want this one."""
    unfinished: object = field(default=None, compare=False, repr=False)
    """What the same strategy left behind in an earlier run under the same order."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Options of the strategies; some ignore most of them."""

    solver: str = "highs"
    formulation: str = "liveness"
    gap: float = 1e-4
    """Relative gap at which a schedule counts as optimal."""
    order: str = "given"
    """`given`: first computations in the graph's order; `search`: in an order found by search."""
    threads: int | None = None
    seed: int = 0
    iterations: int | None = None
    """Rounds of search after which `auto` stops. It then solves no MILP, whose work only a clock can limit: unless all of the time runs
    out, what it finds depends on the seed alone."""
    presolve: bool = True
    """Whether HiGHS may presolve integer programs: not where it has got some of their kind wrong."""
    known: Known = Known()
    """Where strategies that improve on what they are given begin; the others ignore it."""
