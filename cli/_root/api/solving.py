"""Solve: find the cheapest schedule that fits, with a certificate."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ..core.errors import InputError, InterruptedWorkError, LimitError
from ..core.events import Event, Watch
from ..core.history import History
from ..core.model.memory_model import MemoryModel
from ..core.model.problem import Problem
from ..core.model.units import Budget, exact_bytes, format_bytes
from ..core.result import Result as CoreResult
from ..core.result import Status, Stop, infeasible_error
from ..core.settings import FormulationName, Order, Settings
from ..core.spelling import suggestion
from .graph import LoadedGraph, as_graph
from .pricing import PricedGraph, as_budget
from .result import Result

if TYPE_CHECKING:
    from .pricing import CostsChoice

DEFAULT_TIME_LIMIT = 60.0
DEFAULT_GAP = 0.005
OPTIMAL_GAP = 1e-4
"""The default gap at which the search stops: of most strategies, and of `optimal`."""


@dataclass(frozen=True, slots=True)
class SolvingOptions:
    """How to solve, and for how long. The default for a field that is None depends on the strategy."""

    settings: Settings = field(default_factory=Settings)
    time_limit: float = DEFAULT_TIME_LIMIT
    order: Order | None = None
    gap: float | None = None

    def settings_for(self, strategy: str) -> Settings:
        """Fill in defaults. `auto` and the any-order program search for an order, the others keep the given one; `optimal` has a smaller
        gap."""
        searches = strategy == "auto" or self.settings.formulation is FormulationName.ANY_ORDER
        order = self.order or (Order.SEARCH if searches else Order.GIVEN)
        gap = self.gap if self.gap is not None else OPTIMAL_GAP if strategy == "optimal" else DEFAULT_GAP
        return replace(self.settings, order=order, gap=gap)


def solving_options(
    *,
    time_limit: float = DEFAULT_TIME_LIMIT,
    gap: float | None = None,
    order: Order | str | None = None,
    solver: str = "highs",
    formulation: FormulationName | str = FormulationName.LIVENESS,
    threads: int | None = None,
    seed: int = 0,
    iterations: int | None = None,
) -> SolvingOptions:
    """Parse options in the form users write them."""
    from ..core.solvers import SOLVERS

    settings = Settings(
        solver=_one_of("solver", solver, tuple(SOLVERS)),
        formulation=FormulationName(_one_of("formulation", formulation, tuple(name.value for name in FormulationName))),
        threads=threads,
        seed=seed,
        iterations=iterations,
    )
    return SolvingOptions(
        settings, float(time_limit), None if order is None else Order(_one_of("order", order, tuple(known.value for known in Order))), gap
    )


def _one_of(what: str, word: str, known: tuple[str, ...]) -> str:
    if word not in known:
        raise InputError(f"no {what} {word!r}{suggestion(word, known) or '; choose from ' + ', '.join(known)}")
    return str(word)


def solve(
    graph: LoadedGraph | Any,
    budget: str | int,
    *,
    costs: CostsChoice = None,
    device: str | None = None,
    strategy: str = "auto",
    time_limit: float = DEFAULT_TIME_LIMIT,
    gap: float | None = None,
    order: str | None = None,
    solver: str = "highs",
    formulation: str = "liveness",
    threads: int | None = None,
    seed: int = 0,
    iterations: int | None = None,
    pin: Iterable[str] = (),
    reserve: int | str = 0,
    memory_model: MemoryModel | str | None = None,
    on_progress: Callable[[Event], None] | None = None,
    interrupted: Callable[[], bool] | None = None,
) -> Result:
    """Find the cheapest schedule of a graph that fits a budget. It is verified, and has a bound that says how far from optimal it can be.

    `budget` limits all memory together: bytes, `"8GB"`, `"8GiB"`, or `"80%"` of the keep-all peak. The search ends when the gap is at most
    `gap` (default 0.005, for `optimal` 0.0001), after `time_limit` seconds, or when `interrupted()` returns true. Returns the best schedule
    so far. `on_progress` is called with every `Event`. Raises `InfeasibleError` if it is proven that no schedule fits, `LimitError`
    if none was found.
    """
    priced = as_graph(graph).price(costs, device=device, pin=pin, reserve=reserve, memory_model=memory_model)
    options = solving_options(
        time_limit=time_limit,
        gap=gap,
        order=order,
        solver=solver,
        formulation=formulation,
        threads=threads,
        seed=seed,
        iterations=iterations,
    )
    return solve_priced(priced, as_budget(budget), strategy, options, on_progress=on_progress, interrupted=interrupted)


def solve_priced(
    priced: PricedGraph,
    budget: Budget,
    strategy: str,
    options: SolvingOptions,
    *,
    on_progress: Callable[[Event], None] | None = None,
    interrupted: Callable[[], bool] | None = None,
) -> Result:
    """`solve` for a graph that has its costs."""
    problem = priced.at(budget)
    priced.require_possible(problem)
    found, history = run(problem, strategy, options, on_progress=on_progress, interrupted=interrupted)
    return Result(require_fitting(found, problem, options), priced, budget, options.settings.seed, history)


def run(
    problem: Problem,
    strategy: str,
    options: SolvingOptions,
    *,
    on_progress: Callable[[Event], None] | None = None,
    interrupted: Callable[[], bool] | None = None,
) -> tuple[CoreResult, History]:
    """Run a strategy and record the progress of the search."""
    from ..core.engine.run import run_strategy

    history = History(on_progress or (lambda event: None))
    history.watch = Watch(options.time_limit, history.on_event, interrupted or (lambda: False))
    return run_strategy(problem, strategy, options.settings_for(strategy), history.watch), history


def require_fitting(result: CoreResult, problem: Problem, options: SolvingOptions) -> CoreResult:
    """Return the result if it fits; otherwise raise the error that says why there is no schedule."""
    if result.fits:
        return result
    if result.status is Status.INFEASIBLE:
        raise infeasible_error(result, problem.budget)
    if result.stop is Stop.INTERRUPTED:
        raise InterruptedWorkError("interrupted before a schedule that fits was found; nothing was written")
    if result.certificate is not None:
        over = result.peak_bytes - problem.budget
        reason = f"its peak is {exact_bytes(result.peak_bytes)}, {format_bytes(over)} above {format_bytes(problem.budget)}"
    else:
        reason = result.reason or "it returned none"
    if result.strategy != "auto":
        advice = "try --strategy auto"
    elif result.stop is Stop.TIME_LIMIT:
        advice = f"try a longer --time-limit than {options.time_limit:g} s or a larger budget"
    else:
        advice = "try a larger budget"
    raise LimitError(f"strategy {result.strategy} found no schedule within the budget ({reason}); {advice}")
