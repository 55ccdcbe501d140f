"""Find the schedule of one traced graph: measure, solve, remember."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from .. import __version__
from ..api.graph import LoadedGraph
from ..api.pricing import PricedGraph
from ..api.result import Result, versions_of
from ..api.smallest import find_min_budget
from ..api.solving import solve_priced
from ..core.errors import CheckmateError, InfeasibleError, LimitError
from ..core.events import Event
from ..core.model.digest import graph_digest
from ..core.model.memory_model import MemoryModel
from ..core.model.units import Budget, exact_bytes
from ..core.result import Status, certified
from ..core.settings import Known
from ..io.formats.costs_json import CostsFile, parse_costs, render_costs
from ..io.formats.result_cache import Cache, Entry, default_cache_folder, digest_key
from ..io.formats.schedule_json import Run
from ..io.formats.task_json import Answer, Task, parse_answer, render_answer
from ..io.torch.batch_norms import with_updates_in_place
from ..io.torch.operation_costs import measure_operations
from ..io.torch.traced import TracedGraph
from .options import MEASURED, CompileOptions

QUICK = 3.0
"""Seconds for a schedule of little memory, which is used for one step only."""


@dataclass(frozen=True)
class Planned:
    """A certified schedule of a traced graph, and the costs it was found for."""

    result: Result
    costs: CostsFile | None
    """None if the costs were not measured."""
    from_cache: bool = False
    estimated: tuple[str, ...] = ()


class Planner:
    """Plans graphs with one set of options."""

    def __init__(self, options: CompileOptions, on_task: Callable[[str], None], on_event: Callable[[Event], None]) -> None:
        self.options = options
        self._on_task = on_task
        self._on_event = on_event

    def plan(self, traced: TracedGraph, budget: Budget, known: Planned | None = None) -> Planned:
        """The cheapest schedule that fits. `known` is an earlier plan of the same graph, whose costs are used again."""
        key = self._key(traced, budget)
        found = self._look_up(key, traced, budget)
        if found is not None:
            return found
        costs, estimated = self._costs(traced, known)
        priced = self._price(traced, costs)
        self._on_task(f"planning {traced.graph.name}")
        try:
            result = solve_priced(priced, budget, self.options.strategy, self.options.solving, on_progress=self._on_event)
        except (InfeasibleError, LimitError) as error:
            result = self._from_smallest(priced, budget, error)
        planned = Planned(_settled(result), costs, False, estimated)
        self._remember(key, planned, budget)
        return planned

    def plan_smallest(self, traced: TracedGraph) -> Planned:
        """A schedule of little memory, found quickly. Its cost does not matter."""
        costs, estimated = self._costs(traced, None)
        self._on_task(f"planning {traced.graph.name} with little memory")
        solving = replace(self.options.solving, time_limit=min(QUICK, self.options.time_limit))
        found = find_min_budget(self._price(traced, costs), solving, on_progress=self._on_event)
        return Planned(_settled(found.result), costs, False, estimated)

    def _from_smallest(self, priced: PricedGraph, budget: Budget, error: CheckmateError) -> Result:
        """After a search that found nothing: look for a schedule of little memory, whatever it costs, and start from that. If it does not
        fit either, the error states what it needs."""
        self._on_task(f"{priced.graph.name}: looking for the smallest budget")
        quick = replace(self.options.solving, time_limit=max(QUICK, self.options.time_limit / 2))
        found = find_min_budget(priced, quick, on_progress=self._on_event)
        limit, least = priced.at(budget).budget, exact_bytes(found.budget_bytes)
        proven = isinstance(error, InfeasibleError)
        if not proven and found.budget_bytes <= limit:
            known = replace(quick.settings, known=Known(found.result.core.sequence))
            return solve_priced(priced, budget, self.options.strategy, replace(quick, settings=known), on_progress=self._on_event)
        where, name = found.binding_operation or "", priced.graph.name
        if proven:
            message = f"{name}: the budget of {exact_bytes(limit)} cannot be met; the smallest budget that works is {least}"
            message += f", needed at {where!r} ({error})"
        else:
            message = f"{name}: no schedule was found for {exact_bytes(limit)} in {self.options.time_limit:g} s; the smallest budget"
            message += f" that was found to work is {least}, needed at {where!r}; set that one, or a longer time_limit"
        raise InfeasibleError(message, limit, found.budget_bytes, where, "the schedule of the lowest peak found") from None

    def replay(self, traced: TracedGraph, planned: Planned, budget: Budget, known: Planned | None = None) -> Planned:
        """A known schedule at other sizes of the same graph, or with other things around it, whether or not it fits."""
        costs, estimated = self._costs(traced, known)
        priced = self._price(traced, costs)
        known_core = replace(planned.result.core, status=Status.FEASIBLE, bound=None, any_bound=None)
        core = certified(known_core, priced.at(budget), self._gap)
        return Planned(Result(core, priced, budget, self.options.seed), costs, False, estimated)

    def _costs(self, traced: TracedGraph, known: Planned | None) -> tuple[CostsFile | None, tuple[str, ...]]:
        if self.options.costs != MEASURED:
            return None, ()
        if known is not None:
            return known.costs, known.estimated
        self._on_task(f"measuring {traced.graph.name}")
        measured = measure_operations(traced)
        return measured.costs, measured.estimated

    def _price(self, traced: TracedGraph, costs: CostsFile | None) -> PricedGraph:
        options = self.options
        chosen: Any = costs if costs is not None else options.costs
        loaded = LoadedGraph(traced.graph, "torch", "")
        return loaded.price(chosen, device=options.device, pin=options.pin, reserve=options.reserve, memory_model=MemoryModel.TORCH)

    # The cache

    @property
    def _cache(self) -> Cache | None:
        folder = self.options.cache
        if folder is False or folder is None:
            return None
        stated = os.environ.get("CHECKMATE_CACHE")
        return Cache(folder if isinstance(folder, Path) else Path(stated) if stated else default_cache_folder())

    def _key(self, traced: TracedGraph, budget: Budget) -> str:
        """Costs that are measured differ from run to run; the key names the machine instead, and the entry contains them."""
        content = {
            "torch": torch.__version__,
            "checkmate": __version__,
            "machine": machine(traced.device),
            "graph": graph_digest(traced.graph),
            "work": [[each.work.flops, each.work.moved_bytes, each.pinned] for each in traced.graph.operations],
            **self.options.key,
            "budget": budget.text,
        }
        return digest_key(content)

    def _look_up(self, key: str, traced: TracedGraph, budget: Budget) -> Planned | None:
        """The cached plan, if it is undamaged and passes the verifier."""
        cache = self._cache
        if cache is None:
            return None
        try:
            entry = cache.get(key)
            if entry is None:
                return None
            stored = dict(entry.answer)
            measured = stored.pop("measured")
            costs = None if measured is None else parse_costs(measured, str(cache.path_of(key)))
            estimated = tuple(str(kind) for kind in stored.pop("estimated"))  # type: ignore[attr-defined]
            priced = self._price(traced, costs)
            problem = priced.at(budget)
            answer = parse_answer(stored, problem, str(cache.path_of(key)))
            core = certified(replace(answer.result, strategy=self.options.strategy, seconds=answer.run.seconds), problem, self._gap)
            if not core.fits:
                return None
        except (CheckmateError, KeyError, TypeError) as error:
            self._on_event(Event(message=f"ignoring a damaged cache entry and solving again: {error}", warning=True, phase=""))
            return None
        result = Result(core, priced, budget, self.options.seed, run=answer.run, versions=answer.versions)
        return Planned(result, costs, True, estimated)

    def _remember(self, key: str, planned: Planned, budget: Budget) -> None:
        cache = self._cache
        if cache is None:
            return
        result = planned.result
        settings = self.options.solving.settings_for(self.options.strategy)
        task = Task(result.priced.at(budget), self.options.strategy, settings, self.options.time_limit)
        answer = Answer(result.core, Run(round(result.seconds, 6), result.created), versions_of(result.provenance))
        measured = None if planned.costs is None else render_costs(planned.costs)
        about = {
            "checkmate": __version__,
            "torch": torch.__version__,
            "graph": result.priced.graph.name,
            "operations": result.operations,
            "cost_model": result.priced.costs.model,
            "cost_unit": result.priced.costs.unit,
            "budget_bytes": result.budget_bytes,
            **task.options,
        }
        try:
            cache.put(Entry(key, about, {**render_answer(answer), "measured": measured, "estimated": list(planned.estimated)}))
        except CheckmateError as error:
            self._on_event(Event(message=f"the schedule is not cached: {error}", warning=True, phase=""))

    @property
    def _gap(self) -> float:
        return self.options.solving.settings_for(self.options.strategy).gap


def machine(device: torch.device) -> str:
    """What measured costs depend on."""
    if device.type == "cuda":
        return f"cuda {torch.cuda.get_device_name(device)}" if torch.cuda.is_available() else "cuda"
    return f"{device.type} {platform.machine()} {torch.backends.cpu.get_cpu_capability()} {os.cpu_count()} {torch.get_num_threads()}"


def _settled(result: Result) -> Result:
    """The schedule with updates of running statistics where they are written; certified again if that moves any."""
    problem = result.core.proof.problem
    assert result.core.sequence is not None
    sequence = with_updates_in_place(problem, result.core.sequence)
    if sequence == result.core.sequence:
        return result
    moved = certified(replace(result.core, sequence=sequence), problem, 0.0)
    return replace(result, core=replace(moved, status=result.core.status)) if moved.fits else result
