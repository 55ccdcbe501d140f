"""The largest batch that trains within a budget. Nothing is run at that size: the step is traced with fake tensors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from ..api.graph import TORCH, LoadedGraph
from ..api.largest import ONE_FORWARD, Allowance, parse_allowance
from ..api.pricing import PricedGraph, as_budget
from ..api.result import Result
from ..api.solving import SolvingOptions, solving_options
from ..core.errors import InputError
from ..core.events import Event, Watch
from ..core.model.graph import Graph
from ..core.model.units import Budget, format_bytes, parse_size
from ..core.result import Result as CoreResult
from ..core.result import Status, Stop, certified
from ..io.torch.growing import GrowingGraph
from ..io.torch.operation_costs import measure_operations
from ..io.torch.traced import TracedGraph
from ..io.torch.tracing import trace_step
from .plan import Plan

if TYPE_CHECKING:
    from ..core.studies.largest import Largest, Trial

STRATEGIES = ("keep-all", "auto")
TOLERANCE = 1e-9
"""Relative tolerance for comparing costs with their limit."""


@dataclass(frozen=True, eq=False, repr=False)
class MaxBatch:
    """The largest batch, and its schedule."""

    size: int
    """0 if no batch fits."""
    keep_all_size: int
    """The largest batch without recomputation."""
    budget_bytes: int
    plan: Plan | None
    """The schedule of the largest batch."""
    impossible_from: int | None
    """Proven: no batch from this size on fits."""
    sizes_tried: int

    def __repr__(self) -> str:
        return f"<MaxBatch {self.size} within {format_bytes(self.budget_bytes)}; {self.keep_all_size} without recomputation>"


def max_batch(
    model: torch.nn.Module,
    make_inputs: Callable[[int], Any],
    budget: str | int,
    *,
    overhead: str = ONE_FORWARD,
    reserve: int | str = 0,
    costs: str = "roofline",
    device: str | None = None,
    time_limit: float = 10.0,
    seed: int = 0,
    on_progress: Callable[[Event], None] | None = None,
) -> MaxBatch:
    """The largest batch that trains within a budget.

    `make_inputs(size)` returns the inputs of the model: a tensor, a tuple, or a dict of keywords. The model returns its loss, or outputs
    that the loss is computed from. `budget` and `reserve` are those of `compile`, except that the budget is in bytes. A schedule may cost
    at most `overhead` more than a step without recomputation: a share such as `"30%"`, or one more forward pass. Costs are those of a cost
    model, because large tensors are not made; `device` is the machine for `roofline`. `time_limit` is for each size tried.
    """
    limit = as_budget(budget)
    if limit.bytes is None:
        raise InputError(
            f"budget {limit.text}: the keep-all peak grows with the batch, so a percentage is not possible; write bytes, such as 16GB"
        )
    options = solving_options(time_limit=time_limit, seed=seed)
    sizes = _Sizes(model, make_inputs, limit, parse_allowance(overhead), parse_size(str(reserve)), costs, device)
    return sizes.search(options, on_progress or (lambda event: None))


class _Sizes:
    def __init__(
        self,
        model: torch.nn.Module,
        make_inputs: Callable[[int], Any],
        budget: Budget,
        allowance: Allowance,
        reserve: int,
        costs: str,
        device: str | None,
    ) -> None:
        self._model = model
        self._make_inputs = make_inputs
        self._budget = budget
        self._allowance = allowance
        self._pricing: dict[str, Any] = {"costs": costs, "device": device, "reserve": reserve}
        self._growing = GrowingGraph(
            lambda size: self._trace(size).graph, lambda size: measure_operations(self._trace(size)).costs.workspace
        )

    def search(self, options: SolvingOptions, on_event: Callable[[Event], None]) -> MaxBatch:
        from ..core.studies.largest import SizeSearch

        search = SizeSearch(self._trial, options.settings_for, lambda strategy, size: Watch(options.time_limit, on_event))
        found = {strategy: search.find(strategy) for strategy in STRATEGIES}
        best = max(found.values(), key=lambda each: each.size)
        result = None if best.result is None else self._settled(best, options, on_event)
        return MaxBatch(
            size=0 if result is None else int(result.provenance["batch"]),
            keep_all_size=found["keep-all"].size,
            budget_bytes=self._budget.bytes or 0,
            plan=None if result is None else Plan(result, sizes={"batch": int(result.provenance["batch"])}),
            impossible_from=search.impossible_from(),
            sizes_tried=search.sizes_tried,
        )

    def _trace(self, size: int) -> TracedGraph:
        return trace_step(self._model, self._make_inputs, size)[0]

    def _exact(self, size: int) -> Graph:
        """A trace of this size, with the workspace that is expected there."""
        return self._growing.with_workspace(self._trace(size).graph, size)

    def _price(self, graph: Graph) -> PricedGraph:
        return LoadedGraph(graph, TORCH, "").price(**self._pricing)

    def _trial(self, size: int) -> Trial:
        from ..core.studies.largest import Trial

        problem = self._price(self._growing.at(size)).at(self._budget)
        return Trial(size, problem, self._allowance.most(problem))

    def _settled(self, best: Largest, options: SolvingOptions, on_event: Callable[[Event], None]) -> Result | None:
        """The schedule of the largest size, on a trace of that size. If workspace grows faster than the batch, a smaller size may be
        left."""
        assert best.result is not None
        size, sequence = best.size, best.result.sequence
        while size > 0:
            priced = self._price(self._exact(size))
            problem = priced.at(self._budget)
            provenance: dict[str, str | int | float] = {"found_by": best.result.found_by, "batch": size}
            known = CoreResult(Status.FEASIBLE, Stop.FINISHED, sequence, provenance=provenance, strategy=best.strategy)
            core = certified(known, problem, options.settings_for(best.strategy).gap)
            if core.fits and core.cost <= self._allowance.most(problem) * (1 + TOLERANCE):
                return Result(core, priced, self._budget, options.settings.seed)
            on_event(Event("", message=f"a batch of {size} takes {format_bytes(core.peak_bytes)}; trying a smaller one"))
            size -= max(1, size // 50)
        return None
