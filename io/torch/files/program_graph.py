"""From a `.pt2` file to a graph: the program is traced with fake tensors, with its backward pass if it is to be trained.

The result runs in one part: it returns the loss, the other outputs, new values of buffers and the gradients by parameter. The gradient that
the backward pass starts from is one, as in `loss.backward()`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch.fx import Graph as FxGraph
from torch.fx import GraphModule, Node

from ....core.errors import CheckmateError, InputError
from ....core.spelling import suggestion
from ..internals import (
    fake_tensors,
    gradient_of,
    input_number,
    is_backward_node,
    is_tangent,
    mutated_input,
    output_number,
    outputs_of,
    trace_joint,
)
from ..roles import BUFFERS, CONSTANTS, INPUTS, PARAMETERS, Roles
from ..traced import TracedGraph, read_traced
from ..workspaces import with_estimates
from .archive import ProgramArchive
from .program import ProgramModule, fake_input
from .program_json import InputSpec, OutputSpec, Program, Ref
from .program_training import Objective, ProgramTraining, TrainingModule, fake_labels, find_objective, label_input, trained

_KINDS = {"parameter": PARAMETERS, "buffer": BUFFERS, "constant": CONSTANTS, "user": INPUTS}


@dataclass(frozen=True, eq=False)
class TorchProgram:
    """A program as a traced graph that runs in one part."""

    archive: ProgramArchive
    traced: TracedGraph
    module: GraphModule
    """Its placeholders are `inputs`, its outputs are `outputs`, in this order."""
    inputs: tuple[InputSpec, ...]
    outputs: tuple[OutputSpec, ...]
    sizes: Mapping[str, int]
    objective: Objective | None = None
    """The loss that it was differentiated from, if it was."""
    training: ProgramTraining = field(default_factory=ProgramTraining)

    @property
    def program(self) -> Program:
        return self.archive.program


def read_program(
    archive: ProgramArchive,
    dims: Mapping[str, int],
    batch_size: int | None,
    training: ProgramTraining | None = None,
    name: str = "model",
    *,
    merge: bool = True,
) -> TorchProgram:
    """Trace the program of an archive at these sizes. Without `merge`, recomputations in the file stay what they are."""
    program, where = archive.program, archive.where
    sizes = chosen_sizes(program, dims, batch_size, where)
    options = training or ProgramTraining()
    if program.is_differentiated:
        if training is not None and (training.loss or training.loss_output):
            raise InputError(f"{where}: this program has a backward pass already; leave out the loss")
        objective = None
    else:
        objective = find_objective(program, options, where)
    module = ProgramModule(program, where)
    specs = [spec for spec in program.inputs if spec.kind != "value"]
    if any(spec.name not in program.tensors for spec in specs):
        raise InputError(f"{where}: an input that is a number cannot be free; export the program with tensors as inputs")
    wanted = trained(program, options, where) if objective is not None else frozenset()
    if objective is not None and not wanted:
        raise InputError(f"{where}: there is no parameter to train")
    with fake_tensors():
        inputs = [fake_input(program.tensors[spec.name], sizes, f"{where}: {spec.name}", spec.target in wanted) for spec in specs]
        if objective is not None and objective.added:
            with torch.no_grad():
                copies = [fake_input(program.tensors[spec.name], sizes, where, False) for spec in specs]
                inputs.append(fake_labels(objective, module(*copies)[objective.place], where))
            specs = [*specs, label_input()]
    traced_module: torch.nn.Module = module if objective is None else TrainingModule(module, objective)
    joint, count = _traced(traced_module, inputs, where)
    return _in_one_part(archive, joint, count, specs, sizes, objective, options, name, merge)


def chosen_sizes(program: Program, dims: Mapping[str, int], batch_size: int | None, where: str) -> dict[str, int]:
    for name in dims:
        if name not in program.symbols:
            known = ", ".join(program.symbols) or "none"
            raise InputError(f"{where}: no free size {name!r}{suggestion(name, program.symbols) or f'; free sizes are {known}'}")
    free = [name for name in program.symbols if name not in dims]
    if batch_size is not None and not free:
        raise InputError(f"{where}: no free size for --batch-size: export the program with dynamic_shapes")
    return {**dims, **({free[0]: batch_size} if batch_size is not None else {})}


def _traced(module: torch.nn.Module, inputs: Sequence[Any], where: str) -> tuple[GraphModule, int]:
    try:
        return trace_joint(module, tuple(inputs), {})
    except CheckmateError:
        raise
    except Exception as error:
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, InputError):
            cause = cause.__cause__ or cause.__context__
        if isinstance(cause, InputError):
            raise cause from None
        raise InputError(f"{where}: the program cannot be traced: {type(error).__name__}: {' '.join(str(error).split())[:300]}") from error


def _in_one_part(
    archive: ProgramArchive,
    joint: GraphModule,
    count: int,
    specs: Sequence[InputSpec],
    sizes: Mapping[str, int],
    objective: Objective | None,
    training: ProgramTraining,
    name: str,
    merge: bool,
) -> TorchProgram:
    """One graph from the inputs of the program to all that it returns."""
    graph = FxGraph()
    new: dict[Node, Node] = {}
    old = joint.graph.find_nodes(op="placeholder")
    by_number = {input_number(node): node for node in old}
    for number, spec in enumerate(specs):
        made = graph.placeholder(spec.name)
        source = by_number.get(number)
        if source is None:
            raise InputError(f"{archive.where}: the input {spec.name!r} shares memory with another one, which is not supported")
        made.meta["val"] = source.meta["val"]
        new[source] = made
    nodes, described = outputs_of(joint.graph)
    loss = next((node for node, each in zip(nodes, described, strict=True) if output_number(each) == 0), None) if objective else None

    def argument(node: Node) -> Node:
        if node not in new and is_tangent(node) and isinstance(loss, Node):
            with loss.meta["val"].fake_mode:
                one = torch.ones_like(loss.meta["val"])
            new[node] = graph.call_function(torch.ops.aten.ones_like.default, (new[loss],))
            new[node].meta["val"] = one
        return new[node]

    backward: set[Node] = set()
    for node in joint.graph.nodes:
        if node.op in ("call_function", "get_attr"):
            new[node] = graph.node_copy(node, argument)
            new[node].meta = {key: node.meta[key] for key in ("val",) if key in node.meta}
            if is_backward_node(node):
                backward.add(new[node])
        elif node.op not in ("placeholder", "output"):
            raise InputError(f"{archive.where}: a node of kind {node.op!r} is not supported")
    kept = _outputs(archive.program, nodes, described, count, specs, objective)
    returned = tuple(new[node] if isinstance(node, Node) else node for node, _ in kept)
    graph.output(returned)
    if archive.program.is_differentiated:
        backward = _after_the_loss(graph, [node for node, (_, spec) in zip(returned, kept, strict=True) if spec.kind in ("output", "loss")])
    placeholders = graph.find_nodes(op="placeholder")
    roles = Roles(
        fixed={node: _KINDS[spec.kind] for node, spec in zip(placeholders, specs, strict=True)},
        returned=tuple(node for node in returned if isinstance(node, Node)),
        backward=frozenset(backward),
    )
    module = GraphModule(joint, graph)
    outputs = tuple(
        replace(spec, value=Ref(node.name) if isinstance(node, Node) else node) for node, (_, spec) in zip(returned, kept, strict=True)
    )
    traced = with_estimates(read_traced(graph, roles, name, merge=merge))
    return TorchProgram(archive, traced, module, tuple(specs), outputs, dict(sizes), objective, training)


def _outputs(
    program: Program, nodes: Sequence[Any], described: Sequence[Any], count: int, specs: Sequence[InputSpec], objective: Objective | None
) -> list[tuple[Any, OutputSpec]]:
    """What the graph returns, and what it is: new values of buffers and inputs first, as torch demands, then outputs, then gradients."""
    stated = list(program.outputs)
    if objective is not None:
        loss = OutputSpec("loss", None)
        stated = [loss, *stated] if objective.added else [loss, *stated[: objective.place], *stated[objective.place + 1 :]]
    written: list[tuple[Any, OutputSpec]] = []
    plain: list[tuple[Any, OutputSpec]] = []
    for node, description in zip(nodes[:count], described[:count], strict=True):
        target = mutated_input(description)
        number = output_number(description)
        if target is not None:
            spec = specs[target.idx]
            written.append((node, OutputSpec("buffer" if spec.kind == "buffer" else "input", None, spec.target or spec.name)))
        elif number is not None:
            spec_ = stated[number]
            (written if spec_.kind in ("buffer", "input") else plain).append((node, spec_))
    gradients: list[tuple[Any, OutputSpec]] = []
    for node, description in zip(nodes[count:], described[count:], strict=True):
        of = gradient_of(description)
        if of is not None and isinstance(node, Node):
            gradients.append((node, OutputSpec("gradient", None, specs[of.idx].target)))
    return [*written, *plain, *gradients]


def _after_the_loss(graph: FxGraph, outputs: Sequence[Any]) -> set[Node]:
    """The nodes that no output needs besides the gradients: the backward pass of a program that has one already."""
    needed: set[Node] = set()
    pending = [node for node in outputs if isinstance(node, Node)]
    while pending:
        node = pending.pop()
        if node not in needed:
            needed.add(node)
            pending.extend(node.all_input_nodes)
    return {node for node in graph.nodes if node.op == "call_function" and node not in needed}
