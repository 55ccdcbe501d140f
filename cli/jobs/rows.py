"""The result of each job, and the summary of all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...api.result import Result
from ...core.model.units import count, format_bytes
from ..exit_codes import ExitCode
from ..output.amounts import format_change, format_cost, format_elapsed, format_share, shown
from ..output.render import Column, Row, blank, show_lines, show_table
from .job_list import Job

SEVERITY = (
    *(ExitCode.OK, ExitCode.WORSE, ExitCode.LIMIT, ExitCode.INFEASIBLE, ExitCode.UNAVAILABLE, ExitCode.INPUT),
    *(ExitCode.VERIFICATION, ExitCode.BUG, ExitCode.INTERRUPTED),
)
"""From best to worst: a batch exits with the worst code of its jobs."""
NOT_RUN = "not-run"


@dataclass(frozen=True, slots=True)
class Finished:
    """A finished job. If it has no result, the note says why."""

    job: Job
    status: str
    code: ExitCode
    result: Result | None = None
    unit: str = ""
    from_cache: bool = False
    note: str = ""
    violated: tuple[str, ...] = ()
    """Conditions of --fail-if that it meets."""
    solved: Mapping[str, Any] = field(default_factory=dict)
    """The keys of `solve --json`; for an error, its details."""

    def fields(self) -> dict[str, Any]:
        options = self.job.options
        return {
            "name": self.job.name,
            "graph": {"source": self.job.source},
            "budget": options.budget.text,
            "strategy": options.strategy,
            **self.solved,
            "status": self.status,
            "exit_code": int(self.code),
            "from_cache": self.from_cache,
            "fail_if": list(self.violated),
            "error": self.note or None,
        }


def not_run(job: Job) -> Finished:
    return Finished(job, NOT_RUN, ExitCode.OK)


def worst(rows: Sequence[Finished]) -> ExitCode:
    return max((row.code for row in rows), key=SEVERITY.index, default=ExitCode.OK)


def batch_fields(rows: Sequence[Finished], code: ExitCode, seconds: float) -> dict[str, Any]:
    """The object of `--json` and `--results`."""
    words = {ExitCode.OK: "ok", ExitCode.INTERRUPTED: "interrupted"}
    return {
        "format": "checkmate-batch",
        "version": 1,
        "status": words.get(code, "failed"),
        "exit_code": int(code),
        "total": len(rows),
        "succeeded": sum(_succeeded(row) for row in rows),
        "failed": sum(row.code is not ExitCode.OK for row in rows),
        "not_run": sum(row.status == NOT_RUN for row in rows),
        "from_cache": sum(row.from_cache for row in rows),
        "seconds": round(seconds, 6),
        "jobs": [row.fields() for row in rows],
    }


def _succeeded(row: Finished) -> bool:
    return row.code is ExitCode.OK and row.status != NOT_RUN


def show_rows(rows: Sequence[Finished], seconds: float, stream: Any) -> None:
    columns = [
        *(Column("job"), Column("status"), Column("cost", right=True), Column("overhead", right=True), Column("peak", right=True)),
        *(Column("gap", right=True), Column("time", right=True), Column("")),
    ]
    show_table(_title(rows, seconds), columns, [_row(row) for row in rows], stream)
    told = [f"  {shown(row.job.name)}: {shown(row.note)}" for row in rows if row.note]
    if told:
        blank(stream)
        show_lines("Notes", told, stream)


def _title(rows: Sequence[Finished], seconds: float) -> str:
    failed, left = sum(row.code is not ExitCode.OK for row in rows), sum(row.status == NOT_RUN for row in rows)
    cached = sum(row.from_cache for row in rows)
    parts = [f"{count(len(rows), 'job')} in {format_elapsed(seconds)}", f"{sum(map(_succeeded, rows))} succeeded"]
    parts += [f"{number} {word}" for number, word in ((failed, "failed"), (left, "not run"), (cached, "from the cache")) if number]
    return ", ".join(parts)


def _row(row: Finished) -> Row:
    name, result = shown(row.job.name), row.result
    if result is None:
        return Row((name, row.status, "-", "-", "-", "-", "-", ""), "dim" if row.status == NOT_RUN else "red")
    cells = (
        name,
        row.status,
        format_cost(result.cost, row.unit),
        format_change(result.overhead),
        format_bytes(result.peak_bytes),
        format_share(result.gap),
        format_elapsed(result.seconds),
        ", ".join([*(f"fails: {text}" for text in row.violated), *(["cached"] if row.from_cache else [])]),
    )
    return Row(cells, "yellow" if row.violated else "")
