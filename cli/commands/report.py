"""`checkmate report`: write a schedule as one HTML page, which needs no installation and no network."""

from __future__ import annotations

import sys

import click

from ...core.errors import InputError
from ...core.model.units import format_bytes
from ..console import Console
from ..options.command import Command, option
from ..options.destinations import check_destinations, make_folders, report_path
from ..options.shared import OUTPUT, ScheduleGraph, general_options, schedule_graph_options
from ..output.amounts import source_name
from ..output.schedule_source import open_schedule


@click.command(
    cls=Command,
    examples=[
        ("checkmate report model.schedule.json", "writes model.report.html"),
        ("checkmate solve model.onnx --budget 8GB --report model.html", "solve, and write the page too"),
        ("checkmate report old.schedule.json --graph model.onnx --batch-size 32", "for a schedule file that does not contain its graph"),
    ],
)
@click.argument("schedule", type=click.Path(allow_dash=True))
@schedule_graph_options
@option("-o", "--output", group=OUTPUT, metavar="PATH", help="A folder, a page.html, or - for stdout.  [default: named after the schedule]")
@general_options
def report(console: Console, schedule: str, graph: ScheduleGraph, output: str | None) -> None:
    """Write an HTML page about SCHEDULE, a schedule file.

    The page is one file that needs no network. It shows memory over time with and without recomputation, the values in memory at the
    cursor, what each stage computes and keeps, what is recomputed and what that costs, the largest values, and the progress of the
    search. The schedule is verified first. SCHEDULE may be - for stdin.
    """
    if output == "-" and console.json:
        raise InputError("--json and -o - both write to stdout; choose one, or name a file with -o")
    path = None if output == "-" else report_path(schedule, output)
    if path is not None:
        check_destinations([path], schedule)
    opened = open_schedule(schedule, graph)
    page = opened.page()
    if path is None:
        sys.stdout.flush()
        sys.stdout.buffer.write(page)
        return
    make_folders([path])
    opened.report(path)
    if console.json:
        fields = {"graph": {"name": opened.graph.name}, "operations": len(opened.graph.operations), "bytes": len(page)}
        console.emit_json({"format": "checkmate-report", "version": 1, "status": "ok", **fields, "outputs": [str(path)]})
    elif not console.quiet:
        click.echo(f"wrote {source_name(str(path))} ({format_bytes(len(page))}); open it in a browser")
