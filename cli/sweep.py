"""`checkmate sweep`: what less memory costs, as a curve of budgets for any set of strategies."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from ..core.errors import InputError
from ..core.events import Event, Watch
from ..core.points import BEST_HEURISTIC
from ..core.strategies import STRATEGIES
from ..core.units import Budget, format_bytes
from ..io.sweep_json import ORIGINS, Sweep, SweepRow, render_sweep
from ..io.sweep_points import PointStore
from .amounts import count, exact_bytes, format_change, format_cost, format_elapsed, format_share, shown, source_name
from .command import Command, option
from .curve_chart import draw_curves
from .exit_codes import ExitCode
from .interruption import Interruption
from .options import OUTPUT, PROBLEM, SOLVING, GraphRequest, SolvingRequest, general_options, graph_options, solving_options
from .outputs import check_destinations, make_folders
from .parameters import COUNT, Budgets, CommaSeparated, Name
from .pipeline import note_if_forward_only, prepare
from .progress import Progress
from .render import Column, Fact, Row, blank, screen_width, show_facts, show_lines, show_table
from .session import Session, speaks_unicode
from .sweep_files import SweepFiles, choose_files, write_files
from .sweep_run import SweepRun, run_here, run_in_workers
from .sweep_tasks import Task
from .training import TrainingRequest, training_options

DEFAULT_STRATEGIES = ("auto", "keep-all", BEST_HEURISTIC)
DEFAULT_POINTS = 10
WIDEST_CHART = 76


@click.command(
    cls=Command,
    examples=[
        ("checkmate sweep model.onnx --budgets 30%:100%:5%", "the curve from 30 % to 100 % of what keeping everything takes"),
        ("checkmate sweep model.onnx --points 20 -o curve.csv -o curve.png", "20 budgets from the smallest that works; a table, a picture"),
        ("checkmate sweep graph.json --budgets 8GB:16GB:1GB,24GB --strategies auto,ap-sqrt,ap-greedy", "two of the paper's baselines too"),
        ("checkmate sweep forward.onnx --loss cross-entropy --batch-size 32 --workers 2", "a forward model, two points at a time"),
    ],
)
@option(
    "--budgets",
    group=PROBLEM,
    type=Budgets(),
    help="Budgets and ranges with commas between them: 30%:100%:5% (first:last:step), 8GB, 80%.",
)
@option(
    "--points",
    group=PROBLEM,
    type=COUNT,
    help="So many budgets, evenly spaced from the smallest that works to the keep-everything peak.  [default: 10, without --budgets]",
)
@graph_options()
@option(
    "--strategies",
    group=SOLVING,
    type=CommaSeparated(Name("STRATEGY", (*STRATEGIES, BEST_HEURISTIC))),
    default=",".join(DEFAULT_STRATEGIES),
    show_default=True,
    help="Strategies with commas between them; best-heuristic is the cheapest baseline at each budget.",
)
@solving_options
@training_options
@option("--workers", group=SOLVING, type=COUNT, default=1, show_default=True, help="Points solved at a time, each in a process of its own.")
@option("--fresh", group=SOLVING, is_flag=True, help="Solve every point again, also those that an earlier run finished.")
@option(
    "-o",
    "--output",
    group=OUTPUT,
    multiple=True,
    metavar="PATH",
    help="A .json, .csv, .svg, .png or .pdf file, a folder or a prefix; repeatable.  [default: model.sweep.json, .csv and .svg]",
)
@general_options
def sweep(
    session: Session,
    request: GraphRequest,
    solving: SolvingRequest,
    training: TrainingRequest,
    budgets: tuple[Budget, ...] | None,
    points: int | None,
    strategies: tuple[str, ...],
    workers: int,
    fresh: bool,
    output: tuple[str, ...],
) -> ExitCode:
    """Draw the curve of memory against time for GRAPH.

    Solves each strategy at each budget, and passes on what it finds: a schedule for a smaller budget serves a larger one, a bound for a
    larger budget a smaller one. The time limit holds for each run. Finished points are kept beside the output, and never solved twice.
    GRAPH is an ONNX model, a checkmate JSON graph or networkx node-link JSON; - is stdin.
    """
    if budgets is not None and points is not None:
        raise InputError("--budgets names the budgets and --points spaces them evenly; choose one")
    files = choose_files(request.source, output)
    check_destinations(files.all, request.source)
    progress = Progress(session, time_limit=solving.time_limit)
    with progress:
        progress.begin(f"reading {source_name(request.source)}")
        prepared = prepare(request, training if training.wanted else None, solving.settings.seed)
        make_folders(files.all)
        run = SweepRun(prepared, solving, PointStore(files.points), fresh=fresh)
        progress.price(prepared.costs.unit, prepared.problem.ideal_cost)
        interruption = Interruption(session, lambda: progress.announce("stopping with what is finished; Ctrl-C again stops at once"))
        interruption.consequence = f"what was finished is in {files.points}"
        with interruption:
            watch = Watch(solving.time_limit, progress.on_event, lambda: interruption.requested)
            run.plan(strategies, _budgets(run, budgets, points, progress, watch))
            _solve_all(run, workers, interruption, progress, solving)
            progress.begin("baselines")
            baselines = run.baselines(Watch(solving.time_limit, interrupted=lambda: interruption.requested))
            progress.begin("writing")
            found = run.sweep(baselines, interrupted=interruption.requested, outputs=files.outputs)
            write_files(found, files)
    _deliver(session, found, files)
    note_if_forward_only(session, prepared)
    if interruption.requested:
        session.note(f"interrupted: finished points are kept in {files.points}; the same command goes on from there")
        return ExitCode.INTERRUPTED
    return ExitCode.OK


def _budgets(run: SweepRun, budgets: tuple[Budget, ...] | None, points: int | None, progress: Progress, watch: Watch) -> dict[int, str]:
    """The budgets in bytes, each with the words for it."""
    peak = run.prepared.keep_all.peak
    if budgets is not None:
        return {budget.resolve(peak): budget.text for budget in reversed(budgets)}
    wanted = points or DEFAULT_POINTS
    progress.begin("looking for the smallest budget that works")
    low = min(run.find_smallest(watch), peak)
    chosen = {low + (peak - low) * step // max(wanted - 1, 1) for step in range(wanted)} if wanted > 1 else {peak}
    return {budget: str(budget) for budget in chosen}


def _solve_all(run: SweepRun, workers: int, interruption: Interruption, progress: Progress, solving: SolvingRequest) -> None:
    def begin(task: Task) -> Watch:
        progress.begin(f"{run.settled + 1} of {run.total}: {task.strategy} at {format_bytes(task.budget)}")
        progress.share(run.settled, run.total)
        return Watch(solving.time_limit, progress.on_event, lambda: interruption.requested)

    def tell(running: Sequence[Task]) -> None:
        at_work = ", ".join(f"{task.strategy} at {format_bytes(task.budget)}" for task in running)
        if at_work != progress.task:
            progress.begin(at_work)
        progress.share(run.settled, run.total)

    if workers == 1:
        run_here(run, lambda: interruption.requested, begin)
    else:
        run_in_workers(
            run, workers, lambda: interruption.requested, tell, lambda text: progress.on_event(Event("", message=text, warning=True))
        )


def _deliver(session: Session, found: Sweep, files: SweepFiles) -> None:
    counts = ", ".join(f"{found.count(origin)} {origin}" for origin in ORIGINS if origin != "open" or found.count(origin))
    session.detail(f"points: {counts}")
    if session.json:
        session.emit_json(render_sweep(found))
    elif not session.quiet:
        _show(found, files, counts)


def _show(found: Sweep, files: SweepFiles, counts: str) -> None:
    seconds = sum(row.seconds for row in found.rows if row.origin == "solved")
    facts = [
        Fact("graph", source_name(found.source), count(found.operations, "operation")),
        Fact("ideal cost", format_cost(found.ideal_cost, found.cost_unit), found.cost_model),
        Fact("keep-all peak", exact_bytes(found.keep_all_peak_bytes)),
        Fact("smallest budget", exact_bytes(found.smallest_budget_bytes), "proven: no schedule needs less"),
        Fact("points", counts, f"{format_elapsed(seconds)} of solving"),
        *(Fact("written" if number == 0 else "", shown(str(path)), "", "cyan") for number, path in enumerate(files.outputs)),
    ]
    show_facts(shown(found.name), facts)
    series = {
        strategy: [(row.budget_bytes, row.overhead or 0.0) for row in found.rows_of(strategy) if row.fits] for strategy in found.strategies
    }
    blank()
    width = min(screen_width(sys.stdout), WIDEST_CHART)
    show_lines("Cost over the ideal", draw_curves(series, width=width, unicode=speaks_unicode(sys.stdout)))
    blank()
    _show_points(found)
    if found.baselines:
        blank()
        _show_baselines(found)


def _show_points(found: Sweep) -> None:
    columns = [Column("budget", True), Column("of peak", True), *(Column(name, True) for name in found.strategies), Column("proven")]
    rows: list[Row] = []
    for budget in dict.fromkeys(row.budget_bytes for row in found.rows):
        here = [row for row in found.rows if row.budget_bytes == budget]
        best = min((row for row in here if row.fits), key=lambda row: (row.cost or 0.0, row.gap or 0.0), default=None)
        cells = (format_bytes(budget), format_share(budget / found.keep_all_peak_bytes), *map(_cell, here), _proven(here, best))
        rows.append(Row(cells, "" if best else "dim"))
    show_table("Cost over the ideal at each budget", columns, rows)


def _cell(row: SweepRow) -> str:
    if row.overhead is not None:
        return format_change(row.overhead)
    return "nothing fits" if row.status == "infeasible" else "-"


def _proven(here: Sequence[SweepRow], best: SweepRow | None) -> str:
    if best is None:
        return shown(here[0].note)
    return "optimal" if best.status == "optimal" else f"gap {format_share(best.gap or 0.0)}"


def _show_baselines(found: Sweep) -> None:
    columns = [Column("strategy"), Column("peak", True), Column("of peak", True), Column("overhead", True), Column("recomputed", True)]
    rows = [
        Row(
            (
                baseline.strategy,
                format_bytes(baseline.peak_bytes),
                format_share(baseline.peak_bytes / found.keep_all_peak_bytes),
                format_change(baseline.overhead),
                str(baseline.recomputed),
            )
        )
        for baseline in found.baselines
    ]
    show_table("Baselines, which ignore the budget", columns, rows)
