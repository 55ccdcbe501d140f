"""What a schedule takes besides its tensors, and solving so that this fits too."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from ..core.errors import InfeasibleError, InputError
from ..core.model.units import exact_bytes
from ..core.schedule.schedule import Schedule, expand, with_frees
from ..io.onnxruntime.counts import Count
from .pricing import PricedGraph, what_binds

if TYPE_CHECKING:
    from onnx import ModelProto

    from ..core.result import Result as CoreResult
    from ..io.onnx.read.reader import OnnxModel
    from ..io.onnxruntime.process_memory import ProcessMemory


@dataclass(frozen=True)
class Counting:
    """Counts what compiled models of one graph take in a session of `checkmate.session`."""

    priced: PricedGraph
    count: Count = Count.TENSORS
    """What the budget limits."""
    anchor: str = "full"

    @property
    def model(self) -> OnnxModel:
        """With measured workspaces, if there are any."""
        loaded = self.priced.loaded
        if loaded.onnx is None:
            raise InputError(f"{loaded.name}: --count {self.count.value} needs an ONNX model; this graph is {loaded.format}: leave it out")
        return replace(loaded.onnx, graph=self.priced.graph)

    def compiled(self, schedule: Schedule, notes: Mapping[str, str] | None = None) -> ModelProto:
        """The compiled model, with these notes and what it takes in its metadata."""
        from ..io.onnx.compile.anchor_modes import Anchor
        from ..io.onnx.compile.writer import compile_model, note
        from ..io.onnx.read.metadata import ARENA_KEY, PROCESS_KEY, WASTE_KEY

        made = compile_model(self.model, schedule, anchor=Anchor(self.anchor), metadata=notes)
        memory = self._memory(schedule, made)
        arena = {ARENA_KEY: str(memory.arena.block_bytes), WASTE_KEY: str(memory.arena.most_waste)}
        note(made, {**arena, PROCESS_KEY: str(memory.process_bytes)})
        return made

    def memory(self, schedule: Schedule) -> ProcessMemory:
        """What the compiled model of a schedule takes."""
        from ..io.onnx.compile.anchor_modes import Anchor
        from ..io.onnx.compile.writer import compile_model

        return self._memory(schedule, compile_model(self.model, schedule, anchor=Anchor(self.anchor)))

    def _memory(self, schedule: Schedule, compiled: ModelProto) -> ProcessMemory:
        from ..io.onnx.compile.unread import without_unread
        from ..io.onnxruntime.process_memory import predict_process

        names = [node.name for node in compiled.graph.node if node.op_type != "Constant"]
        added = sum(name.startswith("checkmate/") for name in names)
        graph = self.priced.graph
        pruned = with_frees(graph, without_unread(graph, schedule.computations))
        return predict_process(self.model, pruned, nodes=len(names), barrier_nodes=added)

    @cached_property
    def keep_all(self) -> ProcessMemory:
        """What the original takes in such a session."""
        from ..io.onnxruntime.process_memory import predict_process

        problem = self.priced.problem
        return predict_process(self.model, expand(problem, range(problem.count)), nodes=len(self.model.proto.graph.node))

    @property
    def keep_all_bytes(self) -> int:
        """What percentages of a budget refer to."""
        return self._figure(self.keep_all, self.priced.keep_all.peak)

    @property
    def least_beside_tensors(self) -> int:
        """What every session takes besides tensors: a compiled model has no fewer nodes than the original."""
        return self.keep_all.session_bytes if self.count is Count.PROCESS else 0

    def taken(self, result: CoreResult) -> int:
        """What the budget limits, for a schedule."""
        if self.count is Count.TENSORS:
            return result.peak_bytes
        return self._figure(self.memory(result.proof.schedule), result.peak_bytes)

    def require_possible(self, limit: int, tensors: int) -> None:
        """Raise InfeasibleError if what is left for tensors is below the floor."""
        floor = self.priced.floor
        if floor.bytes > tensors and self.priced.keep_all.peak > tensors:
            smallest = floor.bytes + self.least_beside_tensors
            message = (
                f"no schedule fits into {exact_bytes(limit)} if the {self.count.value} counts: the smallest budget that could work is "
                f"{exact_bytes(smallest)}, needed {what_binds(floor)}"
            )
            raise InfeasibleError(message, limit, smallest, floor.operation, floor.reason)

    def _figure(self, memory: ProcessMemory, peak: int) -> int:
        match self.count:
            case Count.TENSORS:
                return peak
            case Count.ARENA:
                return memory.arena_bytes + self.priced.reserve
            case Count.PROCESS:
                return memory.process_bytes + self.priced.reserve
