"""A plan: the schedule of one compiled graph, and its figures."""

from __future__ import annotations

from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path

from ..api.result import Result
from ..core.model.units import format_bytes
from ..core.result import Scope, Status


@dataclass(frozen=True, eq=False, repr=False)
class Plan:
    """What checkmate decided for one graph that torch.compile made: a model with graph breaks has several, one with two batch sizes too."""

    result: Result
    """The certified schedule."""
    compiler: str = "exact"
    sizes: dict[str, int] = field(default_factory=dict)
    """The sizes of symbolic dimensions it was made for."""
    from_cache: bool = False
    estimated: tuple[str, ...] = ()
    """Kinds of operations whose time and workspace could not be measured."""
    provisional: bool = False
    """Made with as little memory as possible, before all graphs of the step were known; replaced in the second step."""

    step_peak_bytes: int | None = None
    """In a model with graph breaks, the peak of the part of the step from the forward to the backward pass of this graph."""
    measured_peak_bytes: int | None = None
    """With `compiler="inductor"`, the peak of the third step as it was measured; `peak_bytes` is an estimate then."""

    @property
    def name(self) -> str:
        return self.result.priced.graph.name

    @property
    def peak_bytes(self) -> int:
        """The peak of the training step, everything included."""
        return self.result.peak_bytes if self.step_peak_bytes is None else self.step_peak_bytes

    @property
    def budget_bytes(self) -> int:
        return self.result.budget_bytes

    @property
    def keep_all_peak_bytes(self) -> int:
        """The peak without recomputation."""
        return self.result.keep_all_peak_bytes

    @property
    def fixed_bytes(self) -> int:
        """Parameters, buffers, inputs and constants; for a model with graph breaks also what other graphs hold meanwhile."""
        return self.result.priced.graph.fixed_bytes

    @property
    def overhead(self) -> float:
        """The cost of recomputation, relative to a step without any."""
        return self.result.overhead

    @property
    def gap(self) -> float:
        """(cost - bound) / cost: the cost is at most this far above the optimum."""
        return self.result.gap

    @property
    def bound_scope(self) -> Scope:
        return self.result.bound_scope

    @property
    def status(self) -> Status:
        return self.result.status

    @property
    def recomputed(self) -> int:
        """Computations beyond the first of each operation."""
        return self.result.recomputed

    @property
    def seconds(self) -> float:
        """How long solving took."""
        return self.result.seconds

    def save(self, path: str | PathLike[str]) -> list[Path]:
        """Write the schedule, for `checkmate verify`, `report`, `explain` and `diff`."""
        return self.result.save(path)

    def report(self, path: str | PathLike[str]) -> Path:
        """Write the HTML page about the schedule."""
        return self.result.report(path)

    def __repr__(self) -> str:
        return (
            f"<Plan {self.name!r} {self.status.value}: peak {format_bytes(self.peak_bytes)} of {format_bytes(self.budget_bytes)} (keep-all "
            f"{format_bytes(self.keep_all_peak_bytes)}), overhead {self.overhead:.2%}, gap {self.gap:.2%}, {self.recomputed} recomputed>"
        )

    def _repr_html_(self) -> str:
        return self.result._repr_html_()
