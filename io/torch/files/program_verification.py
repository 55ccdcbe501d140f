"""Verify a compiled program by running it and its original in a child process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ....core.errors import InputError
from ....core.model.units import exact_bytes, format_bytes
from ...formats.content import Content
from ...onnxruntime.checks import MOST_DETAILS, Check, Outcome, check_time
from ...onnxruntime.verification import BUDGET_KEY, OVERHEAD_KEY, RESERVE_KEY, Verification, VerifyOptions
from .archive import open_archive
from .isolated import run_isolated
from .program_graph import TorchProgram
from .program_writer import SIZES_NOTE, TRAINING_NOTE


def verify_programs(
    original: TorchProgram,
    compiled: Path,
    options: VerifyOptions,
    on_task: Callable[[str], None] = lambda task: None,
) -> Verification:
    """Compare outputs, gradients, buffers, order, memory and time."""
    if original.archive.path is None:
        raise InputError("a program from standard input cannot be run: give a file")
    if options.enforce:
        raise InputError("--enforce is for ONNX models: leave it out")
    request = {
        "original": str(original.archive.path),
        "compiled": str(compiled),
        "dims": {**_made_for(compiled, SIZES_NOTE), **original.sizes},
        "batch_size": None,
        "training": _made_for(compiled, TRAINING_NOTE) or training_fields(original),
        "inputs": None if options.inputs is None else str(options.inputs),
        "repeat": options.repeat,
        "threads": options.threads,
        "seed": options.seed,
    }
    report = run_isolated("verify", request, on_task)
    notes = report["notes"]
    budget = options.budget if options.budget is not None else _whole(notes.get(BUDGET_KEY))
    reserve = options.reserve if options.reserve is not None else _whole(notes.get(RESERVE_KEY)) or 0
    checks = (
        _outputs(report),
        _order(report),
        _memory(report),
        _budget(report, budget, reserve),
        check_time(report["times"][0], report["times"][1], _number(notes.get(OVERHEAD_KEY)), report["threads"]),
    )
    return Verification(report["version"], budget, checks, runtime="torch")


def _made_for(compiled: Path, note: str) -> dict[str, Any]:
    """What a compiled program says of how it was made; nothing if it does not."""
    found = open_archive(Content.from_path(compiled)).notes.get(note)
    return dict(found) if isinstance(found, dict) else {}


def training_fields(program: TorchProgram) -> dict[str, Any] | None:
    """How the program was made a training step, for a child process."""
    return None if program.objective is None else asdict(program.training)


CLOSE = 1e-4
"""Relative to the largest number of a result: how far torch's tracing may be from its eager mode where it uses other kernels."""


def _outputs(report: Mapping[str, Any]) -> Check:
    compared, different, apart = report["compared"], report["different"], report["apart"]
    same = compared - len(different)
    figures = {"compared": compared, "equal": same, "tracing_difference": apart or 0.0}
    summary = f"{same} of {compared} bit-identical"
    if apart is not None and apart <= CLOSE:
        summary += f" to eager mode, the others to the program as torch traces it, which is {apart:.1g} of its largest number away"
        return Check("outputs", Outcome.PASSED, summary, (), figures)
    details = [f"{name} is missing" if name in report["missing"] else f"{name} differs" for name in different]
    return Check("outputs", Outcome.FAILED if different else Outcome.PASSED, summary, tuple(details[:MOST_DETAILS]), figures)


def _order(report: Mapping[str, Any]) -> Check:
    wrong, calls = report["order"], report["calls"]
    summary = f"{calls} operators ran in the order of the file" if not wrong else "operators did not run in the order of the file"
    return Check("order", Outcome.FAILED if wrong else Outcome.PASSED, summary, tuple(wrong), {"calls": calls})


def _memory(report: Mapping[str, Any]) -> Check:
    measured, predicted = report["peak_bytes"], report["predicted_peak_bytes"]
    figures = {"peak_bytes": measured, "predicted_peak_bytes": predicted}
    if measured == predicted:
        return Check("memory", Outcome.PASSED, f"the peak is {exact_bytes(measured)}, as predicted with measured workspace", (), figures)
    summary = f"the peak is {exact_bytes(measured)}, {measured - predicted:+d} bytes from the prediction with measured workspace"
    return Check("memory", Outcome.FAILED if measured > predicted else Outcome.PASSED, summary, (), figures)


def _budget(report: Mapping[str, Any], budget: int | None, reserve: int) -> Check:
    total = report["peak_bytes"] + reserve
    figures = {"peak_bytes": total, "budget_bytes": budget}
    if budget is None:
        return Check("budget", Outcome.SKIPPED, f"peak {format_bytes(total)}; the file has no budget; set one with --budget", (), figures)
    if total <= budget:
        return Check("budget", Outcome.PASSED, f"peak {format_bytes(total)} of {format_bytes(budget)}", (), figures)
    details = ("solve with --profile, which measures workspace",)
    return Check(
        "budget", Outcome.FAILED, f"peak {format_bytes(total)} is {total - budget} bytes above {format_bytes(budget)}", details, figures
    )


def _whole(text: Any) -> int | None:
    return int(text) if isinstance(text, str) and text.isdecimal() else None


def _number(text: Any) -> float | None:
    try:
        return None if text is None else float(text)
    except (TypeError, ValueError):
        return None
