"""A graph with its costs: the problem for any budget, and what holds for every budget."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from ..core.errors import InfeasibleError, InputError
from ..core.events import stage
from ..core.model.costs import Costs, flops_costs, given_costs, has_given_costs, measured_costs, roofline_costs, unit_costs
from ..core.model.floors import Floor, least_memory
from ..core.model.graph import Graph, pin
from ..core.model.memory_model import MemoryModel
from ..core.model.problem import Problem, build_problem
from ..core.model.units import Budget, exact_bytes, parse_budget, parse_size
from ..core.schedule.peak import keep_all_profile
from ..core.schedule.sequence import Profile
from ..core.spelling import nearest, suggestion
from .graph import LoadedGraph

if TYPE_CHECKING:
    from .result import Result

COST_MODELS = ("given", "roofline", "flops", "unit")
CostsChoice: TypeAlias = "str | Path | Mapping[str, float] | None"


@dataclass(frozen=True)
class PricedGraph:
    """A graph with a cost for every operation: a problem without a budget, and what holds for every budget."""

    loaded: LoadedGraph
    problem: Problem
    keep_all: Profile
    """The profile of keep-all: every operation once, in the order of the graph."""
    floor: Floor
    """Proven: every schedule needs at least this much."""

    @property
    def graph(self) -> Graph:
        """The graph, with pinned operations marked and with measured workspaces."""
        return self.problem.graph

    @property
    def costs(self) -> Costs:
        return self.problem.costs

    @property
    def reserve(self) -> int:
        return self.problem.base - self.problem.graph.fixed_bytes

    def at(self, budget: Budget | str | int) -> Problem:
        """The problem with a budget; percentages refer to the keep-all peak."""
        return self.problem.with_budget(as_budget(budget).resolve(self.keep_all.peak))

    def require_possible(self, problem: Problem) -> None:
        """Raise InfeasibleError if the budget is below the floor, before any solving."""
        floor = self.floor
        if floor.bytes > problem.budget and self.keep_all.peak > problem.budget:
            message = (
                f"no schedule fits into {exact_bytes(problem.budget)}: the smallest budget that could work is {exact_bytes(floor.bytes)}, "
                f"needed {what_binds(floor)}"
            )
            raise InfeasibleError(message, problem.budget, floor.bytes, floor.operation, floor.reason)

    def solve(self, budget: Budget | str | int, **options: Any) -> Result:
        """The cheapest schedule that fits; the options are those of `checkmate.solve`."""
        from .solving import solve_priced, solving_options

        callbacks = {name: options.pop(name) for name in ("on_progress", "interrupted") if name in options}
        strategy = options.pop("strategy", "auto")
        return solve_priced(self, as_budget(budget), strategy, solving_options(**options), **callbacks)


def as_budget(budget: Budget | str | int) -> Budget:
    return budget if isinstance(budget, Budget) else parse_budget(str(budget))


def what_binds(floor: Floor) -> str:
    """What the floor is needed for, to complete a sentence."""
    return f"for operation {floor.operation!r}: {floor.reason}" if floor.operation else f"for {floor.reason}"


def price(
    loaded: LoadedGraph,
    costs: Any = None,
    *,
    device: str | None = None,
    pin: tuple[str, ...] = (),
    reserve: int | str = 0,
    memory_model: MemoryModel | str | None = None,
) -> PricedGraph:
    """See `LoadedGraph.price`."""
    with stage("price"):
        graph, priced = price_operations(pinned(loaded.graph, pin), costs, device)
    with stage("build the problem"):
        model = loaded.memory_model if memory_model is None else as_memory_model(memory_model)
        problem = build_problem(graph, priced, reserve=parse_size(str(reserve)), memory_model=model)
        return PricedGraph(loaded, problem, keep_all_profile(problem), least_memory(problem))


def as_memory_model(name: MemoryModel | str) -> MemoryModel:
    known = [model.value for model in MemoryModel]
    if name not in known and not isinstance(name, MemoryModel):
        raise InputError(f"no memory model {name!r}; choose from {', '.join(known)}{suggestion(str(name), known)}")
    return MemoryModel(name)


def keep_all_peak(graph: Graph, reserve: int, memory_model: MemoryModel) -> int:
    """The peak that percentages of a budget refer to."""
    return keep_all_profile(build_problem(graph, unit_costs(graph), reserve=reserve, memory_model=memory_model)).peak


def check_costs_name(costs: object) -> None:
    """A misspelt cost model looks like the name of a missing file: report it before a large model is read."""
    if not isinstance(costs, str) or costs in COST_MODELS or Path(costs).exists():
        return
    raise InputError(
        f"--costs: no cost model or file {costs!r}{suggestion(costs, COST_MODELS) or '; cost models are ' + ', '.join(COST_MODELS)}"
    )


def price_operations(graph: Graph, costs: Any, device: str | None) -> tuple[Graph, Costs]:
    """The graph with its costs; measured costs may include workspaces."""
    from ..io.formats.costs_json import CostsFile, match_costs, read_costs

    if isinstance(costs, CostsFile):
        return match_costs(graph, costs)
    if isinstance(costs, Mapping):
        return graph, measured_costs(graph, costs)
    check_costs_name(costs)
    chosen = str(costs or ("given" if device is None and has_given_costs(graph) else "roofline"))
    if device is not None and chosen != "roofline":
        raise InputError(f"--device is for --costs roofline, not for --costs {chosen}; leave it out")
    match chosen:
        case "given":
            if not has_given_costs(graph):
                raise InputError("--costs given: the graph file has no costs; use --costs roofline, flops or unit")
            return graph, given_costs(graph)
        case "flops":
            return graph, flops_costs(graph)
        case "unit":
            return graph, unit_costs(graph)
        case "roofline":
            from ..io.formats.devices import default_device, get_device

            return graph, roofline_costs(graph, get_device(device or default_device()))
        case _:
            return match_costs(graph, read_costs(Path(chosen)))


def pinned(graph: Graph, patterns: tuple[str, ...]) -> Graph:
    """The graph, with the operations pinned that the user named."""
    if not patterns:
        return graph
    names = [operation.name for operation in graph.operations if not operation.view]
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in names):
            near = nearest(pattern, names)
            raise InputError(f"--pin: no operation matches {pattern!r}" + (f"; did you mean {near!r}?" if near else ""))
    return pin(graph, lambda name: any(fnmatchcase(name, pattern) for pattern in patterns))
