"""Writing what `solve` found: the schedule, and the model compiled from it. Both or, if the model cannot be made, neither."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from .. import __version__
from ..core.certify import Certified
from ..core.history import History
from ..core.problem import Problem
from ..io.onnx.anchoring import Anchor
from .options import SolvingRequest
from .outcome import Outcome
from .outputs import Destinations, make_folders
from .pipeline import Prepared

if TYPE_CHECKING:
    from ..io.schedule_json import ScheduleDocument
    from ..io.task_json import Answer


def check_model_can_be_written(prepared: Prepared, destinations: Destinations) -> None:
    """Weights beside the model may have to be copied: what is in the way is said before the long work."""
    if destinations.model is None or prepared.loaded.onnx is None:
        return
    from ..io.onnx.external import external_copies

    external_copies(prepared.loaded.onnx.proto, destinations.model, prepared.loaded.onnx.path)


def write_results(
    prepared: Prepared,
    problem: Problem,
    solving: SolvingRequest,
    certified: Certified,
    outcome: Outcome,
    destinations: Destinations,
    anchor: Anchor,
    *,
    history: History | None = None,
    report: Path | None = None,
    answer: Answer | None = None,
) -> list[Path]:
    """Write everything asked for, and say which files there are now. An `answer` knows when and by what it was made."""
    from ..io.atomic import atomic_write
    from ..io.json_text import json_text
    from ..io.schedule_json import render_schedule

    document = schedule_document(prepared, problem, solving, certified, outcome, history, answer)
    data = json_text(render_schedule(document, prepared.graph)).encode("utf-8", "backslashreplace")
    reports = [] if report is None else _write_report(document, prepared, report)
    if destinations.to_stdout:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        return reports
    make_folders(destinations.paths)
    reserve = problem.base - problem.graph.fixed_bytes
    models = [] if destinations.model is None else _write_model(prepared, certified, outcome, reserve, anchor, destinations.model)
    assert destinations.schedule is not None
    atomic_write(destinations.schedule, data)
    return [destinations.schedule, *models, *reports]


def _write_report(document: ScheduleDocument, prepared: Prepared, path: Path) -> list[Path]:
    from ..io.atomic import atomic_write
    from ..io.report import render_report

    make_folders([path])
    atomic_write(path, render_report(document, prepared.graph))
    return [path]


def schedule_document(
    prepared: Prepared,
    problem: Problem,
    solving: SolvingRequest,
    certified: Certified,
    outcome: Outcome,
    history: History | None = None,
    answer: Answer | None = None,
) -> ScheduleDocument:
    """All that the schedule file says."""
    from ..io.schedule_json import Run, ScheduleDocument

    assert certified.schedule is not None
    progress = () if history is None else history.concluded(outcome.seconds, outcome.cost, outcome.bound)
    return ScheduleDocument(
        strategy=outcome.strategy,
        status=outcome.status,
        stop=outcome.stop,
        budget_bytes=problem.budget,
        reserve_bytes=problem.base - problem.graph.fixed_bytes,
        peak_bytes=outcome.peak_bytes,
        keep_all_peak_bytes=outcome.keep_all_peak_bytes,
        cost=outcome.cost,
        bound=outcome.bound,
        cost_model=prepared.costs.model,
        cost_unit=prepared.costs.unit,
        amounts=prepared.costs.amounts,
        schedule=certified.schedule,
        run=answer.run if answer else Run(round(outcome.seconds, 6), now(), progress),
        seed=solving.settings.seed,
        bound_scope=outcome.bound_scope,
        provenance=outcome.provenance,
        versions=answer.versions if answer else versions_of(outcome.provenance),
        runtime=problem.runtime,
    )


def now() -> str:
    """Date and time, ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def versions_of(provenance: Mapping[str, str | int | float]) -> dict[str, str]:
    """Of everything that had a hand in a schedule."""
    versions = {"checkmate": __version__}
    solver = provenance.get("solver")
    if isinstance(solver, str):
        from ..core.solvers import get_solver

        versions |= {"pyomo": metadata.version("pyomo"), solver: get_solver(solver).version()}
    return versions


def _write_model(prepared: Prepared, certified: Certified, outcome: Outcome, reserve: int, anchor: Anchor, path: Path) -> list[Path]:
    from ..io.onnx.external import save_model
    from ..io.onnx.writer import compile_model

    assert prepared.loaded.onnx is not None
    assert certified.schedule is not None
    notes = {
        "checkmate.strategy": outcome.strategy,
        "checkmate.budget_bytes": str(outcome.budget_bytes),
        "checkmate.reserve_bytes": str(reserve),
        "checkmate.peak_bytes": str(outcome.peak_bytes),
        "checkmate.overhead": repr(outcome.overhead),
    }
    compiled = compile_model(prepared.loaded.onnx, certified.schedule, anchor=anchor, metadata=notes)
    return list(save_model(compiled, path, prepared.loaded.onnx.path))
