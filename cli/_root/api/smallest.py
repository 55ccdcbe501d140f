"""The smallest budget for which a schedule is found, and a proven limit below which none exists."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..core.events import Event, Watch, relative_gap
from ..core.model.memory_model import MemoryModel
from ..core.model.units import Budget, format_bytes
from ..core.result import Result as CoreResult
from ..core.result import Scope, Status, certified
from ..core.settings import Order
from .graph import LoadedGraph, as_graph
from .pricing import PricedGraph
from .result import Result
from .solving import SolvingOptions, solving_options

if TYPE_CHECKING:
    from ..core.studies.smallest import Smallest
    from .pricing import CostsChoice

STRATEGY = "min-budget"


@dataclass(frozen=True, eq=False, repr=False)
class MinBudget:
    """The smallest budget that was found, its schedule, and a proven limit."""

    result: Result
    """The schedule. Its cost was not limited."""
    smallest: Smallest
    order: Order
    near_enough: float
    """The gap at which it counts as optimal."""

    @property
    def budget_bytes(self) -> int:
        return self.smallest.budget

    @property
    def limit_bytes(self) -> int:
        """Proven: every schedule in `limit_scope` needs at least this much."""
        return self.smallest.limit.bytes

    @property
    def limit_scope(self) -> Scope:
        return self.smallest.scope

    @property
    def gap(self) -> float:
        """(budget - limit) / budget."""
        return relative_gap(self.budget_bytes, self.limit_bytes)

    @property
    def status(self) -> Status:
        return Status.OPTIMAL if self.gap <= self.near_enough else Status.FEASIBLE

    @property
    def binding_operation(self) -> str | None:
        """The operation at the peak of the schedule."""
        proof = self.result.core.proof
        computations = proof.schedule.computations
        return proof.problem.graph.operations[computations[proof.simulation.peak_computation]].name if computations else None

    def __repr__(self) -> str:
        return f"<MinBudget {format_bytes(self.budget_bytes)}, proven limit {format_bytes(self.limit_bytes)} ({self.limit_scope.value})>"


def min_budget(
    graph: LoadedGraph | Any,
    *,
    time_limit: float = 60.0,
    order: str | None = None,
    seed: int = 0,
    threads: int | None = None,
    costs: CostsChoice = None,
    pin: Iterable[str] = (),
    reserve: int | str = 0,
    memory_model: MemoryModel | str | None = None,
    on_progress: Callable[[Event], None] | None = None,
    interrupted: Callable[[], bool] | None = None,
) -> MinBudget:
    """Search for the smallest budget for which a graph has a schedule, within the time limit."""
    priced = as_graph(graph).price(costs, pin=pin, reserve=reserve, memory_model=memory_model)
    options = solving_options(time_limit=time_limit, order=order, seed=seed, threads=threads)
    return find_min_budget(priced, options, on_progress=on_progress, interrupted=interrupted)


def find_min_budget(
    priced: PricedGraph,
    options: SolvingOptions,
    *,
    on_progress: Callable[[Event], None] | None = None,
    interrupted: Callable[[], bool] | None = None,
) -> MinBudget:
    """`min_budget` for a graph that has its costs."""
    from ..core.studies.smallest import find_smallest

    settings = options.settings_for("auto")
    watch = Watch(options.time_limit, on_progress or (lambda event: None), interrupted or (lambda: False))
    smallest = find_smallest(priced.problem, settings, watch)
    found = CoreResult(
        Status.FEASIBLE,
        smallest.stop,
        smallest.sequence,
        provenance={"found_by": smallest.found_by},
        strategy=STRATEGY,
        seconds=watch.elapsed,
    )
    proven = certified(found, priced.problem.with_budget(smallest.budget), settings.gap)
    budget = Budget(str(smallest.budget), bytes=smallest.budget)
    return MinBudget(Result(proven, priced, budget, settings.seed), smallest, settings.order, settings.gap)
