"""`checkmate report`: a schedule as one HTML page to look at, with nothing to install and no network."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from ..core.errors import InputError
from ..core.units import format_bytes
from .amounts import source_name
from .command import Command, option
from .options import OUTPUT, ScheduleGraph, general_options, schedule_graph_options
from .outputs import check_destinations, make_folders, report_path
from .schedule_source import open_schedule
from .session import Session


@click.command(
    cls=Command,
    examples=[
        ("checkmate report model.schedule.json", "writes model.report.html"),
        ("checkmate solve model.onnx --budget 8GB --report model.html", "solve, and make the page at once"),
        ("checkmate report old.schedule.json --graph model.onnx --batch-size 32", "a schedule file that does not hold its graph"),
    ],
)
@click.argument("schedule", type=click.Path(allow_dash=True))
@schedule_graph_options
@option("-o", "--output", group=OUTPUT, metavar="PATH", help="A folder, a page.html, or - for stdout.  [default: named like the schedule]")
@general_options
def report(session: Session, schedule: str, graph: ScheduleGraph, output: str | None) -> None:
    """Write an HTML page about SCHEDULE, a schedule file.

    One file that needs no other and no network: memory over time with and without the schedule and what is alive under the cursor, what
    each stage computes and keeps, what is computed again and what that costs, the largest values, how the search went.
    The schedule is verified first. SCHEDULE may be - for stdin.
    """
    from ..io.atomic import atomic_write
    from ..io.report import render_report

    if output == "-" and session.json:
        raise InputError("--json and -o - both want stdout; choose one, or name a file with -o")
    path = None if output == "-" else report_path(schedule, output)
    if path is not None:
        check_destinations([path], schedule)
    opened = open_schedule(schedule, graph)
    page = render_report(opened.document, opened.graph)
    if path is None:
        sys.stdout.flush()
        sys.stdout.buffer.write(page)
        return
    make_folders([path])
    atomic_write(Path(path), page)
    if session.json:
        fields = {"graph": {"name": opened.graph.name}, "operations": len(opened.graph.operations), "bytes": len(page)}
        session.emit_json({"format": "checkmate-report", "version": 1, "status": "ok", **fields, "outputs": [str(path)]})
    elif not session.quiet:
        click.echo(f"wrote {source_name(str(path))} ({format_bytes(len(page))}); open it in a browser")
