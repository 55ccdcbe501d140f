"""`checkmate compare`: every strategy at every budget, in one table."""

from __future__ import annotations

import csv
import io
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from ...api.pricing import PricedGraph, what_binds
from ...api.solving import SolvingOptions
from ...api.solving import run as run_strategy
from ...core.engine.strategies import STRATEGIES
from ...core.errors import CheckmateError, InputError, VerificationError
from ...core.model.problem import Problem
from ...core.model.units import Budget, count, exact_bytes, format_bytes
from ...core.result import Result
from ..console import Console
from ..exit_codes import ExitCode
from ..failures import one_line
from ..jobs.interruption import Interruption
from ..options.command import Command, option
from ..options.destinations import check_destinations
from ..options.shared import OUTPUT, PROBLEM, SOLVING, GraphRequest, general_options, graph_options, solving_options
from ..options.values import BUDGET, CommaSeparated, Name
from ..output.amounts import format_change, format_cost, format_elapsed, format_share, shown, source_name
from ..output.progress import Progress
from ..output.render import Column, Fact, Row, blank, show_facts, show_lines, show_table

COLUMNS = (
    "budget",
    "budget_bytes",
    "strategy",
    "status",
    "fits",
    "cost",
    "overhead",
    "bound",
    "gap",
    "peak_bytes",
    "recomputed",
    "seconds",
    "note",
)
"""Columns of the CSV and keys of each row under `--json`, in this order."""


@dataclass(frozen=True, slots=True)
class Run:
    """One strategy at one budget; if there is no result, the note says why."""

    strategy: str
    budget: Budget
    budget_bytes: int
    status: str
    result: Result | None
    seconds: float
    note: str = ""
    code: ExitCode = ExitCode.OK

    def fields(self) -> dict[str, Any]:
        figures = ("cost", "overhead", "bound", "gap", "peak_bytes", "recomputed")
        known = {name: getattr(self.result, name) for name in figures} if self.result else {}
        own = {
            "budget": self.budget.text,
            "budget_bytes": self.budget_bytes,
            "strategy": self.strategy,
            "status": self.status,
            "fits": self.result.fits if self.result else False,
            "seconds": round(self.seconds, 6),
            "note": self.note,
        }
        return {column: own.get(column, known.get(column)) for column in COLUMNS}


@click.command(
    cls=Command,
    examples=[
        ("checkmate compare model.onnx --budgets 90%,80%,70%", "all strategies at three budgets"),
        (
            "checkmate compare graph.json --budgets 8GB --strategies chen-sqrt,optimal --time-limit 5m",
            "two strategies, with a longer time limit",
        ),
        ("checkmate compare graph.json --budgets 80% --csv table.csv", "also write the table to a file"),
    ],
)
@option("--budgets", group=PROBLEM, type=CommaSeparated(BUDGET), required=True, help="Memory budgets, separated by commas: 8GB, 8GiB, 80%.")
@graph_options()
@option(
    "--strategies",
    group=SOLVING,
    type=CommaSeparated(Name("STRATEGY", tuple(STRATEGIES))),
    default=",".join(STRATEGIES),
    help="Strategies, separated by commas.  [default: all]",
)
@solving_options
@option(
    "--csv",
    "csv_file",
    group=OUTPUT,
    is_flag=False,
    flag_value="-",
    metavar="[FILE]",
    help="Write the table as CSV, to FILE or to stdout.",
)
@general_options
def compare(
    console: Console,
    request: GraphRequest,
    solving: SolvingOptions,
    budgets: tuple[Budget, ...],
    strategies: tuple[str, ...],
    csv_file: str | None,
) -> ExitCode:
    """Run strategies on GRAPH at several budgets.

    Shows cost and peak of each schedule, and how long the strategy took. The time limit applies to each run. A strategy that fails or
    does not fit is a row of the table, not an error.
    GRAPH is an ONNX model, a checkmate JSON graph or networkx node-link JSON; - is stdin.
    """
    if csv_file == "-" and console.json:
        raise InputError("--json and --csv both write to stdout; name a file: --csv table.csv")
    if csv_file not in (None, "-"):
        check_destinations([Path(str(csv_file))], request.source)
    priced = request.price(request.load())
    progress = Progress(console, unit=priced.costs.unit, ideal_cost=priced.problem.ideal_cost, time_limit=solving.time_limit)
    interruption = Interruption(console, lambda: progress.announce("stopping; press Ctrl-C again to exit at once"))
    with progress, interruption:
        runs = list(_runs(priced, solving, budgets, strategies, progress, interruption))
    _deliver(console, priced, runs, csv_file)
    if interruption.requested:
        console.note(f"interrupted after {len(runs)} of {len(budgets) * len(strategies)} runs")
        return ExitCode.INTERRUPTED
    return max((run.code for run in runs), default=ExitCode.OK)


