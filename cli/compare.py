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

from ..core.certify import run_strategy
from ..core.errors import CheckmateError, InputError, VerificationError
from ..core.events import Watch
from ..core.problem import Problem
from ..core.strategies import STRATEGIES
from ..core.units import Budget, format_bytes
from .amounts import count, exact_bytes, format_change, format_cost, format_elapsed, format_share, shown, source_name
from .command import Command, option
from .exit_codes import ExitCode
from .failures import one_line
from .interruption import Interruption
from .options import OUTPUT, PROBLEM, SOLVING, GraphRequest, SolvingRequest, general_options, graph_options, solving_options
from .outcome import Outcome, outcome_of
from .outputs import check_destinations
from .parameters import BUDGET, CommaSeparated, Name
from .pipeline import Prepared, prepare, what_binds
from .progress import Progress
from .render import Column, Fact, Row, blank, show_facts, show_lines, show_table
from .session import Session

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
"""Of the CSV and of each row under `--json`, in this order."""


@dataclass(frozen=True, slots=True)
class Run:
    """One strategy at one budget; without an outcome, the note says why."""

    strategy: str
    budget: Budget
    budget_bytes: int
    status: str
    outcome: Outcome | None
    seconds: float
    note: str = ""
    code: ExitCode = ExitCode.OK

    def fields(self) -> dict[str, Any]:
        known = self.outcome.fields() if self.outcome else {}
        own = {
            "budget": self.budget.text,
            "budget_bytes": self.budget_bytes,
            "strategy": self.strategy,
            "status": self.status,
            "fits": self.outcome.fits if self.outcome else False,
            "seconds": round(self.seconds, 6),
            "note": self.note,
        }
        return {column: own.get(column, known.get(column)) for column in COLUMNS}


@click.command(
    cls=Command,
    examples=[
        ("checkmate compare model.onnx --budgets 90%,80%,70%", "all strategies at three budgets"),
        ("checkmate compare graph.json --budgets 8GB --strategies chen-sqrt,optimal --time-limit 5m", "two of them, with patience"),
        ("checkmate compare graph.json --budgets 80% --csv table.csv", "the table as a file too"),
    ],
)
@option(
    "--budgets", group=PROBLEM, type=CommaSeparated(BUDGET), required=True, help="Memory budgets with commas between them: 8GB, 8GiB, 80%."
)
@graph_options()
@option(
    "--strategies",
    group=SOLVING,
    type=CommaSeparated(Name("STRATEGY", tuple(STRATEGIES))),
    default=",".join(STRATEGIES),
    help="Strategies with commas between them.  [default: all]",
)
@solving_options
@option(
    "--csv",
    "csv_file",
    group=OUTPUT,
    is_flag=False,
    flag_value="-",
    metavar="[FILE]",
    help="Write the table as CSV, to stdout if no file is named.",
)
@general_options
def compare(
    session: Session,
    request: GraphRequest,
    solving: SolvingRequest,
    budgets: tuple[Budget, ...],
    strategies: tuple[str, ...],
    csv_file: str | None,
) -> ExitCode:
    """Run strategies on GRAPH at several budgets.

    Shows what each costs and takes, and how long it needed. The time limit holds for each run. A strategy that fails or does not fit is
    a row of the table, not an error.
    GRAPH is an ONNX model, a checkmate JSON graph or networkx node-link JSON; - is stdin.
    """
    if csv_file == "-" and session.json:
        raise InputError("--json and --csv both want stdout; name a file: --csv table.csv")
    if csv_file not in (None, "-"):
        check_destinations([Path(str(csv_file))], request.source)
    prepared = prepare(request)
    progress = Progress(session, unit=prepared.costs.unit, ideal_cost=prepared.problem.ideal_cost, time_limit=solving.time_limit)
    interruption = Interruption(session, lambda: progress.announce("stopping; Ctrl-C again stops at once"))
    with progress, interruption:
        runs = list(_runs(prepared, solving, budgets, strategies, progress, interruption))
    _deliver(session, prepared, runs, csv_file)
    if interruption.requested:
        session.note(f"interrupted after {len(runs)} of {len(budgets) * len(strategies)} runs")
        return ExitCode.INTERRUPTED
    return max((run.code for run in runs), default=ExitCode.OK)


