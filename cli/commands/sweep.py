"""`checkmate sweep`: cost as a function of the budget, for any set of strategies."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from ...api.solving import SolvingOptions
from ...core.engine.strategies import STRATEGIES
from ...core.errors import InputError
from ...core.events import Event, Watch
from ...core.model.units import Budget, count, exact_bytes, format_bytes
from ...core.studies.points import BEST_HEURISTIC
from ...io.formats.sweep_json import ORIGINS, Sweep, SweepRow, render_sweep
from ...io.formats.sweep_points import PointStore
from ..console import Console, speaks_unicode
from ..exit_codes import ExitCode
from ..jobs.interruption import Interruption
from ..jobs.sweep_run import SweepRun, run_here, run_in_workers
from ..jobs.sweep_tasks import Task
from ..options.command import Command, option
from ..options.destinations import check_destinations, make_folders
from ..options.shared import OUTPUT, PROBLEM, SOLVING, GraphRequest, general_options, graph_options, solving_options
from ..options.training import TrainingRequest, training_options
from ..options.values import COUNT, Budgets, CommaSeparated, Name
from ..output.amounts import format_change, format_cost, format_elapsed, format_share, shown, source_name
from ..output.curve_chart import draw_curves
from ..output.progress import Progress
from ..output.render import Column, Fact, Row, blank, screen_width, show_facts, show_lines, show_table
from ..output.solved import note_if_forward_only
from ..output.sweep_files import SweepFiles, choose_files, write_files
from ..output.training_notes import training_notes

DEFAULT_STRATEGIES = ("auto", "keep-all", BEST_HEURISTIC)
DEFAULT_POINTS = 10
WIDEST_CHART = 76


@click.command(
    cls=Command,
    examples=[
        ("checkmate sweep model.onnx --budgets 30%:100%:5%", "the curve from 30 % to 100 % of the keep-all peak"),
        (
            "checkmate sweep model.onnx --points 20 -o curve.csv -o curve.png",
            "20 budgets, starting at the smallest that works; write a table and a plot",
        ),
        ("checkmate sweep graph.json --budgets 8GB:16GB:1GB,24GB --strategies auto,ap-sqrt,ap-greedy", "with two of the paper's baselines"),
        ("checkmate sweep forward.onnx --loss cross-entropy --batch-size 32 --workers 2", "a forward model, two points at a time"),
    ],
)
@option(
    "--budgets",
    group=PROBLEM,
    type=Budgets(),
    help="Budgets and ranges, separated by commas: 30%:100%:5% (first:last:step), 8GB, 80%.",
)
@option(
    "--points",
    group=PROBLEM,
    type=COUNT,
    help="Number of budgets, evenly spaced from the smallest that works to the keep-all peak.  [default: 10, without --budgets]",
)
@graph_options()
@option(
    "--strategies",
    group=SOLVING,
    type=CommaSeparated(Name("STRATEGY", (*STRATEGIES, BEST_HEURISTIC))),
    default=",".join(DEFAULT_STRATEGIES),
    show_default=True,
    help="Strategies, separated by commas; best-heuristic is the cheapest baseline at each budget.",
)
@solving_options
@training_options
@option(
    "--workers",
    group=SOLVING,
    type=COUNT,
    default=1,
    show_default=True,
    help="Number of points to solve at a time, each in its own process.",
)
@option("--fresh", group=SOLVING, is_flag=True, help="Solve every point again, even those that an earlier run finished.")
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
    console: Console,
    request: GraphRequest,
    solving: SolvingOptions,
    training: TrainingRequest,
    budgets: tuple[Budget, ...] | None,
    points: int | None,
    strategies: tuple[str, ...],
    workers: int,
    fresh: bool,
    output: tuple[str, ...],
) -> ExitCode:
    """Plot cost against memory budget for GRAPH.

    Runs each strategy at each budget. A schedule for a smaller budget is reused at a larger one, and a bound for a larger budget at a
    smaller one. The time limit applies to each run. Finished points are stored next to the output and not solved again.
    GRAPH is an ONNX model, a checkmate JSON graph or networkx node-link JSON; - is stdin.
    """
    if budgets is not None and points is not None:
        raise InputError("--budgets lists the budgets and --points spaces them evenly; choose one")
    files = choose_files(request.source, output)
    check_destinations(files.all, request.source)
    progress = Progress(console, time_limit=solving.time_limit)
    with progress:
        progress.begin(f"reading {source_name(request.source)}")
        loaded = training.load(request, solving.settings.seed)
        for note in training_notes(loaded.training):
            progress.announce(note)
        priced = request.price(loaded)
        make_folders(files.all)
        run = SweepRun(priced, solving, PointStore(files.points), fresh=fresh)
        progress.price(priced.costs.unit, priced.problem.ideal_cost)
        interruption = Interruption(
            console, lambda: progress.announce("stopping; finished points are kept; press Ctrl-C again to exit at once")
        )
        interruption.consequence = f"finished points are in {files.points}"
        with interruption:
            watch = Watch(solving.time_limit, progress.on_event, lambda: interruption.requested)
            run.plan(strategies, _budgets(run, budgets, points, progress, watch))
            _solve_all(run, workers, interruption, progress, solving)
            progress.begin("baselines")
            baselines = run.baselines(Watch(solving.time_limit, interrupted=lambda: interruption.requested))
            progress.begin("writing")
            found = run.sweep(baselines, interrupted=interruption.requested, outputs=files.outputs)
            write_files(found, files)
    _deliver(console, found, files)
    note_if_forward_only(console, loaded)
    if interruption.requested:
        console.note(f"interrupted: finished points are in {files.points}; run the same command again to continue")
        return ExitCode.INTERRUPTED
    return ExitCode.OK


def _budgets(run: SweepRun, budgets: tuple[Budget, ...] | None, points: int | None, progress: Progress, watch: Watch) -> dict[int, str]:
    """The budgets in bytes, each with its text."""
    peak = run.priced.keep_all.peak
    if budgets is not None:
        return {budget.resolve(peak): budget.text for budget in reversed(budgets)}
    wanted = points or DEFAULT_POINTS
    progress.begin("searching for the smallest budget that works")
    low = min(run.find_smallest(watch), peak)
    chosen = {low + (peak - low) * step // max(wanted - 1, 1) for step in range(wanted)} if wanted > 1 else {peak}
    return {budget: str(budget) for budget in chosen}


def _solve_all(run: SweepRun, workers: int, interruption: Interruption, progress: Progress, solving: SolvingOptions) -> None:
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


def _deliver(console: Console, found: Sweep, files: SweepFiles) -> None:
    counts = ", ".join(f"{found.count(origin)} {origin}" for origin in ORIGINS if origin != "open" or found.count(origin))
    console.detail(f"points: {counts}")
    if console.json:
        console.emit_json(render_sweep(found))
    elif not console.quiet:
        _show(found, files, counts)


def _show(found: Sweep, files: SweepFiles, counts: str) -> None:
    seconds = sum(row.seconds for row in found.rows if row.origin == "solved")
    facts = [
        Fact("graph", source_name(found.source), count(found.operations, "operation")),
        Fact("ideal cost", format_cost(found.ideal_cost, found.cost_unit), found.cost_model),
        Fact("keep-all peak", exact_bytes(found.keep_all_peak_bytes)),
        Fact("smallest budget", exact_bytes(found.smallest_budget_bytes), "proven: every schedule needs at least this much"),
        Fact("points", counts, f"solved in {format_elapsed(seconds)}"),
        *(Fact("written" if number == 0 else "", shown(str(path)), "", "cyan") for number, path in enumerate(files.outputs)),
    ]
    show_facts(shown(found.name), facts)
    series = {
        strategy: [(row.budget_bytes, row.overhead or 0.0) for row in found.rows_of(strategy) if row.fits] for strategy in found.strategies
    }
    blank()
    width = min(screen_width(sys.stdout), WIDEST_CHART)
    show_lines("Cost over the ideal cost", draw_curves(series, width=width, unicode=speaks_unicode(sys.stdout)))
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
    show_table("Cost over the ideal cost at each budget", columns, rows)


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
    show_table("Baselines that ignore the budget", columns, rows)
