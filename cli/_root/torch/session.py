"""A compiled model: the graphs that torch.compile makes of it share one budget.

Most models are one graph. A model with graph breaks is several, and torch.compile shows them one after the other while the first step
runs: the first graph must be planned before the others are known. It then gets a schedule of as little memory as possible. When the second
step begins, all graphs are known, and the budget is shared out (`sharing`).
"""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch.fx import GraphModule

from ..core.errors import CheckmateError, InfeasibleError
from ..core.model.memory_model import allocated_bytes
from ..core.model.units import count, exact_bytes, format_bytes
from ..io.torch.internals import WeakStorage, calling_module, compile_in_parts
from ..io.torch.traced import TracedGraph
from .graphs import Around, CompiledGraph, Emitted
from .options import INDUCTOR, CompileOptions
from .planning import Planned, Planner
from .progress import Display
from .sharing import held_bytes, share_budget

if TYPE_CHECKING:
    from collections.abc import Iterator


MOST_SOLVED = 8
"""Sizes of one graph that get a plan of their own; as many as torch.compile compiles a function anew before it gives up."""


@dataclass(frozen=True)
class Pending:
    """A graph whose forward pass ran and whose backward pass did not."""

    graph: CompiledGraph
    emitted: Emitted
    mark: WeakStorage
    """In memory for as long as the backward pass is due."""
    outputs: tuple[WeakStorage, ...]


