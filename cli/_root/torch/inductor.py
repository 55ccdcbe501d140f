"""Inductor's kernels with our choice of what to save and what to recompute.

Inductor fuses and reorders operations, so sizes, order and workspace are not those that the schedule was made for. The peak of the schedule
is an estimate here, and the real one is measured in the third step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from torch.fx import GraphModule

from ..io.torch.internals import allocations, compile_with_inductor, is_profiling
from .graphs import CompiledGraph

if TYPE_CHECKING:
    from .session import Session

MEASURED_CALL = 3
"""The first calls may compile and choose kernels."""


class Observed:
    """A compiled part that measures its memory once."""

    def __init__(self, code: Any, record: Callable[[int, int], None]) -> None:
        self._code = code
        self._record = record
        self._calls = 0
        self._boxed_call = True

    def __call__(self, arguments: list[Any]) -> Any:
        self._calls += 1
        if self._calls != MEASURED_CALL or is_profiling():
            return self._code(arguments)
        result, changes = allocations(lambda: self._code(arguments))
        now = most = 0
        for change in changes:
            now += change
            most = max(most, now)
        self._record(most, now)
        return result

    def __getattr__(self, name: str) -> Any:
        return getattr(self._code, name)


class Measured:
    """The memory of both parts of a step."""

    def __init__(self) -> None:
        self.forward: tuple[int, int] | None = None
        self.backward: tuple[int, int] | None = None

    def observe(self, code: Any, is_backward: bool) -> Any:
        return Observed(code, self._record_backward if is_backward else self._record_forward)

    def _record_forward(self, most: int, left: int) -> None:
        self.forward = most, left

    def _record_backward(self, most: int, left: int) -> None:
        self.backward = most, left

    @property
    def peak_bytes(self) -> int | None:
        """Above fixed memory; None until both parts were measured."""
        if self.forward is None or self.backward is None:
            return None
        return max(self.forward[0], self.forward[1] + self.backward[0])


def compile_graph(session: Session, graph: CompiledGraph, gm: GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
    """Compile one graph with Inductor."""
    graph.measured = Measured()
    compiled: Callable[..., Any] = compile_with_inductor(gm, inputs, graph.partition, graph.measured.observe)
    return compiled
