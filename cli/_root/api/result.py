"""What `solve` returns: the figures, the schedule, and methods to write files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from ..core.errors import InputError
from ..core.events import relative_gap
from ..core.history import History
from ..core.model.memory_model import MemoryModel
from ..core.model.units import Budget, format_bytes
from ..core.result import Provenance, Scope, Status, Stop
from ..core.result import Result as CoreResult
from ..core.schedule.simulate import Simulation
from ..io.onnxruntime.counts import Count
from .counting import Counting
from .pricing import PricedGraph
from .schedule_file import Schedule

if TYPE_CHECKING:
    from onnx import ModelProto

    from ..io.formats.schedule_json import Run, SessionNote
    from ..io.onnx.read.reader import OnnxModel
    from ..io.onnxruntime.process_memory import ProcessMemory


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """A certified schedule that fits, with its figures."""

    core: CoreResult
    """The result of the engine, with its certificate."""
    priced: PricedGraph
    budget: Budget
    seed: int = 0
    history: History | None = None
    """The progress of the search."""
    run: Run | None = None
    versions: Mapping[str, str] | None = None
    """When and from what it was made, if not in this run."""
    counting: Counting | None = None
    """What the budget limits, if not the tensors."""
    created: str = field(default_factory=lambda: now())

    @property
    def status(self) -> Status:
        return self.core.status

    @property
    def stop(self) -> Stop:
        """Why the search ended."""
        return self.core.stop

    @property
    def strategy(self) -> str:
        return self.core.strategy

    @property
    def cost(self) -> float:
        return self.core.cost

    @property
    def ideal_cost(self) -> float:
        """The cost of computing every operation once; no schedule is cheaper."""
        return self.priced.problem.ideal_cost

    @property
    def overhead(self) -> float:
        """(cost - ideal_cost) / ideal_cost."""
        return self.core.overhead

    @property
    def bound(self) -> float:
        """A proven lower limit: no schedule in `bound_scope` that fits is cheaper."""
        return self.core.bound or self.ideal_cost

    @property
    def bound_scope(self) -> Scope:
        return self.core.bound_scope

    @property
    def any_bound(self) -> float:
        """The same for every schedule that fits, whatever the order of its first computations; `bound` may be higher for one order."""
        return self.core.any_bound or self.ideal_cost

    @property
    def any_gap(self) -> float:
        """(cost - any_bound) / cost."""
        return relative_gap(self.cost, self.any_bound)

    @property
    def bound_model(self) -> MemoryModel:
        """The memory model that `bound` holds for, in general the one that peaks are counted in."""
        return self.core.bound_model or self.priced.problem.memory_model

    @property
    def gap(self) -> float:
        """(cost - bound) / cost: the cost is at most this far above the optimum."""
        return self.core.gap or 0.0

    @property
    def peak_bytes(self) -> int:
        return self.core.peak_bytes

    @property
    def budget_bytes(self) -> int:
        return self.core.proof.problem.budget

    @property
    def keep_all_peak_bytes(self) -> int:
        """The peak without recomputation, in the order of the graph."""
        return self.priced.keep_all.peak

    @property
    def operations(self) -> int:
        return len(self.priced.graph.operations)

    @property
    def recomputed(self) -> int:
        """Computations beyond the first of each operation, views not counted."""
        return self.core.recomputed

    @property
    def simulation(self) -> Simulation:
        """What happens when the schedule runs, computation by computation."""
        return self.core.proof.simulation

    @property
    def seconds(self) -> float:
        return self.core.seconds

    @property
    def provenance(self) -> Provenance:
        """Which part of the strategy found the schedule, and with which solver."""
        return self.core.provenance

    @property
    def reason(self) -> str:
        """A remark on how the schedule was found; may be empty."""
        return self.core.reason

    @cached_property
    def schedule(self) -> Schedule:
        """The schedule in the form of the schedule file."""
        from ..io.formats.schedule_json import Run, ScheduleDocument

        progress = () if self.history is None else self.history.concluded(self.seconds, self.cost, self.bound)
        document = ScheduleDocument(
            strategy=self.strategy,
            status=self.status,
            stop=self.stop,
            budget_bytes=self.budget_bytes,
            reserve_bytes=self.priced.reserve,
            peak_bytes=self.peak_bytes,
            keep_all_peak_bytes=self.keep_all_peak_bytes,
            cost=self.cost,
            bound=self.bound,
            cost_model=self.priced.costs.model,
            cost_unit=self.priced.costs.unit,
            amounts=self.priced.costs.amounts,
            schedule=self.core.proof.schedule,
            run=self.run or Run(round(self.seconds, 6), self.created, progress),
            seed=self.seed,
            bound_scope=self.bound_scope,
            any_bound=self.any_bound,
            bound_model=self.bound_model,
            provenance=self.provenance,
            versions=self.versions or versions_of(self.provenance),
            memory_model=self.priced.problem.memory_model,
            session=self._session_note(),
        )
        return Schedule(document, self.priced.graph)

    def _session_note(self) -> SessionNote | None:
        from ..io.formats.schedule_json import SessionNote

        threads = self.priced.loaded.session_threads
        return None if threads is None else SessionNote(threads, self.count.value)

    def save(self, path: str | PathLike[str]) -> list[Path]:
        """Write the schedule, or the compiled model if the name ends in `.onnx` or `.pt2`, completely or not at all; returns the files
        written."""
        return self.save_model(Path(path)) if Path(path).suffix.lower() in (".onnx", ".pt2") else [self.schedule.save(path)]

    def save_model(self, path: Path, anchor: str = "full") -> list[Path]:
        """Write the compiled model, and copy external weights of the original."""
        if self.priced.loaded.torch is not None:
            from ..io.formats.atomic import atomic_write
            from ..io.torch.files.program_writer import program_bytes

            atomic_write(path, program_bytes(self.priced.loaded.torch, self.core.proof.schedule, self._notes))
            return [path]
        from ..io.onnx.proto.external import save_model

        return list(save_model(self.compile(anchor), path, self._require_onnx().path))

    def compile(self, anchor: str = "full") -> ModelProto:
        """The compiled model: nodes in the order of the schedule, with one extra node for each recomputation.

        `anchor` says how it keeps its recomputations in any onnxruntime session: `full` (keeps the order too; for CPU), `attr` (for CUDA)
        or `none`.
        """
        self._require_onnx()
        return self._counting(anchor).compiled(self.core.proof.schedule, self._notes)

    def memory(self, anchor: str = "full") -> ProcessMemory | None:
        """What the compiled model takes besides its tensors, in a session of `checkmate.session`; None if this is not an ONNX model."""
        return None if self.priced.loaded.onnx is None else self._counting(anchor).memory(self.core.proof.schedule)

    @property
    def _notes(self) -> dict[str, str]:
        """What a compiled model says of itself."""
        return {
            "checkmate.count": self.count.value,
            "checkmate.strategy": self.strategy,
            "checkmate.budget_bytes": str(self.budget_bytes),
            "checkmate.reserve_bytes": str(self.priced.reserve),
            "checkmate.peak_bytes": str(self.peak_bytes),
            "checkmate.overhead": repr(self.overhead),
        }

    @property
    def count(self) -> Count:
        """What the budget limits."""
        return Count.TENSORS if self.counting is None else self.counting.count

    def _counting(self, anchor: str) -> Counting:
        return replace(self.counting or Counting(self.priced), anchor=anchor)

    def _require_onnx(self) -> OnnxModel:
        if self.priced.loaded.onnx is None:
            raise InputError(f"{self.priced.loaded.name}: only ONNX models can be compiled; this graph is {self.priced.loaded.format}")
        return self.priced.loaded.onnx

    def report(self, path: str | PathLike[str]) -> Path:
        """Write the HTML page about the schedule."""
        return self.schedule.report(path)

    def __repr__(self) -> str:
        return (
            f"<Result {self.status.value}: peak {format_bytes(self.peak_bytes)} of {format_bytes(self.budget_bytes)}, overhead "
            f"{self.overhead:.2%}, gap {self.gap:.2%} ({self.bound_scope.value})>"
        )

    def _repr_html_(self) -> str:
        return self.schedule._repr_html_()


def now() -> str:
    """Date and time, ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def versions_of(provenance: Mapping[str, str | int | float]) -> dict[str, str]:
    """The versions of all packages that contributed to a schedule."""
    from .. import __version__

    versions = {"checkmate": __version__}
    solver = provenance.get("solver")
    if isinstance(solver, str):
        from importlib import metadata

        from ..core.solvers import get_solver

        versions |= {"pyomo": metadata.version("pyomo"), solver: get_solver(solver).version()}
    return versions
