"""The results of solving, under the keys of `--json`: every command reports these figures and no others."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...api.graph import LoadedGraph
from ...api.result import Result
from ..console import Console

if TYPE_CHECKING:
    from ...io.onnxruntime.process_memory import ProcessMemory


def result_fields(result: Result) -> dict[str, Any]:
    """The figures of a result."""
    return {
        "status": result.status.value,
        "stop": result.stop.value,
        "strategy": result.strategy,
        "cost": result.cost,
        "ideal_cost": result.ideal_cost,
        "overhead": result.overhead,
        "bound": result.bound,
        "gap": result.gap,
        "bound_scope": result.bound_scope,
        "bound_runtime": result.bound_model.value,
        "any_bound": result.any_bound,
        "any_gap": result.any_gap,
        "peak_bytes": result.peak_bytes,
        "budget_bytes": result.budget_bytes,
        "keep_all_peak_bytes": result.keep_all_peak_bytes,
        "operations": result.operations,
        "recomputed": result.recomputed,
        "seconds": round(result.seconds, 6),
        "provenance": dict(result.provenance),
    }


def solved_fields(result: Result, written: Sequence[Path], memory: ProcessMemory | None = None) -> dict[str, Any]:
    """The keys of `solve --json`, except its format."""
    priced = result.priced
    return {
        "graph": {"name": priced.graph.name, "source": priced.loaded.source, "format": priced.loaded.format},
        **result_fields(result),
        "budget": result.budget.text,
        "smallest_budget_bytes": priced.floor.bytes,
        "cost_model": priced.costs.model,
        "cost_unit": priced.costs.unit,
        **_session_fields(result, memory),
        "outputs": [str(path) for path in written],
    }


def _session_fields(result: Result, memory: ProcessMemory | None) -> dict[str, Any]:
    """What an ONNX model takes in a session of `checkmate.session`."""
    if memory is None:
        return {}
    return {
        "count": result.count.value,
        "arena_bytes": memory.arena_bytes,
        "process_bytes": memory.process_bytes,
        "session_threads": result.priced.loaded.session_threads,
    }


def note_if_forward_only(console: Console, loaded: LoadedGraph) -> None:
    """A user who passes a forward model may have forgotten --loss."""
    if loaded.can_be_compiled and not loaded.has_backward_pass:
        console.note(
            "note: this model has no backward pass and was solved as it is; to train it within the budget, add --loss cross-entropy"
        )
