"""Share one budget out to the graphs of a training step.

The graphs of a step are nested: the first one's backward pass runs last. While an inner graph runs, the outer ones hold what they saved and
their outputs; while an outer one's backward pass runs, the inner ones have left the gradients of their parameters behind. So, with S_j for
what graph j holds, P_k for the peak of graph k without what others hold, and M for the budget, each k needs S_1 + ... + S_(k-1) + P_k <= M.

Two schedules of each graph are known: one of little memory, and keep-all. The budget that is left above the first is given to each graph as
the same share of the way to the second. Each graph is then solved to a proven gap with the memory it got, from the outermost to the
innermost, and what one does not use is there for the next. The shares themselves are a heuristic: nothing is proven about the sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..core.errors import InfeasibleError
from ..core.model.memory_model import allocated_bytes
from ..core.model.units import Budget, exact_bytes
from ..core.result import certified
from ..io.torch.boundary import BOUNDARY
from ..io.torch.internals import size_hint, storage_identity
from ..io.torch.traced import TracedGraph
from .graphs import Around, CompiledGraph, Emitted
from .planning import Planned, Planner


@dataclass(frozen=True)
class Part:
    """One graph of a step, with a schedule of little memory."""

    graph: CompiledGraph
    sizes: tuple[int, ...]
    emitted: Emitted
    shared: int
    """Bytes of its inputs that are outputs of graphs around it, which hold them anyway."""

    @property
    def little(self) -> Planned:
        return self.emitted.planned


def share_budget(trail: Sequence[CompiledGraph], budget: Budget, planner: Planner) -> None:
    """Plan all graphs of a step anew, given in the order of their forward passes."""
    parts = [Part(graph, next(reversed(graph.emitted)), graph.latest, graph.shared) for graph in trail if graph.is_trained]
    keep_all = [_keep_all(part) for part in parts]
    limit = budget.resolve(max(_needs(parts, keep_all)))
    share = _share(_needs(parts, [part.little for part in parts]), _needs(parts, keep_all), limit)
    held = 0
    final: list[tuple[Planned, TracedGraph]] = []
    for number, part in enumerate(parts):
        inner = parts[number + 1 :]
        around = replace(
            part.graph.around,
            inputs=sum(each.graph.own_input_bytes for each in parts if each is not part),
            held=max(0, held - part.shared),
            inner_peak=_allotted(part, parts, keep_all[number], share, limit, held) if inner else 0,
            inner_left=sum(gradient_bytes(each.emitted) for each in inner),
        )
        final.append(_planned(part, around, limit, planner))
        held += held_bytes(final[-1][0])
    _settle(parts, final)


def _planned(part: Part, around: Around, limit: int, planner: Planner) -> tuple[Planned, TracedGraph]:
    """Plan one graph with what it got. If nothing fits, the schedule of little memory must."""
    budget = Budget(str(limit), bytes=limit)
    traced = part.graph.read(part.sizes, around)
    try:
        planned = planner.plan(traced, budget, part.little)
    except InfeasibleError as error:
        traced = part.graph.read(part.sizes, replace(around, inner_peak=0))
        planned = planner.replay(traced, part.little, budget, part.little)
        if not planned.result.core.fits:
            raise InfeasibleError(
                f"{traced.graph.name}: the budget of {exact_bytes(limit)} cannot be met by all graphs of the step together; this one needs "
                f"{exact_bytes(planned.result.peak_bytes)} of it",
                limit,
                planned.result.peak_bytes,
                error.binding_operation or "",
                "together with what other graphs of the step hold",
            ) from None
    part.graph.around = around
    return planned, traced


def _settle(parts: Sequence[Part], final: Sequence[tuple[Planned, TracedGraph]]) -> None:
    """Put the plans into effect. The peak of a plan is that of the step from the forward to the backward pass of its graph: its schedule
    was made for all that the graphs inside it may use, and they may use less."""
    inside = 0
    for part, (planned, traced) in reversed(list(zip(parts, final, strict=True))):
        inside = max(inside, peak_without_boundary(planned))
        part.graph.replace_plan(part.sizes, planned, traced, inside)


def peak_without_boundary(planned: Planned) -> int:
    """The peak of the two parts of a step, without the moment between them."""
    proof = planned.result.core.proof
    memory = proof.simulation.memory
    boundary = next(number for number, each in enumerate(proof.problem.graph.operations) if each.name == BOUNDARY)
    moment = proof.schedule.computations.index(boundary)
    return max((*memory[:moment], *memory[moment + 1 :]))


def _keep_all(part: Part) -> Planned:
    """The same graph without recomputation."""
    result = part.little.result
    problem = result.core.proof.problem
    sequence = tuple(range(problem.count))
    return replace(part.little, result=replace(result, core=certified(replace(result.core, sequence=sequence), problem, 0.0)))


def _needs(parts: Sequence[Part], plans: Sequence[Planned]) -> list[int]:
    """The peak of the step while each graph runs: its own, with what those around it hold."""
    needs: list[int] = []
    held = 0
    for number, (part, planned) in enumerate(zip(parts, plans, strict=True)):
        left = sum(gradient_bytes(each.emitted) for each in parts[number + 1 :])
        others = sum(each.graph.own_input_bytes for each in parts if each is not part)
        own = planned.result.peak_bytes - part.graph.around.held - part.graph.around.inputs + others
        needs.append(own + max(0, held - part.shared) + left)
        held += held_bytes(planned)
    return needs


def _share(little: Sequence[int], everything: Sequence[int], limit: int) -> float:
    """The largest share of the way from little memory to keep-all with which every graph fits."""
    shares = [(limit - low) / (high - low) for low, high in zip(little, everything, strict=True) if high > low]
    return min(max(min(shares, default=1.0), 0.0), 1.0)


def _allotted(part: Part, parts: Sequence[Part], keep_all: Planned, share: float, limit: int, held: int) -> int:
    """What the graphs inside this one may use: all that it does not hold itself."""
    low, high = held_bytes(part.little), held_bytes(keep_all)
    others = sum(each.graph.own_input_bytes for each in parts if each is not part)
    own = part.little.result.priced.graph.fixed_bytes - part.graph.around.held - part.graph.around.inputs + others
    own += part.little.result.priced.reserve
    left = sum(gradient_bytes(each.emitted) for each in parts[parts.index(part) + 1 :])
    return max(0, limit - own - max(0, held - part.shared) - int(low + share * max(0, high - low)) - left - tangent_bytes(part.emitted))


def held_bytes(planned: Planned) -> int:
    """What a graph holds between its forward and its backward pass: what it saves, and its outputs."""
    proof = planned.result.core.proof
    operations = proof.problem.graph.operations
    boundary = next(number for number, operation in enumerate(operations) if operation.name == BOUNDARY)
    moment = proof.schedule.computations.index(boundary)
    made = set(operations[boundary].outputs)
    return sum(stay.bytes for stay in proof.simulation.stays if stay.first < moment < stay.end and stay.value not in made)


def tangent_bytes(emitted: Emitted) -> int:
    graph = emitted.traced.graph
    boundary = emitted.traced.boundary
    assert boundary is not None
    return sum(graph.values[value].bytes for value in graph.operations[boundary].outputs)


def gradient_bytes(emitted: Emitted) -> int:
    """Gradients of parameters that a graph leaves behind."""
    roles, device = emitted.traced.roles, emitted.traced.device.type
    storages = {storage_identity(node.meta["val"]): node.meta["val"] for node in roles.gradients}
    return sum(allocated_bytes(size_hint(tensor.untyped_storage().nbytes()) or 0, device) for tensor in storages.values())
