"""`checkmate check`: compare schedules with a baseline, for CI. Is any of them worse, missing, or no longer valid?"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from ...api.schedule_file import Schedule
from ...core.errors import CheckmateError, InputError
from ...core.events import relative_gap
from ...core.model.units import count, format_bytes
from ...core.result import Status
from ..console import Console
from ..exit_codes import ExitCode
from ..failures import one_line
from ..options.command import Command, option
from ..options.destinations import SCHEDULE_SUFFIX
from ..options.shared import ScheduleGraph, general_options
from ..options.values import GAP
from ..output.amounts import format_change, format_cost, format_share, shown
from ..output.render import Column, Row, blank, show_lines, show_table
from ..output.schedule_source import open_schedule

COMPARING = "Comparing"
_NOISE = 1e-9
"""Relative; sums of the same costs in another order differ by less than this."""


@dataclass(frozen=True, slots=True)
class Checked:
    """One schedule and its baseline. `problems` says why it fails; if it is empty, the schedule is as good as its baseline."""

    name: str
    verdict: str
    """`same`, `better`, `new`, `worse`, `missing` or `invalid`."""
    problems: tuple[str, ...] = ()
    now: Schedule | None = None
    before: Schedule | None = None

    @property
    def code(self) -> ExitCode:
        if self.verdict == "invalid":
            return ExitCode.VERIFICATION
        return ExitCode.WORSE if self.verdict in ("worse", "missing") else ExitCode.OK

    def fields(self) -> dict[str, Any]:
        sides = {"schedule": self.now, "baseline": self.before}
        figures = {side: None if found is None else _figures(found) for side, found in sides.items()}
        return {"name": self.name, "verdict": self.verdict, "problems": list(self.problems), **figures}


@click.command(
    cls=Command,
    examples=[
        ("checkmate check schedules/ --against baseline/", "fail if any schedule is worse than its baseline"),
        ("checkmate check schedules/ --against baseline/ --tolerance 0.5%", "allow half a percent"),
        (
            "checkmate check schedules/ --against baseline/ --json | jq -r '.schedules[] | select(.problems != []) | .name'",
            "list the schedules that fail",
        ),
    ],
)
@click.argument("schedules", type=click.Path())
@option(
    "--against",
    group=COMPARING,
    required=True,
    type=click.Path(),
    metavar="PATH",
    help="The baseline: a folder of schedule files, or one schedule file.",
)
@option(
    "--tolerance",
    group=COMPARING,
    metavar="SHARE",
    type=GAP,
    default="0%",
    show_default=True,
    help="How much worse a schedule may be: relative for cost and peak, absolute for the gap.",
)
@general_options
def check(console: Console, schedules: str, against: str, tolerance: float) -> ExitCode:
    """Compare SCHEDULES, a folder of schedule files or one schedule file, with a baseline.

    Compares schedules of the same name, and verifies each one again. A schedule fails if its cost, gap or status is worse than the
    baseline's by more than the tolerance; if its peak is, unless the schedule is cheaper; or if graph, budget or costs differ, so that
    the two cannot be compared.
    Exits with 7 if a schedule is worse or missing, with 6 if one fails verification.
    """
    now, before = _found(Path(schedules)), _found(Path(against))
    if len(now) == len(before) == 1 and Path(schedules).is_file() and Path(against).is_file():
        before = dict(zip(now, before.values(), strict=True))
    checked = [_check(name, now.get(name), before.get(name), tolerance) for name in sorted({*now, *before})]
    code = max((found.code for found in checked), key=(ExitCode.OK, ExitCode.WORSE, ExitCode.VERIFICATION).index)
    if console.json:
        console.emit_json(_fields(checked, code, tolerance))
    elif not console.quiet:
        _show(checked)
    return code


def _found(path: Path) -> dict[str, Path]:
    """Schedule files by their path relative to the folder."""
    if path.is_dir():
        paths = sorted(path.rglob(f"*{SCHEDULE_SUFFIX}"))
        if not paths:
            raise InputError(f"{path}: no schedules (*{SCHEDULE_SUFFIX}) in this folder")
        return {found.relative_to(path).as_posix().removesuffix(SCHEDULE_SUFFIX): found for found in paths}
    if not path.exists():
        raise InputError(f"{path}: no such file or folder")
    return {path.name.removesuffix(SCHEDULE_SUFFIX): path}


def _check(name: str, now: Path | None, before: Path | None, tolerance: float) -> Checked:
    baseline = None if before is None else _open(before)
    if now is None:
        return Checked(name, "missing", ("it is missing: the baseline has it",), before=baseline)
    try:
        found = _open(now)
    except CheckmateError as error:
        return Checked(name, "invalid", (one_line(str(error)),), before=baseline)
    if baseline is None:
        return Checked(name, "new", now=found)
    problems = tuple(_not_comparable(found, baseline)) or tuple(_regressions(found, baseline, tolerance))
    if problems:
        return Checked(name, "worse", problems, found, baseline)
    better = _cheaper(found, baseline) or found.document.peak_bytes < baseline.document.peak_bytes
    return Checked(name, "better" if better else "same", now=found, before=baseline)


def _open(path: Path) -> Schedule:
    return open_schedule(str(path), ScheduleGraph(None, {}, None))


def _not_comparable(now: Schedule, before: Schedule) -> Iterator[str]:
    from ...core.model.digest import graph_digest

    if graph_digest(now.graph) != graph_digest(before.graph):
        yield "its graph differs from the baseline's; update the baseline"
        return
    if now.document.budget_bytes != before.document.budget_bytes:
        yield f"its budget is {now.document.budget_bytes} bytes, the baseline's is {before.document.budget_bytes}; update the baseline"
    if (now.document.cost_model, now.document.amounts) != (before.document.cost_model, before.document.amounts):
        yield "its operations have other costs than the baseline's; update the baseline"


def _regressions(now: Schedule, before: Schedule, tolerance: float) -> Iterator[str]:
    fresh, old = now.document, before.document
    if fresh.cost > old.cost * (1 + tolerance + _NOISE):
        yield f"cost {format_change(fresh.cost / old.cost - 1 if old.cost else math.inf)}"
    if fresh.peak_bytes > old.peak_bytes * (1 + tolerance) and not _cheaper(now, before):
        yield f"peak {format_change(fresh.peak_bytes / old.peak_bytes - 1 if old.peak_bytes else math.inf)}"
    gap, old_gap = _gap(now), _gap(before)
    if gap > old_gap + tolerance + _NOISE:
        yield f"gap {format_share(gap)}, was {format_share(old_gap)}" if gap < math.inf else "it has no bound, the baseline has one"
        if (fresh.status, old.status) == (Status.FEASIBLE, Status.OPTIMAL):
            yield "no longer optimal"


def _cheaper(now: Schedule, before: Schedule) -> bool:
    """A cheaper schedule may use more of the same budget."""
    return now.document.cost < before.document.cost * (1 - _NOISE)


def _gap(found: Schedule) -> float:
    bound = found.document.bound
    return math.inf if bound is None else relative_gap(found.document.cost, bound)


def _figures(found: Schedule) -> dict[str, Any]:
    document = found.document
    return {
        "path": found.source,
        "status": document.status.value,
        "cost": document.cost,
        "cost_unit": document.cost_unit,
        "peak_bytes": document.peak_bytes,
        "budget_bytes": document.budget_bytes,
        "gap": document.gap,
    }


def _fields(checked: list[Checked], code: ExitCode, tolerance: float) -> dict[str, Any]:
    words: Mapping[ExitCode, str] = {ExitCode.OK: "passed", ExitCode.VERIFICATION: "invalid"}
    return {
        "format": "checkmate-check",
        "version": 1,
        "status": words.get(code, "failed"),
        "tolerance": tolerance,
        "schedules": [found.fields() for found in checked],
    }


def _show(checked: list[Checked]) -> None:
    columns = [
        *(Column("schedule"), Column("verdict"), Column("cost", right=True), Column("baseline", right=True)),
        *(Column("peak", right=True), Column("baseline", right=True)),
    ]
    failed = sum(found.code is not ExitCode.OK for found in checked)
    title = f"{count(len(checked), 'schedule')}, {f'{failed} failed' if failed else 'all as good as the baseline'}"
    show_table(title, columns, [_row(found) for found in checked])
    told = [f"  {shown(found.name)}: {shown('; '.join(found.problems))}" for found in checked if found.problems]
    if told:
        blank()
        show_lines("Problems", told)


def _row(found: Checked) -> Row:
    now, before = found.now, found.before
    cells = (
        shown(found.name),
        found.verdict,
        *("-" if side is None else format_cost(side.document.cost, side.cost_unit) for side in (now, before)),
        *("-" if side is None else format_bytes(side.document.peak_bytes) for side in (now, before)),
    )
    return Row(cells, "red" if found.code is not ExitCode.OK else "green" if found.verdict == "better" else "")
