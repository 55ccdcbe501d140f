"""The checks of a compiled model, computed from the reports of child processes. Nothing runs here."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np

from ...core.model.units import format_bytes
from .child import Report
from .nodes import FileNode, is_from_file, origin
from .predict import Prediction
from .tensor_files import BFLOAT16, FLOATS, Tensor, numbers_of
from .trace import computed_bytes

MOST_DETAILS = 5
_CLOSE: Mapping[int, float] = {1: 1e-3, 11: 1e-6, 10: 3e-2, BFLOAT16: 1e-1}
"""Element type -> largest difference, relative to the largest number of the tensor, that another order of the same sums can cause."""


class Outcome(Enum):
    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"
    """The check is not possible; the summary says why."""


@dataclass(frozen=True, slots=True)
class Check:
    """One check and its result."""

    name: str
    outcome: Outcome
    summary: str
    details: tuple[str, ...] = ()
    figures: Mapping[str, Any] = field(default_factory=dict)


def check_outputs(original: Report, compiled: Report, plain: Report, random: Sequence[str], nudge: Callable[[], Report] = Report) -> Check:
    """Outputs must be bit-identical with exact settings, and close in a plain session, where onnxruntime may fuse and reorder.

    `nudge` runs the original with every input changed in its last bit. It is asked only if an output is not close: one that this changes as
    much does not depend on the settings, but on rounding.
    """
    if random:
        reason = f"{random[0]!r} draws random numbers without a seed, so no two runs are equal"
        return Check("outputs", Outcome.SKIPPED, reason, figures={"compared": 0})
    names = [tensor.name for tensor in original.outputs]
    if names != [tensor.name for tensor in compiled.outputs]:
        return Check("outputs", Outcome.FAILED, "the models have different outputs")
    different = [pair[0].name for pair in zip(original.outputs, compiled.outputs, strict=True) if not _equal(*pair)]
    apart = differences(original.outputs, plain.outputs) if plain.failure is None else {}
    far = {name: share for name, share in apart.items() if share > 1}
    moved = nudge().outputs if far else ()
    nudged = differences(original.outputs, moved) if moved else {}
    unstable = [name for name, share in far.items() if share <= _AS_MUCH * nudged.get(name, 0.0)]
    wrong = [name for name in far if name not in unstable]
    details = [f"output {name!r} differs" for name in different]
    details += [f"output {name!r} of a plain session is not close" for name in wrong]
    if plain.failure is not None:
        details.append(f"a plain session fails: {plain.failure.value}: {plain.message}")
    outcome = Outcome.FAILED if details else Outcome.PASSED
    same = len(names) - len(different)
    summary = f"{same} of {len(names)} bit-identical; plain session {'not close' if wrong or plain.failure else 'close'}"
    if unstable:
        summary += f", but for {len(unstable)} that the last bit of the inputs changes as much"
    if original.uncompared:
        summary += f"; {len(original.uncompared)} not compared, because they are not tensors"
    figures = {
        "compared": len(names),
        "equal": same,
        "plain_close": not wrong and plain.failure is None,
        "plain_difference": max((share for share in apart.values() if share <= 1), default=0.0),
        "unstable": len(unstable),
    }
    return Check("outputs", outcome, summary, tuple(details[:MOST_DETAILS]), figures)


_AS_MUCH = 10.0
"""A plain session rounds differently in every operation, not only at the inputs: it may differ by this many times as much."""
_SHARE_OF_SCALE = 1e-3
"""The scale of an output is its largest number, but at least this share of the largest number of all outputs: a gradient of 2e-7 beside
one of 35 is what is left of sums of larger terms, and no more exact than they are."""


def _equal(one: Tensor, other: Tensor) -> bool:
    return (one.element, one.shape) == (other.element, other.shape) and Path(one.file).read_bytes() == Path(other.file).read_bytes()


def differences(ones: Sequence[Tensor], others: Sequence[Tensor]) -> dict[str, float]:
    """By how much each output differs, as a multiple of what another order of the same sums can cause."""
    found = {tensor.name: tensor for tensor in others}
    whole = max((_largest(one) for one in ones), default=0.0)
    return {one.name: _difference(one, found.get(one.name), _SHARE_OF_SCALE * whole) for one in ones}


def _difference(one: Tensor, other: Tensor | None, least_scale: float) -> float:
    """Infinite if the tensors cannot be compared."""
    if other is None or (one.element, one.shape) != (other.element, other.shape):
        return math.inf
    if _equal(one, other):
        return 0.0
    numbers, others = numbers_of(one), numbers_of(other)
    if one.element not in FLOATS or numbers is None or others is None:
        return math.inf
    finite = np.isfinite(numbers)
    if not np.array_equal(numbers[~finite], others[~finite], equal_nan=True) or not np.all(np.isfinite(others[finite])):
        return math.inf
    scale = max(_largest(one), least_scale, _LEAST_SCALE)
    return float(np.max(np.abs(numbers[finite] - others[finite]), initial=0.0)) / scale / _CLOSE[one.element]


_LEAST_SCALE = 1e-6


def _largest(tensor: Tensor) -> float:
    numbers = numbers_of(tensor) if tensor.element in FLOATS else None
    return 0.0 if numbers is None else float(np.max(np.abs(numbers[np.isfinite(numbers)]), initial=0.0))


def check_order(nodes: Sequence[FileNode], compiled: Report, originals: Mapping[str, int]) -> Check:
    """Every node must run once, in the order of the file. Nodes that onnxruntime inserted (casts, copies) are not in the file."""
    executed = [node.index for node in compiled.run if is_from_file(node.index, node.kind, nodes)]
    inserted = len(compiled.run) - len(executed)
    ran = {nodes[index].name for index in executed}
    copies = [node.name for node in nodes if node.name not in originals and origin(node.name, originals) is not None]
    details = [f"{name!r} did not run" for name in (node.name for node in nodes) if name not in ran]
    for place, index in enumerate(executed):
        if not details and index != place:
            details.append(f"{nodes[index].name!r} ran instead of {nodes[place].name!r}")
    summary = "as in the file" if not details else details[0]
    summary += f"; {sum(name in ran for name in copies)} of {len(copies)} recomputations ran"
    if inserted:
        summary += f"; onnxruntime inserted {inserted} nodes of its own"
    figures = {"nodes": len(nodes), "executed": len(executed), "recomputations": len(copies), "inserted": inserted}
    return Check("order", Outcome.FAILED if details else Outcome.PASSED, summary, tuple(details[:MOST_DETAILS]), figures)


def check_memory(nodes: Sequence[FileNode], prediction: Prediction, compiled: Report) -> Check:
    """Compare the bytes in use after each node with the prediction, or the peak of resident memory if onnxruntime does not report them."""
    measured = computed_bytes(compiled.run)
    if measured is None:
        return _resident(prediction, compiled)
    expected = {node.name: node.live_bytes for node in prediction.nodes}
    off = [
        (nodes[node.index].name, expected[nodes[node.index].name], found)
        for node, found in zip(compiled.run, measured, strict=True)
        if is_from_file(node.index, node.kind, nodes) and expected[nodes[node.index].name] != found
    ]
    figures = {"measured": "per node", "nodes": len(measured), "differing": len(off), "largest_difference_bytes": 0}
    if not off:
        peak = max(measured, default=0)
        return Check(
            "memory",
            Outcome.PASSED,
            f"{len(measured)} of {len(measured)} nodes as predicted, to the byte",
            (),
            figures | {"peak_bytes": peak},
        )
    name, predicted, found = max(off, key=lambda entry: abs(entry[2] - entry[1]))
    figures |= {"peak_bytes": max(measured), "largest_difference_bytes": found - predicted}
    details = [f"{name!r}: {found} bytes, {predicted} predicted ({found - predicted:+d})" for name, predicted, found in off[:MOST_DETAILS]]
    summary = f"{len(off)} of {len(measured)} nodes differ; the most at {name!r}: {found - predicted:+d} bytes"
    return Check("memory", Outcome.FAILED, summary, tuple(details), figures)


def _resident(prediction: Prediction, compiled: Report) -> Check:
    reason = f"onnxruntime {compiled.version} does not report memory per node (1.28 and newer do)"
    if compiled.resident_bytes is None:
        return Check("memory", Outcome.SKIPPED, f"{reason}, and resident memory cannot be read here", figures={"measured": "nothing"})
    workspaces = compiled.workspaces or {}
    expected = max((node.live_bytes + workspaces.get(node.name, 0) for node in prediction.nodes), default=0)
    found = compiled.resident_bytes
    figures = {"measured": "resident", "peak_bytes": found, "predicted_bytes": expected}
    summary = f"{reason}: resident memory grew by {format_bytes(found)}, {format_bytes(expected)} predicted"
    if found <= expected + rounding(expected):
        return Check("memory", Outcome.PASSED, summary, (), figures)
    if compiled.workspaces is None:
        return Check("memory", Outcome.SKIPPED, f"{summary} without workspace, which only 1.23 and newer report", (), figures)
    return Check("memory", Outcome.FAILED, summary, (), figures)


def rounding(size: int) -> int:
    """How much rounding to pages and the allocator's bookkeeping may add to a number of bytes."""
    return max(2**18, size // 200)


@dataclass(frozen=True, slots=True)
class Peak:
    """The peak memory of a model."""

    bytes: int
    node: str
    """The node at the peak; empty if it is not known."""
    workspace: int
    exact: bool
    """True if measured per node to the byte; false if measured as memory of the process."""


def peak_of(nodes: Sequence[FileNode], prediction: Prediction, report: Report) -> Peak | None:
    """Fixed memory, computed tensors and workspace together."""
    measured = computed_bytes(report.run)
    if measured is None:
        return None if report.resident_bytes is None else Peak(prediction.base_bytes + report.resident_bytes, "", 0, False)
    workspaces = report.workspaces or {}
    best = Peak(prediction.base_bytes, "", 0, True)
    for node, found in zip(report.run, measured, strict=True):
        extra = workspaces.get(node.name, 0)
        if prediction.base_bytes + found + extra > best.bytes:
            name = nodes[node.index].name if is_from_file(node.index, node.kind, nodes) else node.name
            best = Peak(prediction.base_bytes + found + extra, name, extra, True)
    return best


GROWTH_SHARE, GROWTH_BYTES = 0.1, 8_000_000
"""How much more than predicted a process may take: this share, or this many bytes."""


def check_process(report: Report, predicted: int | None, budget: int | None, reserve: int) -> Check:
    """Compare what the process took, after the first run and after the last, with the prediction in the file, and with a budget for it."""
    if report.failure is not None:
        return Check("process", Outcome.FAILED, f"the model fails: {report.failure.value}: {report.message}")
    if not report.growth:
        return Check("process", Outcome.SKIPPED, "the memory of the process cannot be read here")
    first, last = report.growth
    figures = {"first_bytes": first, "last_bytes": last, "predicted_bytes": predicted}
    taken = f"{format_bytes(first)} after the first run, {format_bytes(last)} after the tenth"
    if predicted is None:
        return Check("process", Outcome.SKIPPED, f"took {taken}; the file has no prediction", (), figures)
    summary = f"{taken}; {format_bytes(predicted)} predicted"
    most = predicted + max(GROWTH_BYTES, int(GROWTH_SHARE * predicted))
    if budget is not None:
        most = min(most, budget - reserve + max(GROWTH_BYTES, int(GROWTH_SHARE * budget)))
    return Check("process", Outcome.PASSED if last <= most else Outcome.FAILED, summary, (), figures)


BUSY = 0.1
"""If rounds of the same model differ by more than this, times are not reliable."""


def check_time(original: Sequence[float], compiled: Sequence[float], predicted: float | None, threads: int) -> Check:
    """The shortest run of each round; rounds alternate between the models. Never fails, because other load on the machine affects times."""
    if not original or not compiled:
        return Check("time", Outcome.SKIPPED, "not measured")
    real = min(compiled) / min(original) - 1
    spread = max(max(times) / min(times) - 1 for times in (original, compiled))
    told = "no prediction in the file" if predicted is None else f"predicted {100 * predicted:+.1f} %"
    summary = f"{1e3 * min(original):.4g} ms -> {1e3 * min(compiled):.4g} ms: {100 * real:+.1f} %; {told}"
    if spread > BUSY:
        summary += f"; not reliable, the machine is busy: rounds of one model differ by up to {100 * spread:.0f} %"
    figures = {
        "original_seconds": min(original),
        "compiled_seconds": min(compiled),
        "overhead": real,
        "predicted_overhead": predicted,
        "spread": spread,
        "reliable": spread <= BUSY,
        "threads": threads,
    }
    return Check("time", Outcome.PASSED, summary, (), figures)
