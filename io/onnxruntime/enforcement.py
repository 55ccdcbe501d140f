"""Run both models under a memory limit: the compiled model must run, and the original must fail.

The limit is on the address space of the process, with every tensor in its own pages. It is the budget and a little more, because the
process also needs memory that is none of the model's: how much is found by trying, with the compiled model and what was predicted for it.
Where the address space cannot be limited, the arena is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from ...core.model.units import format_bytes
from ..onnx.read.reader import OnnxModel
from .checks import Check, Outcome
from .child import Cap, Failure, Report
from .limits import can_limit_address_space

_LEAST, _MOST = 2**18, 2**25
"""How much more than predicted is tried, in bytes: page tables, the allocator's lists, buffers of libraries. Compiled models needed 0.4 to
3 MB, samples up to 0.3 MB."""
_REFINEMENTS = 3
"""How often the smallest addition is halved if the original runs with it too."""


class Run(Protocol):
    """Runs a model in a child process."""

    def __call__(self, model: OnnxModel, task: str, **changes: object) -> Report: ...


@dataclass(frozen=True, slots=True)
class Enforcement:
    """One compiled model and its original, under one budget."""

    original: OnnxModel
    compiled: OnnxModel
    run: Run
    budget: int
    """Without the reserve."""
    predicted: int
    """The peak of the compiled model."""
    base: int
    """Fixed memory, which is there before the limit is set."""

    def check(self, fits_anyway: bool) -> Check:
        """`fits_anyway` says that the original needs no more than the budget, so that it cannot fail.

        What the process needs varies a little with the timing of its threads. A compiled model that fails where a smaller limit was
        enough gets twice as much.
        """
        if self.budget <= self.base:
            return self._failed(f"the budget leaves nothing after {format_bytes(self.base)} of fixed memory")
        if not can_limit_address_space():
            return self._limit_arena(fits_anyway)
        enough = 0
        too_little = 0
        for more in _additions():
            ours = self._capped(self.compiled, self.predicted, more)
            if ours.failure is None:
                enough = more
                break
            if ours.failure is not Failure.OUT_OF_MEMORY:
                return self._failed(f"the compiled model fails: {ours.failure.value}: {ours.message[:200]}")
            too_little = more
        if not enough:
            return self._failed(
                f"the compiled model needs over {format_bytes(_MOST)} more than its predicted {format_bytes(self.predicted)}"
            )
        for _ in range(_REFINEMENTS):
            if fits_anyway or self._capped(self.original, self.budget, enough).failure is not None:
                break
            middle = (too_little + enough) // 2
            if self._capped(self.compiled, self.predicted, middle).failure is None:
                enough = middle
            else:
                too_little = middle
        ours = self._capped(self.compiled, self.budget, enough)
        while ours.failure is Failure.OUT_OF_MEMORY and self.budget >= self.predicted and enough < _MOST:
            enough *= 2
            ours = self._capped(self.compiled, self.budget, enough)
        if ours.failure is not None:
            terms = f"{format_bytes(self.budget)} for the model and {format_bytes(enough)} for the process"
            return self._failed(f"with {terms}, the compiled model fails: {ours.failure.value}")
        return self._verdict(Cap.ADDRESS_SPACE, enough, self._capped(self.original, self.budget, enough), fits_anyway)

    def _limit_arena(self, fits_anyway: bool) -> Check:
        limit = self.budget - self.original.graph.fixed.get("inputs", 0)
        ours = self.run(self.compiled, "the compiled model under a limit", cap=Cap.ARENA, cap_bytes=limit, warm_up=0)
        if ours.failure is not None:
            return self._failed(f"with limited {Cap.ARENA.value}, the compiled model fails: {ours.failure.value}: {ours.message[:200]}")
        theirs = self.run(self.original, "the original under the same limit", cap=Cap.ARENA, cap_bytes=limit, warm_up=0)
        return self._verdict(Cap.ARENA, 0, theirs, fits_anyway)

    def _capped(self, model: OnnxModel, limit: int, more: int) -> Report:
        """Fixed memory is there already, so it is not part of the growth that is limited."""
        task = f"{'the compiled model' if model is self.compiled else 'the original'} under a limit of {format_bytes(limit + more)}"
        return self.run(model, task, cap=Cap.ADDRESS_SPACE, cap_bytes=limit - self.base + more, warm_up=0)

    def _verdict(self, cap: Cap, more: int, theirs: Report, fits_anyway: bool) -> Check:
        fate = theirs.failure.value if theirs.failure else "runs"
        figures = {"limit": cap.value, "limit_bytes": self.budget + more, "more_bytes": more, "original": fate}
        terms = f"with {format_bytes(self.budget)} for the model and {format_bytes(more)} for the process"
        if theirs.failure is None and not fits_anyway:
            return Check("enforced", Outcome.FAILED, f"{terms}, the original runs too", (), figures)
        fate = "runs too, because it fits" if theirs.failure is None else f"fails: {fate}"
        return Check("enforced", Outcome.PASSED, f"{terms}, the compiled model runs, the original {fate}", (), figures)

    def _failed(self, summary: str) -> Check:
        return Check("enforced", Outcome.FAILED, summary)


def _additions() -> Iterator[int]:
    size = _LEAST
    while size <= _MOST:
        yield size
        size *= 2