def _runs(
    prepared: Prepared,
    solving: SolvingRequest,
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
        problem = prepared.at(budget)
        if prepared.floor.bytes > problem.budget:
            note = f"no schedule fits: {format_bytes(prepared.floor.bytes)} needed {what_binds(prepared.floor)}"
            yield Run(strategy, budget, problem.budget, "infeasible", None, 0.0, note)
            continue
        progress.begin(f"{number} of {total}: {strategy} at {budget.text}")
        watch = Watch(solving.time_limit, progress.on_event, lambda: interruption.requested)
        run = _run(prepared, problem, strategy, budget, solving, watch)
        if not (interruption.requested and run.outcome is None):
            yield run


def _run(prepared: Prepared, problem: Problem, strategy: str, budget: Budget, solving: SolvingRequest, watch: Watch) -> Run:
    began = time.monotonic()
    try:
        certified = run_strategy(problem, strategy, solving.settings_for(strategy), watch)
    except CheckmateError as error:
        code = ExitCode.VERIFICATION if isinstance(error, VerificationError) else ExitCode.OK
        return Run(strategy, budget, problem.budget, "error", None, time.monotonic() - began, one_line(str(error)), code)
    except Exception as error:
        note = one_line(f"a bug in checkmate: {type(error).__name__}: {error}")
        return Run(strategy, budget, problem.budget, "bug", None, time.monotonic() - began, note, ExitCode.BUG)
    solution = certified.solution
    if certified.simulation is None:
        return Run(strategy, budget, problem.budget, solution.status.value, None, certified.seconds, solution.reason)
    outcome = outcome_of(certified, problem, prepared.keep_all.peak, solving.settings_for(certified.strategy).gap)
    return Run(strategy, budget, problem.budget, outcome.status.value, outcome, certified.seconds, "" if outcome.fits else solution.reason)


def _deliver(session: Session, prepared: Prepared, runs: Sequence[Run], csv_file: str | None) -> None:
    if csv_file == "-":
        sys.stdout.write(_csv(runs))
        return
    if csv_file is not None:
        from ..io.atomic import atomic_write

        atomic_write(Path(csv_file), _csv(runs).encode("utf-8", "backslashreplace"))
    if session.json:
        session.emit_json(_fields(prepared, runs, csv_file))
    elif not session.quiet:
        _show(prepared, runs)
        if csv_file is not None:
            click.echo(f"\nwrote {csv_file}")


def _csv(runs: Sequence[Run]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for run in runs:
        writer.writerow({key: str(value).lower() if isinstance(value, bool) else value for key, value in run.fields().items()})
    return text.getvalue()


def _fields(prepared: Prepared, runs: Sequence[Run], csv_file: str | None) -> dict[str, Any]:
    return {
        "format": "checkmate-compare",
        "version": 1,
        "status": "ok",
        "graph": {"name": prepared.graph.name, "source": prepared.loaded.source, "format": prepared.loaded.format},
        "cost_model": prepared.costs.model,
        "cost_unit": prepared.costs.unit,
        "ideal_cost": prepared.problem.ideal_cost,
        "operations": len(prepared.graph.operations),
        "keep_all_peak_bytes": prepared.keep_all.peak,
        "smallest_budget_bytes": prepared.floor.bytes,
        "rows": [run.fields() for run in runs],
        "outputs": [csv_file] if csv_file is not None else [],
    }


def _show(prepared: Prepared, runs: Sequence[Run]) -> None:
    unit = prepared.costs.unit
    facts = [
        Fact("graph", source_name(prepared.loaded.source), count(len(prepared.graph.operations), "operation")),
        Fact("ideal cost", format_cost(prepared.problem.ideal_cost, unit), prepared.costs.model),
        Fact("keep-all peak", exact_bytes(prepared.keep_all.peak)),
        Fact("smallest budget", exact_bytes(prepared.floor.bytes)),
    ]
    show_facts(shown(prepared.graph.name), facts)
    columns = [
        *(Column("strategy"), Column("cost", right=True), Column("overhead", right=True), Column("peak", right=True), Column("fits")),
        *(Column("gap", right=True), Column("time", right=True), Column("")),
    ]
    for budget in dict.fromkeys(run.budget for run in runs):
        rows = [run for run in runs if run.budget == budget]
        blank()
        if all(run.budget_bytes < prepared.floor.bytes for run in rows):
            show_lines(f"Budget {_budget_title(rows[0])}", [f"  {shown(rows[0].note)}"])
            continue
        best = min((run.outcome.cost for run in rows if run.outcome and run.outcome.fits), default=None)
        show_table(f"Budget {_budget_title(rows[0])}", columns, [_row(run, unit, best) for run in rows])


def _budget_title(run: Run) -> str:
    return f"{run.budget.text} = {exact_bytes(run.budget_bytes)}" if run.budget.share is not None else exact_bytes(run.budget_bytes)


def _row(run: Run, unit: str, best: float | None) -> Row:
    outcome = run.outcome
    if outcome is None:
        return Row((run.strategy, "-", "-", "-", "-", "-", format_elapsed(run.seconds), run.note), "dim")
    cells = (
        run.strategy,
        format_cost(outcome.cost, unit),
        format_change(outcome.overhead),
        format_bytes(outcome.peak_bytes),
        "yes" if outcome.fits else "no",
        format_share(outcome.gap) if outcome.gap is not None else "-",
        format_elapsed(run.seconds),
        ("optimal" if run.status == "optimal" else "") if outcome.fits else "",
    )
    return Row(cells, "bold green" if outcome.fits and outcome.cost == best else "" if outcome.fits else "dim")
