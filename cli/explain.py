"""`checkmate explain`: why a schedule is as it is, in words."""

from __future__ import annotations

import shutil
import textwrap
from dataclasses import replace
from fractions import Fraction
from math import ceil

import click

from ..core.certify import run_strategy
from ..core.errors import InputError
from ..core.events import Watch
from ..core.explain import explain_peak, largest_dropped, recomputations, what_it_buys
from ..core.result import Stop
from ..core.settings import Known, Settings
from ..core.units import parse_budget
from .amounts import shown
from .command import Command, option
from .exit_codes import ExitCode
from .explanation import Explanation, LargerBudget, fields_of, percent, told
from .interruption import Interruption
from .options import SOLVING, ScheduleGraph, general_options, schedule_graph_options
from .outcome import outcome_of
from .parameters import DURATION, Parsed
from .progress import Progress
from .render import show_lines
from .schedule_source import OpenSchedule, open_schedule
from .session import Session

WIDTH = 100
"""Of the text, where the terminal is not narrower."""


def _more(text: str) -> Fraction:
    """A share of the budget to add to it."""
    share = parse_budget(text).share
    if share is None:
        raise InputError(f"expected a percentage of the budget such as 10%, not {text!r}")
    return share


@click.command(
    cls=Command,
    examples=[
        ("checkmate explain model.schedule.json", "why the peak is where it is, what is dropped, and what more memory would gain"),
        ("checkmate explain model.schedule.json --more 25% --time-limit 2m", "what a quarter more would gain, with patience"),
        ("checkmate explain model.schedule.json --no-solve --json", "at once, for a script"),
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
    help="How much more budget to try, as a share of it.",
)
@option(
    "--time-limit",
    group=SOLVING,
    type=DURATION,
    default="20s",
    show_default=True,
    help="For the larger budget: when to stop with the best schedule so far.",
)
@option("--no-solve", group=SOLVING, is_flag=True, help="Say nothing about a larger budget, and take no time for it.")
@general_options
def explain(session: Session, schedule: str, graph: ScheduleGraph, more: Fraction, time_limit: float, no_solve: bool) -> ExitCode:
    """Explain SCHEDULE, a schedule file, in words.

    Says which operation takes the peak and what is in memory there, which large tensors are dropped and what each of them buys, and what
    more budget would gain, for which it solves again. The schedule is verified first. SCHEDULE may be - for stdin.
    """
    opened = open_schedule(schedule, graph)
    progress = Progress(session, unit=opened.unit, ideal_cost=opened.examined.problem.ideal_cost, time_limit=time_limit)
    interruption = Interruption(session, lambda: progress.announce("stopping with the best so far; Ctrl-C again stops at once"))
    with progress, interruption:
        progress.begin("replaying")
        explanation = _explanation(opened)
        if not no_solve:
            progress.begin(f"{percent(more)} more budget")
            watch = Watch(time_limit, progress.on_event, lambda: interruption.requested)
            explanation = replace(explanation, larger=_larger(explanation, more, watch))
    if session.json:
        session.emit_json(fields_of(explanation))
    elif not session.quiet:
        width = min(WIDTH, shutil.get_terminal_size((WIDTH, 24)).columns)
        for title, paragraphs in told(explanation):
            wrapped = (textwrap.wrap(shown(text), width, initial_indent="  ", subsequent_indent="    ") for text in paragraphs)
            show_lines(title, [line for lines in wrapped for line in lines])
    if interruption.requested:
        session.note("interrupted: what more budget would gain is the best found so far")
        return ExitCode.INTERRUPTED
    return ExitCode.OK


def _explanation(opened: OpenSchedule) -> Explanation:
    examined = opened.examined
    repeated = recomputations(examined)
    purchases = tuple(what_it_buys(examined, entry) for entry in largest_dropped(repeated))
    return Explanation(opened, explain_peak(examined), len(repeated), sum(entry.cost for entry in repeated), purchases, None)


def _larger(explanation: Explanation, more: Fraction, watch: Watch) -> LargerBudget:
    """Solve for the larger budget from the present schedule, which fits it too: what is found is worth telling if it is cheaper."""
    examined, document = explanation.schedule.examined, explanation.schedule.document
    problem, present = examined.problem.with_budget(ceil(document.budget_bytes * (1 + more))), examined.simulation
    nothing = LargerBudget(
        budget=problem.budget,
        share=more,
        cost=present.cost,
        bound=problem.ideal_cost,
        bound_scope="any",
        recomputed=present.recomputed,
        peak=present.peak_bytes,
        improved=False,
        stop=Stop.FINISHED,
        seconds=0.0,
    )
    if present.cost <= problem.ideal_cost:
        return nothing
    settings = Settings(order="search", seed=document.seed, known=Known(examined.sequence))
    certified = run_strategy(problem, "auto", settings, watch)
    solution = certified.solution
    nothing = replace(nothing, stop=solution.stop, seconds=certified.seconds)
    if solution.bound is not None and solution.bound > problem.ideal_cost:
        nothing = replace(nothing, bound=min(solution.bound, present.cost), bound_scope=solution.bound_scope)
    if certified.simulation is None or not certified.fits or certified.simulation.cost >= present.cost:
        return nothing
    found = outcome_of(certified, problem, examined.keep_all.peak_bytes, settings.gap)
    return replace(
        nothing,
        cost=found.cost,
        bound=found.bound,
        bound_scope=found.bound_scope,
        recomputed=found.recomputed,
        peak=found.peak_bytes,
        improved=True,
    )
