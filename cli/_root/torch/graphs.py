"""One graph of torch.compile: its joint graph, its plans by size, and what runs in a training step."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch
from torch.fx import GraphModule, Node

from ..io.torch.internals import (
    WeakStorage,
    allow_other_plans,
    boxed,
    ends_in_graph_break,
    input_number,
    run_boxed,
    split_joint,
    storage_identity,
)
from ..io.torch.joint_graphs import joint_roles
from ..io.torch.numbers import Numbers, with_all_numbers
from ..io.torch.rewriting import rewrite
from ..io.torch.roles import INPUTS, Roles
from ..io.torch.traced import TracedGraph, read_traced
from .plan import Plan
from .planning import Planned

if TYPE_CHECKING:
    from .inductor import Measured
    from .session import Session

Sizes = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Around:
    """What is in memory besides a graph while it runs, in bytes."""

    parameters: int = 0
    """Parameters and buffers of the model that the graph does not read."""
    inputs: int = 0
    """Inputs of other graphs of the step."""
    gradients: int = 0
    """Gradients that were there before the step."""
    held: int = 0
    """What graphs hold that ran before it in the same step."""
    inner_peak: int = 0
    """The most that graphs need that run between its forward and its backward pass."""
    inner_left: int = 0
    """Gradients that these leave behind."""

    @property
    def is_shared(self) -> bool:
        """True if other graphs belong to the same step."""
        return bool(self.held or self.inner_peak)

    @property
    def fixed(self) -> dict[str, int]:
        kinds = {
            "parameters of other graphs": self.parameters,
            "inputs of other graphs": self.inputs,
            "gradients from before": self.gradients,
            "held by other graphs": self.held,
        }
        return {kind: size for kind, size in kinds.items() if size}


@dataclass(eq=False)
class Emitted:
    """A plan as code: two graphs, each compiled when it first runs."""

    planned: Planned
    traced: TracedGraph
    plan: Plan
    forward: GraphModule
    backward: GraphModule

    @cached_property
    def run_forward(self) -> Callable[[list[Any]], Any]:
        return run_boxed(self.forward)

    @cached_property
    def run_backward(self) -> Callable[[list[Any]], Any]:
        return run_boxed(self.backward)


class CompiledGraph:
    """Compiles and runs one graph. AOTAutograd calls `partition` and then the compilers."""

    def __init__(self, session: Session, gm: GraphModule, inputs: Sequence[Any], name: str) -> None:
        self.session = session
        self.name = name
        self.is_broken = ends_in_graph_break(gm)
        self.inputs = [weakref.ref(each) if isinstance(each, torch.Tensor) else None for each in inputs]
        self.around = Around()
        self.shared = 0
        """Bytes of its inputs that graphs around it hold."""
        self.emitted: dict[Sizes, Emitted] = {}
        self.measured: Measured | None = None
        """The memory of a real step, if Inductor compiles the graph."""
        self._due: dict[int, tuple[WeakStorage, Emitted]] = {}
        """The plans whose backward pass is due, by the storage of a mark that was saved with the tensors."""
        self._joint: GraphModule | None = None
        self._roles: Roles | None = None
        self._numbers = Numbers((), ())
        self._first_sizes: Sizes = ()

    @property
    def is_trained(self) -> bool:
        """False for a graph without a backward pass, which runs as it is."""
        return self._joint is not None

    @property
    def plans(self) -> list[Plan]:
        plans = [each.plan for each in self.emitted.values()]
        peak = None if self.measured is None else self.measured.peak_bytes
        return plans if peak is None else [replace(plan, measured_peak_bytes=peak + plan.fixed_bytes) for plan in plans]

    @property
    def latest(self) -> Emitted:
        return next(reversed(self.emitted.values()))

    @property
    def own_input_bytes(self) -> int:
        """Inputs that the caller of the model holds."""
        return self.latest.traced.graph.fixed.get(INPUTS, 0) - self.shared

    def tensors(self) -> list[torch.Tensor]:
        """Its inputs that are still there: parameters and buffers."""
        return [tensor for each in self.inputs if each is not None and (tensor := each()) is not None]

    # Compiling

    def partition(
        self,
        joint: GraphModule,
        joint_inputs: object,
        *,
        num_fwd_outputs: int,
        static_lifetime_input_indices: Sequence[int] | None = None,
        **_: object,
    ) -> tuple[GraphModule, GraphModule]:
        """Plan the joint graph and split it into forward and backward graph."""
        placeholders = joint.graph.find_nodes(op="placeholder")
        self._joint = joint
        self._roles = joint_roles(joint, num_fwd_outputs, static_lifetime_input_indices or (), self._parameters(placeholders))
        self._numbers = Numbers.of(placeholders)
        self._first_sizes = self._numbers.hints
        self.around = self.session.around(self)
        traced = self.read(self._first_sizes)
        planned = self.session.plan_first(self, traced)
        self._first = self._emit(self._first_sizes, planned, traced)
        return self._first.forward, self._first.backward

    def compile_forward(self, gm: GraphModule, inputs: object) -> Callable[[list[Any]], Any]:
        """AOTAutograd may have changed the graph after the split."""
        self._first.forward = gm
        allow_other_plans()
        return boxed(self.run_forward)

    def compile_backward(self, gm: GraphModule, inputs: object) -> Callable[[list[Any]], Any]:
        """May be called as late as in the first backward pass."""
        self._first.backward = gm
        return boxed(self.run_backward)

    def compile_inference(self, gm: GraphModule, inputs: object) -> Callable[[list[Any]], Any]:
        """A graph without gradients: there is nothing to recompute for, it runs as it is."""
        return boxed(run_boxed(gm))

    def read(self, sizes: Sizes, around: Around | None = None) -> TracedGraph:
        """The graph at these sizes, with what is around it."""
        assert self._joint is not None
        assert self._roles is not None
        around = around or self.around
        roles = replace(self._roles, inner_peak_bytes=around.inner_peak, inner_left_bytes=around.inner_left)
        traced = read_traced(self._joint.graph, roles, self.name, self._numbers.values(sizes))
        return replace(traced, graph=replace(traced.graph, fixed={**traced.graph.fixed, **around.fixed}))

    def _split(self, traced: TracedGraph, planned: Planned) -> tuple[GraphModule, GraphModule]:
        assert self._joint is not None
        assert self._roles is not None
        schedule = planned.result.core.proof.schedule
        rewritten = rewrite(traced, schedule.computations, self._joint.graph)
        joint = GraphModule(self._joint, rewritten.graph)
        forward, backward = split_joint(joint, rewritten.saved, rewritten.saved_numbers, self._roles.forward_count)
        return with_all_numbers(forward, backward, self._numbers) if self._numbers.nodes and self.measured is None else (forward, backward)

    def _parameters(self, placeholders: Sequence[Node]) -> list[int]:
        """The placeholders that are parameters."""
        found: list[int] = []
        for number, node in enumerate(placeholders):
            place = input_number(node)
            tensor = self.inputs[place]() if place is not None and self.inputs[place] is not None else None  # type: ignore[misc]
            if isinstance(tensor, torch.nn.Parameter):
                found.append(number)
        return found

    def _emit(self, sizes: Sizes, planned: Planned, traced: TracedGraph) -> Emitted:
        plan = Plan(
            planned.result,
            sizes=dict(zip(self._numbers.names, sizes, strict=True)),
            from_cache=planned.from_cache,
            estimated=planned.estimated,
            provisional=self.session.is_provisional,
            compiler=self.session.options.compiler,
        )
        self.emitted[sizes] = Emitted(planned, traced, plan, *self._split(traced, planned))
        return self.emitted[sizes]

    # Running

    def run_forward(self, arguments: list[Any]) -> list[Any]:
        """The forward pass of a step.

        A tensor without bytes is saved with the others. It marks the plan, and tells for how long the backward pass is due: several steps
        may be under way at once, and a step may be dropped.
        """
        sizes = self._numbers.of_forward(arguments)
        self.session.step_may_begin()
        self.session.count_gradients(self, self._first.traced.device)
        emitted = self.emitted.get(sizes) or self._plan_sizes(sizes)
        outputs = list(emitted.run_forward(arguments))
        mark = torch.empty(0)
        self._due = {key: due for key, due in self._due.items() if due[0].is_alive}
        self._due[storage_identity(mark)] = WeakStorage(mark), emitted
        self.session.ran_forward(self, emitted, mark, outputs)
        outputs.insert(emitted.traced.roles.forward_count, mark)
        return outputs

    def run_backward(self, arguments: list[Any]) -> Any:
        """The backward pass of the plan whose forward pass ran."""
        mark = arguments.pop(len(self._numbers.nodes))
        return self._due[storage_identity(mark)][1].run_backward(arguments)

    def replace_plan(self, sizes: Sizes, planned: Planned, traced: TracedGraph, step_peak_bytes: int) -> None:
        """From now on, run another plan for these sizes."""
        emitted = self._emit(sizes, planned, traced)
        emitted.plan = replace(emitted.plan, step_peak_bytes=step_peak_bytes)

    def plan_again(self, gradients: int) -> None:
        """From now on, with so many bytes of gradients that are there before a step. Each size is planned when it is next run."""
        self.around = replace(self.around, gradients=gradients)
        self.emitted = {}

    def _plan_sizes(self, sizes: Sizes) -> Emitted:
        """The first step with these sizes: the plan of another size if it fits at these, else one of their own."""
        traced = self.read(sizes)
        return self._emit(sizes, self.session.plan_sizes(self, traced), traced)
