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
from ..core.result import Status, Stop, certified, infeasible_error
from ..core.settings import FormulationName, Order, Settings
from ..core.spelling import suggestion
from ..io.onnxruntime.counts import Count
from .counting import Counting
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
    count: Count | str = Count.TENSORS,
    on_progress: Callable[[Event], None] | None = None,
    interrupted: Callable[[], bool] | None = None,
) -> Result:
    """Find the cheapest schedule of a graph that fits a budget. It is verified, and has a bound that says how far from optimal it can be.

    `budget` limits all memory together: bytes, `"8GB"`, `"8GiB"`, or `"80%"` of the keep-all peak. The search ends when the gap is at most
    `gap` (default 0.005, for `optimal` 0.0001), after `time_limit` seconds, or when `interrupted()` returns true. Returns the best schedule
    so far. `count` says what the budget limits: `tensors`; `arena`, with the gaps between tensors in onnxruntime's memory; or `process`,
    all that the process takes for a session of `checkmate.session`. `on_progress` is called with every `Event`. Raises `InfeasibleError` if
    it is proven that no schedule fits, `LimitError` if none was found.
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
    counting = Counting(
        priced, count if isinstance(count, Count) else Count(_one_of("count", count, tuple(known.value for known in Count)))
    )
    return solve_priced(priced, as_budget(budget), strategy, options, counting=counting, on_progress=on_progress, interrupted=interrupted)


def solve_priced(
    priced: PricedGraph,
    budget: Budget,
    strategy: str,
    options: SolvingOptions,
    *,
    counting: Counting | None = None,
    on_progress: Callable[[Event], None] | None = None,
    interrupted: Callable[[], bool] | None = None,
) -> Result:
    """`solve` for a graph that has its costs."""
    if counting is not None and counting.count is not Count.TENSORS:
        return _solve_counted(counting, budget, strategy, options, on_progress, interrupted)
    problem = priced.at(budget)
    priced.require_possible(problem)
    found, history = run(problem, strategy, options, on_progress=on_progress, interrupted=interrupted)
    return Result(require_fitting(found, problem, options), priced, budget, options.settings.seed, history)


_MOST_SOLVES = 6
"""How often the budget for tensors is lowered until the rest fits too."""
_LEAST_STEP = 0.01
"""By at least this share of what is left for tensors, because gaps do not shrink evenly."""


def _solve_counted(
    counting: Counting,
    budget: Budget,
    strategy: str,
    options: SolvingOptions,
    on_progress: Callable[[Event], None] | None,
    interrupted: Callable[[], bool] | None,
) -> Result:
    """Solve with less and less for tensors, until the compiled model takes no more than the budget, everything that counts included.

    The tensors of a schedule that fits have at most what is left after what every session takes. So the bound of the first problem holds
    for all of them.
    """
    priced = counting.priced
    limit = budget.resolve(counting.keep_all_bytes)
    tensors = limit - counting.least_beside_tensors
    clock = Watch(options.time_limit)
    first: CoreResult | None = None
    least = None
    for attempt in range(_MOST_SOLVES):
        problem = priced.problem.with_budget(tensors)
        if attempt == 0:
            counting.require_possible(limit, tensors)
        part = clock.remaining if attempt == _MOST_SOLVES - 1 or options.settings.iterations else clock.remaining / 2
        share = replace(options, time_limit=max(1.0, part))
        found, history = run(problem, strategy, share, on_progress=on_progress, interrupted=interrupted)
        if first is None:
            first = require_fitting(found, problem, options)
        elif not found.fits:
            break
        taken = counting.taken(found)
        if taken <= limit:
            whole = priced.problem.with_budget(limit)
            loose = replace(found, bound=first.bound, bound_scope=first.bound_scope, any_bound=first.any_bound, status=Status.FEASIBLE)
            result = certified(replace(loose, certificate=None, seconds=clock.elapsed), whole, options.settings_for(strategy).gap)
            return Result(result, priced, budget, options.settings.seed, history, counting=counting)
        if interrupted is not None and interrupted():
            raise InterruptedWorkError("interrupted before a schedule that fits was found; nothing was written")
        least = taken if least is None else min(least, taken)
        if tensors <= priced.floor.bytes:
            break
        step = max(taken - limit, int(_LEAST_STEP * (tensors - problem.base)), 1)
        tensors = max(min(tensors, found.peak_bytes) - step, priced.floor.bytes)
    assert least is not None
    raise LimitError(
        f"found no schedule with which the {counting.count.value} takes at most {exact_bytes(limit)}: the smallest found takes "
        f"{exact_bytes(least)}" + ("; --anchor none needs fewer nodes" if counting.anchor == "full" else ""),
        least,
    )


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
        reason = f"the lowest peak it found is {exact_bytes(result.peak_bytes)}, {format_bytes(over)} above the budget"
    else:
        reason = result.reason or "it returned none"
    if result.strategy != "auto":
        advice = "try --strategy auto"
    elif result.stop is Stop.TIME_LIMIT:
        advice = f"try a longer --time-limit than {options.time_limit:g} s or a larger budget"
    else:
        advice = "try a larger budget"
    works_at = None if result.certificate is None else result.peak_bytes
    raise LimitError(f"strategy {result.strategy} found no schedule within the budget ({reason}); {advice}", works_at)
