"""`checkmate min-budget`: the least memory any schedule found needs, and the limit below which there is none."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from ..core.certify import Certified, certify
from ..core.errors import InputError
from ..core.events import Watch, relative_gap
from ..core.result import Solution, Status, Stop
from ..core.schedule import Schedule
from ..core.simulate import Simulation
from ..core.units import format_bytes
from ..io.onnx.anchoring import Anchor
from .amounts import count, exact_bytes, format_change, format_cost, format_elapsed, format_share, shown, source_name
from .command import Command, option
from .exit_codes import ExitCode
from .interruption import Interruption
from .options import OUTPUT, GraphRequest, SolvingRequest, general_options, graph_options, solving_options
from .outcome import Outcome, outcome_of
from .outputs import Destinations, check_destinations, choose_destinations
from .pipeline import Prepared, prepare, what_binds
from .progress import Progress
from .render import Fact, show_facts
from .schedule_files import check_model_can_be_written, write_results
from .session import Session

STRATEGY = "min-budget"
SCOPES = {"any": "for any order", "order": "for the given order and at most two recomputations of an operation per stage"}


@click.command(
    cls=Command,
    examples=[
        ("checkmate min-budget model.onnx --batch-size 32", "how little memory could do, and what stands in the way of less"),
        ("checkmate min-budget graph.json --order given --time-limit 5m", "in the order of the file, with patience"),
        ("checkmate min-budget model.onnx -o small/", "write the schedule and the model too"),
    ],
)
@graph_options()
@solving_options
@option("-o", "--output", group=OUTPUT, metavar="PATH", help="Write the schedule: a folder, a schedule.json, a prefix, or - for stdout.")
@option("--no-onnx", group=OUTPUT, is_flag=True, help="Write the schedule only, no model.")
@general_options
def min_budget(session: Session, request: GraphRequest, solving: SolvingRequest, output: str | None, no_onnx: bool) -> ExitCode:
    """Find the smallest budget for which GRAPH has a schedule.

    Shows the least memory of any schedule found, a proven limit below which there is none, and what binds it. The schedule is verified;
    it is written if -o says where. What it costs to recompute plays no part.
    GRAPH is an ONNX model, a checkmate JSON graph or networkx node-link JSON; - is stdin.
    """
    if output == "-" and session.json:
        raise InputError("--json and -o - both want stdout; choose one, or name a file with -o")
    progress = Progress(session, time_limit=solving.time_limit)
    with progress:
        progress.begin(f"reading {source_name(request.source)}")
        prepared = prepare(request)
        destinations = _destinations(request, prepared, output, no_onnx)
        interruption = Interruption(session, lambda: progress.announce("stopping with the best so far; Ctrl-C again stops at once"))
        with interruption:
            progress.begin(STRATEGY)
            found = _Found(prepared, solving, Watch(solving.time_limit, progress.on_event, lambda: interruption.requested))
            interruption.consequence = "some files may not be written"
            written = [] if destinations is None else found.write(destinations)
    to_stderr = destinations is not None and destinations.to_stdout
    if session.json:
        session.emit_json(found.fields(written))
    elif not session.quiet:
        show_facts(shown(prepared.graph.name), found.facts(written), sys.stderr if to_stderr else sys.stdout)
    if interruption.requested:
        session.note(
            "interrupted: this is the smallest budget found so far; its schedule is verified" + (" and written" if written else "")
        )
        return ExitCode.INTERRUPTED
    return ExitCode.OK


def _destinations(request: GraphRequest, prepared: Prepared, output: str | None, no_onnx: bool) -> Destinations | None:
    """Where to write, checked before the long work; None without `-o`."""
    if output is None:
        return None
    chosen = choose_destinations(request.source, output, with_model=prepared.loaded.onnx is not None and not no_onnx)
    check_destinations(chosen.paths, request.source)
    check_model_can_be_written(prepared, chosen)
    return chosen


class _Found:
    """The smallest budget, with its schedule certified, in the words of the output."""

    def __init__(self, prepared: Prepared, solving: SolvingRequest, watch: Watch) -> None:
        from ..core.strategies.smallest import find_smallest

        settings = solving.settings_for("auto")
        self.order = settings.order
        self.prepared, self.solving = prepared, solving
        self.smallest = find_smallest(prepared.problem, settings, watch)
        self.seconds = watch.elapsed
        self.problem = prepared.problem.with_budget(self.smallest.budget)
        self.schedule: Schedule
        self.simulation: Simulation
        self.schedule, self.simulation = certify(self.problem, self.smallest.sequence)
        self.gap = relative_gap(self.smallest.budget, self.smallest.limit.bytes)
        computations = self.schedule.computations
        peak = self.simulation.peak_computation
        self.binding = prepared.graph.operations[computations[peak]].name if computations else None

    @property
    def status(self) -> Status:
        return Status.OPTIMAL if self.gap <= self.solving.settings.gap else Status.FEASIBLE

    def write(self, destinations: Destinations) -> list[Path]:
        """As `solve` does."""
        solution = Solution(Status.FEASIBLE, self.smallest.stop, self.smallest.sequence, provenance={"found_by": self.smallest.found_by})
        certified = Certified(STRATEGY, solution, self.schedule, self.simulation, True, self.seconds)
        outcome: Outcome = outcome_of(certified, self.problem, self.prepared.keep_all.peak, self.solving.settings.gap)
        return write_results(self.prepared, self.problem, self.solving, certified, outcome, destinations, Anchor.FULL)

    def fields(self, written: list[Path]) -> dict[str, Any]:
        smallest, prepared = self.smallest, self.prepared
        return {
            "format": "checkmate-min-budget",
            "version": 1,
            "graph": {"name": prepared.graph.name, "source": prepared.loaded.source, "format": prepared.loaded.format},
            "status": self.status.value,
            "stop": smallest.stop.value,
            "order": self.order,
            "budget_bytes": smallest.budget,
            "binding_operation": self.binding,
            "limit_bytes": smallest.limit.bytes,
            "limit_scope": smallest.scope,
            "limit_operation": smallest.limit.operation or None,
            "limit_reason": smallest.limit.reason,
            "gap": self.gap,
            "keep_all_peak_bytes": prepared.keep_all.peak,
            "cost": self.simulation.cost,
            "ideal_cost": self.problem.ideal_cost,
            "recomputed": self.simulation.recomputed,
            "cost_model": prepared.costs.model,
            "cost_unit": prepared.costs.unit,
            "found_by": smallest.found_by,
            "seconds": round(self.seconds, 6),
            "outputs": [str(path) for path in written],
        }

    def facts(self, written: list[Path]) -> list[Fact]:
        smallest, prepared, unit = self.smallest, self.prepared, self.prepared.costs.unit
        everything = prepared.keep_all.peak
        share = format_change(smallest.budget / everything - 1) if everything else ""
        stopped = {Stop.TIME_LIMIT: "time limit reached", Stop.INTERRUPTED: "interrupted", Stop.FINISHED: ""}[smallest.stop]
        optimal = self.status is Status.OPTIMAL
        over = self.simulation.cost / self.problem.ideal_cost - 1 if self.problem.ideal_cost > 0 else 0.0
        return [
            Fact("status", self.status.value, stopped, "bold green" if optimal else "bold yellow"),
            Fact("graph", source_name(prepared.loaded.source), count(len(prepared.graph.operations), "operation")),
            Fact("budget", exact_bytes(smallest.budget), f"{share} against {format_bytes(everything)} keeping everything", "bold"),
            Fact("taken while", shown(self.binding or ""), "runs") if self.binding else Fact("taken while", "nothing runs", ""),
            Fact("limit", exact_bytes(smallest.limit.bytes), f"gap {format_share(self.gap)}, {SCOPES[smallest.scope]}"),
            Fact("binds", shown(what_binds(smallest.limit).removeprefix("for ")), ""),
            Fact("cost", format_cost(self.simulation.cost, unit), f"{format_change(over)} over the ideal"),
            Fact("recomputed", count(self.simulation.recomputed, "operation"), ""),
            Fact("order", self.order, f"schedule found by {smallest.found_by}"),
            Fact("time", format_elapsed(self.seconds), ""),
            *(Fact("written" if number == 0 else "", shown(str(path)), "", "cyan") for number, path in enumerate(written)),
        ]
