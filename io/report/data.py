"""The data of the page: computed here, displayed by its scripts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.model.costs import Costs
from ...core.model.digest import graph_digest
from ...core.model.graph import Graph
from ...core.schedule.schedule import Schedule
from ...core.schedule.simulate import Simulation
from ...core.studies.examine import Examined, examine
from ...core.studies.explanation import recomputations
from ..formats.schedule_json import ScheduleDocument

VIEW, BACKWARD = 1, 2
"""Bits of an operation's flags."""


def report_data(document: ScheduleDocument, graph: Graph) -> dict[str, Any]:
    """One JSON object. Long lists are lists of indices into each other, so that the page stays small for ten thousand operations."""
    costs = Costs(document.cost_model, document.cost_unit, document.amounts, ("",) * len(document.amounts))
    examined = examine(
        graph, costs, document.schedule, budget=document.budget_bytes, reserve=document.reserve_bytes, memory_model=document.memory_model
    )
    return {
        "facts": _facts(document, examined),
        "base": _base(graph, document.reserve_bytes),
        "operations": _operations(graph, document.amounts),
        "values": _values(graph),
        "after": _run(document.schedule, examined.simulation),
        "before": _run(examined.everything, examined.keep_all),
        "recomputed": [
            [entry.operation, entry.repeats, _short(entry.cost), entry.bytes, entry.absent] for entry in recomputations(examined)
        ],
        "progress": [[moment.seconds, _short(moment.incumbent), _short(moment.bound), moment.phase] for moment in document.run.progress],
    }


def _facts(document: ScheduleDocument, examined: Examined) -> dict[str, Any]:
    simulation, ideal = examined.simulation, examined.problem.ideal_cost
    return {
        "name": examined.graph.name,
        "digest": graph_digest(examined.graph),
        "operations": len(examined.graph.operations),
        "strategy": document.strategy,
        "status": document.status.value,
        "stop": document.stop.value,
        "budget": document.budget_bytes,
        "peak": simulation.peak_bytes,
        "keepAllPeak": examined.keep_all.peak_bytes,
        "cost": simulation.cost,
        "idealCost": ideal,
        "overhead": simulation.cost / ideal - 1 if ideal > 0 else 0.0,
        "bound": document.bound,
        "gap": document.gap,
        "boundScope": document.bound_scope,
        "anyBound": document.any_bound,
        "boundRuntime": None if document.bound_model is None else document.bound_model.value,
        "recomputed": simulation.recomputed,
        "costModel": document.cost_model,
        "unit": document.cost_unit,
        "runtime": document.memory_model.value,
        "seed": document.seed,
        "provenance": {key: str(note) for key, note in sorted(document.provenance.items())},
        "versions": dict(sorted(document.versions.items())),
        "seconds": document.run.seconds,
        "created": document.run.created,
    }


def _base(graph: Graph, reserve: int) -> list[list[str | int]]:
    """Fixed memory, by kind."""
    return [[kind, size] for kind, size in (*graph.fixed.items(), ("reserve", reserve)) if size]


def _operations(graph: Graph, amounts: Sequence[float]) -> dict[str, Any]:
    kinds = list(dict.fromkeys(operation.kind for operation in graph.operations))
    number = {kind: index for index, kind in enumerate(kinds)}
    return {
        "names": [operation.name for operation in graph.operations],
        "kinds": kinds,
        "kind": [number[operation.kind] for operation in graph.operations],
        "cost": [_short(amount) for amount in amounts],
        "workspace": [operation.workspace for operation in graph.operations],
        "flags": [VIEW * operation.view + BACKWARD * operation.backward for operation in graph.operations],
    }


def _values(graph: Graph) -> dict[str, Any]:
    """0 instead of a name: the value has the name of the operation that makes it."""
    makers = graph.producers()
    named = ((value.name, graph.operations[maker].name) for value, maker in zip(graph.values, makers, strict=True))
    return {
        "names": [0 if name == maker else name for name, maker in named],
        "bytes": [value.bytes for value in graph.values],
        "maker": makers,
        "outputs": list(graph.outputs),
    }


def _run(schedule: Schedule, simulation: Simulation) -> dict[str, Any]:
    """A replay. Stays are three lists: the value, its first computation as the difference to the one before, and its duration."""
    stays = simulation.stays
    firsts = [stay.first for stay in stays]
    return {
        "computations": list(schedule.computations),
        "memory": list(simulation.memory),
        "peakAt": simulation.peak_computation,
        "cost": simulation.cost,
        "stays": {
            "value": [stay.value for stay in stays],
            "step": [first - before for before, first in zip([0, *firsts], firsts, strict=False)],
            "length": [stay.end - stay.first for stay in stays],
        },
    }


def _short(figure: float | None) -> float | None:
    """Six digits are enough for a plot."""
    return None if figure is None else float(f"{figure:.6g}")
