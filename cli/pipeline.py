"""From what the user asked for to a problem that can be solved: load, pin, price, build, resolve the budget."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.costs import Costs, flops_costs, given_costs, has_given_costs, roofline_costs, unit_costs
from ..core.errors import InfeasibleError, InputError
from ..core.graph import Graph, pin
from ..core.keep_all import keep_all_profile
from ..core.least_memory import least_memory
from ..core.problem import Floor, Problem, build_problem
from ..core.runtime import Runtime
from ..core.sequence import Profile
from ..core.units import Budget
from .amounts import exact_bytes
from .log import stage
from .options import GraphRequest
from .parameters import nearest, suggestion
from .session import Session
from .training import TrainingRequest

if TYPE_CHECKING:
    from ..io.costs_json import CostsFile
    from ..io.load import Loaded
    from ..io.onnx.differentiate.files import Differentiated
    from ..io.onnx.reader import OnnxModel

COST_MODELS = ("given", "roofline", "flops", "unit")


@dataclass(frozen=True, slots=True)
class Prepared:
    """A problem without a budget yet, and what is true of it under any budget."""

    loaded: Loaded
    problem: Problem
    keep_all: Profile
    """Of computing everything once, in the order of the graph."""
    floor: Floor
    training: Differentiated | None = None
    """What was made of a forward model first, if that was asked for."""

    @property
    def graph(self) -> Graph:
        return self.problem.graph

    @property
    def costs(self) -> Costs:
        return self.problem.costs

    def at(self, budget: Budget) -> Problem:
        """The problem under a budget; a percentage is of the peak of keeping everything."""
        return self.problem.with_budget(budget.resolve(self.keep_all.peak))


class NoScheduleError(InfeasibleError):
    """Proven: nothing fits. Carries what is known about the smallest budget, for `--json`."""

    def __init__(self, message: str, budget: int, floor: Floor) -> None:
        super().__init__(message)
        self.details: dict[str, Any] = {
            "budget_bytes": budget,
            "smallest_budget_bytes": floor.bytes,
            "binding_operation": floor.operation or None,
            "binding_reason": floor.reason,
        }


def note_if_forward_only(session: Session, prepared: Prepared) -> None:
    """Who has a model as it is trained by others has perhaps forgotten the loss."""
    if prepared.loaded.onnx is not None and not any(operation.backward for operation in prepared.graph.operations):
        session.note(
            "note: this model has no backward pass and was solved as it is; to train it within the budget, add --loss cross-entropy"
        )


def what_binds(floor: Floor) -> str:
    """The end of a sentence on why the floor is where it is."""
    return f"for operation {floor.operation!r}: {floor.reason}" if floor.operation else f"for {floor.reason}"


def require_above_floor(prepared: Prepared, problem: Problem) -> None:
    """A proof of infeasibility that costs nothing comes before any long work."""
    floor = prepared.floor
    if floor.bytes > problem.budget and prepared.keep_all.peak > problem.budget:
        message = (
            f"no schedule fits into {exact_bytes(problem.budget)}: the smallest budget that could work is {exact_bytes(floor.bytes)}, "
            f"{what_binds(floor)}"
        )
        raise NoScheduleError(message, problem.budget, floor)


def load_pinned(request: GraphRequest) -> tuple[Loaded, Graph]:
    """What the file holds, and its graph with what the user wants to run once."""
    from ..io.load import load

    check_costs_name(request.costs)
    with stage("load"):
        loaded = load(request.source, dims=request.dims, batch_size=request.batch_size)
    return loaded, _pinned(loaded.graph, request.pin)


def prepare(
    request: GraphRequest,
    training: TrainingRequest | None = None,
    seed: int = 0,
    measure: Callable[[OnnxModel | None], CostsFile] | None = None,
) -> Prepared:
    """Load the graph, pin and price it, and see what it needs. A forward model is differentiated first if `training` says so.

    `measure` takes the place of a cost model.
    """
    if training is None:
        made, (loaded, pinned) = None, load_pinned(request)
    else:
        made, loaded = _load_training(request, training, seed)
        pinned = _pinned(loaded.graph, request.pin)
    with stage("price"):
        if measure is None:
            graph, costs = priced(pinned, request.costs, request.device)
        else:
            from ..io.costs_json import match_costs

            graph, costs = match_costs(pinned, measure(loaded.onnx))
    with stage("build the problem"):
        problem = build_problem(graph, costs, reserve=request.reserve or 0, runtime=runtime_of(request, loaded))
        return Prepared(loaded, problem, keep_all_profile(problem), least_memory(problem), made)


def runtime_of(request: GraphRequest, loaded: Loaded) -> Runtime:
    """Whose memory model: onnxruntime's for what it can run, unless the user says otherwise."""
    if request.runtime is not None:
        return Runtime(request.runtime)
    return Runtime.ONNXRUNTIME if loaded.onnx is not None else Runtime.GENERIC


def _load_training(request: GraphRequest, training: TrainingRequest, seed: int) -> tuple[Differentiated, Loaded]:
    """The training graph of a forward model, named as the file it is written to."""
    from ..io.load import Loaded
    from ..io.onnx.external import model_bytes
    from ..io.onnx.reader import read_onnx

    check_costs_name(request.costs)
    with stage("load and differentiate"):
        made = training.differentiate(request.source, request.dims, request.batch_size, seed)
    stem = "model" if request.source == "-" else Path(request.source).stem
    with stage("read the training graph"):
        model = read_onnx(model_bytes(made.graph.model), name=f"{stem}.train")
    return made, Loaded(model.graph, "onnx", request.source, replace(model, path=made.path))


def keep_all_peak(graph: Graph, reserve: int, runtime: Runtime) -> int:
    """What percentages of a budget are of."""
    return keep_all_profile(build_problem(graph, unit_costs(graph), reserve=reserve, runtime=runtime)).peak


def check_costs_name(costs: str | None) -> None:
    """A misspelt model looks like the name of a file that is not there: say so before a large model is read."""
    if costs is None or costs in COST_MODELS or Path(costs).exists():
        return
    raise InputError(
        f"--costs: no cost model and no file {costs!r}{suggestion(costs, COST_MODELS) or '; models are ' + ', '.join(COST_MODELS)}"
    )


def priced(graph: Graph, model: str | None, device: str | None) -> tuple[Graph, Costs]:
    """The graph with its costs; a file of measured costs may bring workspaces too."""
    chosen = model or ("given" if device is None and has_given_costs(graph) else "roofline")
    if device is not None and chosen != "roofline":
        raise InputError(f"--device is for --costs roofline, not for --costs {chosen}")
    match chosen:
        case "given":
            if not has_given_costs(graph):
                raise InputError("--costs given: the file states no costs; use --costs roofline, flops or unit")
            return graph, given_costs(graph)
        case "flops":
            return graph, flops_costs(graph)
        case "unit":
            return graph, unit_costs(graph)
        case "roofline":
            from ..io.devices import default_device, get_device

            return graph, roofline_costs(graph, get_device(device or default_device()))
        case _:
            from ..io.costs_json import match_costs, read_costs

            return match_costs(graph, read_costs(Path(chosen)))


def _pinned(graph: Graph, patterns: tuple[str, ...]) -> Graph:
    if not patterns:
        return graph
    names = [operation.name for operation in graph.operations if not operation.view]
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in names):
            near = nearest(pattern, names)
            raise InputError(f"--pin: no operation is called {pattern!r}" + (f"; did you mean {near!r}?" if near else ""))
    return pin(graph, lambda name: any(fnmatchcase(name, pattern) for pattern in patterns))