class Session:
    """All graphs of one compiled model or function."""

    def __init__(self, options: CompileOptions, model: Any = None) -> None:
        self.options = options
        self.graphs: list[CompiledGraph] = []
        self._module = weakref.ref(model) if isinstance(model, torch.nn.Module) else None
        self._name = type(model).__name__ if isinstance(model, torch.nn.Module) else getattr(model, "__name__", "")
        self._pending: list[Pending] = []
        self._trail: list[CompiledGraph] = []
        """The graphs of the present step, in the order of their forward passes."""
        self.is_provisional = False
        """Some graphs were planned before all were known."""
        self._warned_of_gradients = False
        self._warned_of_nothing = False

    # Compiling

    def __call__(self, gm: GraphModule, inputs: Sequence[Any], **_: object) -> Callable[..., Any]:
        """Compile one graph: the backend of torch.compile. An error is raised when the graph is first run."""
        try:
            return self._compile(gm, inputs)
        except CheckmateError as error:
            return raising(error)

    def _compile(self, gm: GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
        if self._module is None and (module := calling_module()) is not None:
            self._module, self._name = weakref.ref(module), type(module).__name__
        name = self._name or "graph"
        compiled: Callable[..., Any]
        graph = CompiledGraph(self, gm, inputs, name if not self.graphs else f"{name}.{len(self.graphs) + 1}")
        if self.options.compiler == INDUCTOR:
            from .inductor import compile_graph

            compiled = compile_graph(self, graph, gm, inputs)
            self.graphs += [graph] if graph.is_trained else []
            return compiled
        compilers = {
            "fw_compiler": graph.compile_forward,
            "bw_compiler": graph.compile_backward,
            "inference_compiler": graph.compile_inference,
        }
        compiled = compile_in_parts(gm, inputs, graph.partition, compilers)
        if graph.is_trained:
            self.graphs.append(graph)
        return compiled

    @contextmanager
    def planner(self) -> Iterator[Planner]:
        with Display(self.options) as display:
            yield Planner(self.options, display.begin, display.on_event)

    def around(self, graph: CompiledGraph) -> Around:
        """What is in memory besides this graph, as far as it is known now."""
        own = {tensor.untyped_storage()._cdata for tensor in graph.tensors()}
        device = next((tensor.device for tensor in graph.tensors()), torch.device("cpu"))
        parameters = 0
        for tensor in self._model_tensors():
            if tensor.device != device:
                continue
            storage = tensor.untyped_storage()
            if storage._cdata not in own:
                own.add(storage._cdata)
                parameters += allocated_bytes(storage.nbytes(), device.type)
        self._pending = [each for each in self._pending if each.mark.is_alive]
        graph.shared = self._shared(graph)
        held = sum(held_bytes(each.emitted.planned) for each in self._pending) - graph.shared
        inputs = sum(other.own_input_bytes for other in {each.graph for each in self._pending})
        return Around(parameters, inputs, self._gradient_bytes(device), max(0, held))

    def _gradient_bytes(self, device: torch.device) -> int:
        """Gradients that are there before a step."""
        present = (each.grad for each in self._model_tensors() if each.grad is not None and each.device == device)
        return sum(allocated_bytes(each.untyped_storage().nbytes(), device.type) for each in present)

    def _shared(self, graph: CompiledGraph) -> int:
        """Inputs of a graph that are outputs of pending graphs: they count as its inputs."""
        outputs = [storage for each in self._pending for storage in each.outputs]
        shared = [tensor for tensor in graph.tensors() if any(storage.is_of(tensor) for storage in outputs)]
        return sum(allocated_bytes(tensor.untyped_storage().nbytes(), tensor.device.type) for tensor in shared)

    def _model_tensors(self) -> list[torch.Tensor]:
        module = self._module() if self._module is not None else None
        return [] if module is None else [*module.parameters(), *module.buffers()]

    def plan_first(self, graph: CompiledGraph, traced: TracedGraph) -> Planned:
        """Plan a graph that was just traced. A share of the keep-all peak is a share of that of the whole step, which is not known yet."""
        with self.planner() as planner:
            if self._is_part(graph):
                self.is_provisional = True
                planned = planner.plan_smallest(traced)
                limit = self.options.budget.bytes
                if limit is not None and planned.result.peak_bytes > limit:
                    raise too_small(limit, planned.result.peak_bytes, traced.graph.name)
                return planned
            return planner.plan(traced, self.options.budget)

    def _is_part(self, graph: CompiledGraph) -> bool:
        """True if other graphs belong to the same step: those that ran before, or those after a graph break. With Inductor, graphs do not
        know of each other."""
        if self.options.compiler == INDUCTOR:
            return False
        if self._pending or graph.is_broken:
            return True
        own = {id(tensor) for tensor in graph.tensors()}
        return any(tensor.requires_grad and id(tensor) not in own for tensor in self._model_tensors())

    def plan_sizes(self, graph: CompiledGraph, traced: TracedGraph) -> Planned:
        """Plan a graph at other sizes. After a few sizes, a known plan that fits is good enough."""
        with self.planner() as planner:
            if self.is_provisional:
                return planner.plan_smallest(traced)
            if len(graph.emitted) >= MOST_SOLVED:
                replayed = [planner.replay(traced, known.planned, self.options.budget) for known in graph.emitted.values()]
                fitting = [each for each in replayed if each.result.core.fits]
                if fitting:
                    return min(fitting, key=lambda each: each.result.cost)
            return planner.plan(traced, self.options.budget)

    # Running

    def step_may_begin(self) -> None:
        """Before a forward pass. If nothing is pending, a new step begins, and the graphs of the last one are known."""
        self._pending = [each for each in self._pending if each.mark.is_alive]
        if self._pending:
            return
        trail, self._trail = self._trail, []
        if self.is_provisional and trail:
            self._share(list(dict.fromkeys(trail)))

    def count_gradients(self, graph: CompiledGraph, device: torch.device) -> None:
        """Before a forward pass. Gradients that are kept from step to step, because they are summed over several or set to zero in place,
        are not there in the first step: when they are first seen, the graph is planned again with them."""
        present = 0 if self._pending else self._gradient_bytes(device)
        if present <= graph.around.gradients:
            return
        if not graph.around.is_shared:
            graph.plan_again(present)
        elif not self._warned_of_gradients:
            self._warned_of_gradients = True
            warnings.warn(
                f"checkmate: gradients of {format_bytes(present)} are in memory before the step, which is planned without them; "
                f"set them to None before every step, or keep them in `reserve`",
                stacklevel=2,
            )

    def ran_forward(self, graph: CompiledGraph, emitted: Emitted, mark: torch.Tensor, outputs: Sequence[Any]) -> None:
        """Remember that a backward pass is due."""
        count = emitted.traced.roles.forward_count
        returned = tuple(WeakStorage(each) for each in outputs[:count] if isinstance(each, torch.Tensor))
        self._pending = [each for each in self._pending if each.mark.is_alive]
        self._pending.append(Pending(graph, emitted, WeakStorage(mark), returned))
        self._trail.append(graph)

    def _share(self, trail: list[CompiledGraph]) -> None:
        self._warn_of_uncompiled()
        self.is_provisional = False
        with self.planner() as planner:
            share_budget(trail, self.options.budget, planner)

    def warn_if_nothing_is_planned(self) -> None:
        """After a forward pass of the compiled model. torch.compile gives up without a word on a function with a graph break in a loop."""
        if self.graphs or self._warned_of_nothing or not torch.is_grad_enabled():
            return
        if any(tensor.requires_grad for tensor in self._model_tensors()):
            self._warned_of_nothing = True
            warnings.warn(
                f"checkmate: torch.compile leaves all of {self._name} to eager mode, so that nothing is planned and the budget does "
                "not hold; TORCH_LOGS=graph_breaks shows why, and fullgraph=True makes it an error",
                stacklevel=2,
            )

    def _warn_of_uncompiled(self) -> None:
        """Say so if a part of the model runs outside the compiled graphs: its memory is neither planned nor counted."""
        module = self._module() if self._module is not None else None
        if module is None:
            return
        known = {id(tensor) for graph in self.graphs for tensor in graph.tensors()}
        missing = [name for name, tensor in module.named_parameters() if tensor.requires_grad and id(tensor) not in known]
        if missing:
            warnings.warn(
                f"checkmate: torch.compile leaves a part of {self._name} to eager mode ({count(len(missing), 'parameter')}, such as "
                f"{missing[0]}); what that part holds in memory is not planned and not part of the budget: keep it in `reserve`",
                stacklevel=2,
            )


def too_small(limit: int, smallest: int, name: str) -> InfeasibleError:
    """The error for a budget that nothing was found for."""
    message = (
        f"{name}: no schedule was found for {exact_bytes(limit)}; the smallest budget that was found to work is {exact_bytes(smallest)}"
    )
    return InfeasibleError(message, limit, smallest, name, "the schedule of the lowest peak")


def raising(error: CheckmateError) -> Callable[..., Any]:
    """A compiled graph that fails. torch.compile would wrap an error of a backend into one of its own."""

    def fail(*_: object) -> Any:
        raise error

    return fail
