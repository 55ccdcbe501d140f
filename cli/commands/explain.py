"""`checkmate explain`: explain a schedule in words."""

from __future__ import annotations

import shutil
import sys
import textwrap
from dataclasses import replace
from fractions import Fraction

import click

from ...api.explaining import explain_schedule, larger_budget
from ...core.errors import InputError
from ...core.events import Watch
from ...core.model.units import parse_budget
from ..console import Console
from ..exit_codes import ExitCode
from ..jobs.interruption import Interruption
from ..options.command import Command, option
from ..options.shared import SOLVING, ScheduleGraph, general_options, schedule_graph_options
from ..options.values import DURATION, Parsed
from ..output.amounts import shown
from ..output.explained import fields_of, percent, told
from ..output.progress import Progress
from ..output.render import shortened, show_lines
from ..output.schedule_source import open_schedule

WIDTH = 100
"""Of the text, unless the terminal is narrower."""


def _more(text: str) -> Fraction:
    """How much to add to the budget, as a share of it."""
    share = parse_budget(text).share
    if share is None:
        raise InputError(f"expected a percentage of the budget such as 10%, not {text!r}")
    return share


@click.command(
    cls=Command,
    examples=[
        ("checkmate explain model.schedule.json", "why the peak is where it is, what is recomputed, and what more budget would gain"),
        ("checkmate explain model.schedule.json --more 25% --time-limit 2m", "what 25 % more budget would gain, with a longer time limit"),
        ("checkmate explain model.schedule.json --no-solve --json", "for a script, without solving again"),
    ],
)
@click.argument("schedule", type=click.Path(allow_dash=True))
@schedule_graph_options
@option(
    "--more",
    group=SOLVING,
    type=Parsed("SHARE", _more),
    default="10%",
    show_default=True,
    help="How much more budget to try, in percent of the budget.",
)
@option(
    "--time-limit",
    group=SOLVING,
    type=DURATION,
    default="20s",
    show_default=True,
    help="Time limit for solving with the larger budget.",
)
@option("--no-solve", group=SOLVING, is_flag=True, help="Do not solve with a larger budget.")
@general_options
def explain(console: Console, schedule: str, graph: ScheduleGraph, more: Fraction, time_limit: float, no_solve: bool) -> ExitCode:
    """Explain SCHEDULE, a schedule file, in words.

    Says at which operation the peak is and what is in memory there, which large tensors are dropped and recomputed and what the peak
    would be if each were kept, and what more budget would gain (for this it solves again). The schedule is verified first. SCHEDULE may
    be - for stdin.
    """
    opened = open_schedule(schedule, graph)
    progress = Progress(console, unit=opened.cost_unit, ideal_cost=opened.examined.problem.ideal_cost, time_limit=time_limit)
    interruption = Interruption(
        console, lambda: progress.announce("stopping with the best schedule so far; press Ctrl-C again to exit at once")
    )
    with progress, interruption:
        progress.begin("replaying")
        explanation = explain_schedule(opened)
        if not no_solve:
            progress.begin(f"{percent(more)} more budget")
            watch = Watch(time_limit, progress.on_event, lambda: interruption.requested)
            explanation = replace(explanation, larger=larger_budget(explanation, more, watch))
    if console.json:
        console.emit_json(fields_of(explanation))
    elif not console.quiet:
        width = min(WIDTH, shutil.get_terminal_size((WIDTH, 24)).columns)
        for title, paragraphs in told(explanation):
            paragraphs = [shortened(shown(text), width // 2) if sys.stdout.isatty() else shown(text) for text in paragraphs]
            wrapped = (textwrap.wrap(text, width, initial_indent="  ", subsequent_indent="    ") for text in paragraphs)
            show_lines(title, [line for lines in wrapped for line in lines])
    if interruption.requested:
        console.note("interrupted: the gain shown for the larger budget is that of the best schedule found so far")
        return ExitCode.INTERRUPTED
    return ExitCode.OK