def _runs(
    priced: PricedGraph,
    solving: SolvingOptions,
    budgets: Sequence[Budget],
    strategies: Sequence[str],
    progress: Progress,
    interruption: Interruption,
) -> Iterator[Run]:
    total = len(budgets) * len(strategies)
    pairs = [(budget, strategy) for budget in budgets for strategy in strategies]
    for number, (budget, strategy) in enumerate(pairs, start=1):
        if interruption.requested:
            return
        problem = priced.at(budget)
        if priced.floor.bytes > problem.budget:
            note = f"no schedule fits: {format_bytes(priced.floor.bytes)} needed {what_binds(priced.floor)}"
            yield Run(strategy, budget, problem.budget, "infeasible", None, 0.0, note)
            continue
        progress.begin(f"{number} of {total}: {strategy} at {budget.text}")
        found = _run(problem, strategy, budget, solving, progress, interruption)
        if not (interruption.requested and found.result is None):
            yield found


def _run(problem: Problem, strategy: str, budget: Budget, solving: SolvingOptions, progress: Progress, interruption: Interruption) -> Run:
    began = time.monotonic()
    try:
        result, _ = run_strategy(problem, strategy, solving, on_progress=progress.on_event, interrupted=lambda: interruption.requested)
    except CheckmateError as error:
        code = ExitCode.VERIFICATION if isinstance(error, VerificationError) else ExitCode.OK
        return Run(strategy, budget, problem.budget, "error", None, time.monotonic() - began, one_line(str(error)), code)
    except Exception as error:
        note = one_line(f"a bug in checkmate: {type(error).__name__}: {error}")
        return Run(strategy, budget, problem.budget, "bug", None, time.monotonic() - began, note, ExitCode.BUG)
    if result.certificate is None:
        return Run(strategy, budget, problem.budget, result.status.value, None, result.seconds, result.reason)
    return Run(strategy, budget, problem.budget, result.status.value, result, result.seconds, "" if result.fits else result.reason)


def _deliver(console: Console, priced: PricedGraph, runs: Sequence[Run], csv_file: str | None) -> None:
    if csv_file == "-":
        sys.stdout.write(_csv(runs))
        return
    if csv_file is not None:
        from ...io.formats.atomic import atomic_write

        atomic_write(Path(csv_file), _csv(runs).encode("utf-8", "backslashreplace"))
    if console.json:
        console.emit_json(_fields(priced, runs, csv_file))
    elif not console.quiet:
        _show(priced, runs)
        if csv_file is not None:
            click.echo(f"\nwrote {csv_file}")


def _csv(runs: Sequence[Run]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for run in runs:
        writer.writerow({key: str(value).lower() if isinstance(value, bool) else value for key, value in run.fields().items()})
    return text.getvalue()


def _fields(priced: PricedGraph, runs: Sequence[Run], csv_file: str | None) -> dict[str, Any]:
    return {
        "format": "checkmate-compare",
        "version": 1,
        "status": "ok",
        "graph": {"name": priced.graph.name, "source": priced.loaded.source, "format": priced.loaded.format},
        "cost_model": priced.costs.model,
        "cost_unit": priced.costs.unit,
        "ideal_cost": priced.problem.ideal_cost,
        "operations": len(priced.graph.operations),
        "keep_all_peak_bytes": priced.keep_all.peak,
        "smallest_budget_bytes": priced.floor.bytes,
        "rows": [run.fields() for run in runs],
        "outputs": [csv_file] if csv_file is not None else [],
    }


def _show(priced: PricedGraph, runs: Sequence[Run]) -> None:
    unit = priced.costs.unit
    facts = [
        Fact("graph", source_name(priced.loaded.source), count(len(priced.graph.operations), "operation")),
        Fact("ideal cost", format_cost(priced.problem.ideal_cost, unit), priced.costs.model),
        Fact("keep-all peak", exact_bytes(priced.keep_all.peak)),
        Fact("smallest budget", exact_bytes(priced.floor.bytes)),
    ]
    show_facts(shown(priced.graph.name), facts)
    columns = [
        *(Column("strategy"), Column("cost", right=True), Column("overhead", right=True), Column("peak", right=True), Column("fits")),
        *(Column("gap", right=True), Column("time", right=True), Column("")),
    ]
    for budget in dict.fromkeys(run.budget for run in runs):
        rows = [run for run in runs if run.budget == budget]
        blank()
        if all(run.budget_bytes < priced.floor.bytes for run in rows):
            show_lines(f"Budget {_budget_title(rows[0])}", [f"  {shown(rows[0].note)}"])
            continue
        best = min((run.result.cost for run in rows if run.result and run.result.fits), default=None)
        show_table(f"Budget {_budget_title(rows[0])}", columns, [_row(run, unit, best) for run in rows])


def _budget_title(run: Run) -> str:
    return f"{run.budget.text} = {exact_bytes(run.budget_bytes)}" if run.budget.share is not None else exact_bytes(run.budget_bytes)


def _row(run: Run, unit: str, best: float | None) -> Row:
    result = run.result
    if result is None:
        return Row((run.strategy, "-", "-", "-", "-", "-", format_elapsed(run.seconds), run.note), "dim")
    cells = (
        run.strategy,
        format_cost(result.cost, unit),
        format_change(result.overhead),
        format_bytes(result.peak_bytes),
        "yes" if result.fits else "no",
        format_share(result.gap) if result.gap is not None else "-",
        format_elapsed(run.seconds),
        ("optimal" if run.status == "optimal" else "") if result.fits else "",
    )
    return Row(cells, "bold green" if result.fits and result.cost == best else "" if result.fits else "dim")
