"""`checkmate min-budget`: the smallest budget that works, and a proven limit below which none works."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from ...api.graph import LoadedGraph
from ...api.pricing import what_binds
from ...api.smallest import MinBudget, find_min_budget
from ...api.solving import SolvingOptions
from ...core.errors import InputError
from ...core.model.units import count, exact_bytes, format_bytes
from ...core.result import Scope, Status, Stop
from ..console import Console
from ..exit_codes import ExitCode
from ..jobs.interruption import Interruption
from ..options.command import Command, option
from ..options.destinations import Destinations, check_destinations, choose_destinations
from ..options.shared import OUTPUT, GraphRequest, general_options, graph_options, solving_options
from ..output.amounts import format_change, format_cost, format_elapsed, format_share, shown, source_name
from ..output.progress import Progress
from ..output.render import Fact, show_facts
from ..output.schedule_files import check_model_can_be_written, write_results

SCOPES = {Scope.ANY: "for any order", Scope.ORDER: "for the given order and at most two recomputations of an operation per stage"}


@click.command(
    cls=Command,
    examples=[
        ("checkmate min-budget model.onnx --batch-size 32", "the smallest budget, a proven limit, and what sets it"),
        ("checkmate min-budget graph.json --order given --time-limit 5m", "in the order of the file, with a longer time limit"),
        ("checkmate min-budget model.onnx -o small/", "also write the schedule and the model"),
    ],
)
@graph_options()
@solving_options
@option(
    "-o",
    "--output",
    group=OUTPUT,
    metavar="PATH",
    help="Write the schedule: a folder, a schedule.json, a model.onnx, a prefix, or - for stdout.",
)
@option("--no-onnx", group=OUTPUT, is_flag=True, help="Write the schedule only, no model.")
@general_options
def min_budget(console: Console, request: GraphRequest, solving: SolvingOptions, output: str | None, no_onnx: bool) -> ExitCode:
    """Find the smallest budget for which GRAPH has a schedule.

    Shows the smallest budget for which a schedule was found, a proven limit below which no schedule exists, and what sets this limit.
    The schedule is verified, and written if -o is given. The cost of recomputation is not limited.
    GRAPH is an ONNX model, a checkmate JSON graph or networkx node-link JSON; - is stdin.
    """
    if output == "-" and console.json:
        raise InputError("--json and -o - both write to stdout; choose one, or name a file with -o")
    progress = Progress(console, time_limit=solving.time_limit)
    with progress:
        progress.begin(f"reading {source_name(request.source)}")
        loaded = request.load()
        priced = request.price(loaded)
        destinations = _destinations(loaded, output, no_onnx)
        interruption = Interruption(
            console, lambda: progress.announce("stopping with the best schedule so far; press Ctrl-C again to exit at once")
        )
        with interruption:
            progress.begin("min-budget")
            found = find_min_budget(priced, solving, on_progress=progress.on_event, interrupted=lambda: interruption.requested)
            interruption.consequence = "some files may be missing"
            written = [] if destinations is None else write_results(found.result, destinations)
    to_stderr = destinations is not None and destinations.to_stdout
    if console.json:
        console.emit_json(_fields(found, written))
    elif not console.quiet:
        show_facts(shown(priced.graph.name), _facts(found, written), sys.stderr if to_stderr else sys.stdout)
    if interruption.requested:
        console.note(
            "interrupted: this is the smallest budget found so far; its schedule is verified" + (" and written" if written else "")
        )
        return ExitCode.INTERRUPTED
    return ExitCode.OK


def _destinations(loaded: LoadedGraph, output: str | None, no_onnx: bool) -> Destinations | None:
    """Where to write, checked before the long work starts; None without `-o`."""
    if output is None:
        return None
    chosen = choose_destinations(loaded.source, output)
    chosen = chosen.without_model() if no_onnx else chosen.for_model(loaded)
    check_destinations(chosen.paths, loaded.source)
    check_model_can_be_written(loaded, chosen)
    return chosen


def _fields(found: MinBudget, written: list[Path]) -> dict[str, Any]:
    smallest, result = found.smallest, found.result
    priced = result.priced
    return {
        "format": "checkmate-min-budget",
        "version": 1,
        "graph": {"name": priced.graph.name, "source": priced.loaded.source, "format": priced.loaded.format},
        "status": found.status.value,
        "stop": smallest.stop.value,
        "order": found.order,
        "budget_bytes": smallest.budget,
        "binding_operation": found.binding_operation,
        "limit_bytes": smallest.limit.bytes,
        "limit_scope": smallest.scope,
        "limit_operation": smallest.limit.operation or None,
        "limit_reason": smallest.limit.reason,
        "gap": found.gap,
        "keep_all_peak_bytes": priced.keep_all.peak,
        "cost": result.cost,
        "ideal_cost": result.ideal_cost,
        "recomputed": result.recomputed,
        "cost_model": priced.costs.model,
        "cost_unit": priced.costs.unit,
        "found_by": smallest.found_by,
        "seconds": round(result.seconds, 6),
        "outputs": [str(path) for path in written],
    }


def _facts(found: MinBudget, written: list[Path]) -> list[Fact]:
    smallest, result = found.smallest, found.result
    priced, unit = result.priced, result.priced.costs.unit
    everything = priced.keep_all.peak
    share = format_change(smallest.budget / everything - 1) if everything else ""
    stopped = {Stop.TIME_LIMIT: "time limit reached", Stop.INTERRUPTED: "interrupted", Stop.FINISHED: ""}[smallest.stop]
    optimal = found.status is Status.OPTIMAL
    return [
        Fact("status", found.status.value, stopped, "bold green" if optimal else "bold yellow"),
        Fact("graph", source_name(priced.loaded.source), count(len(priced.graph.operations), "operation")),
        Fact("budget", exact_bytes(smallest.budget), f"{share} compared to {format_bytes(everything)} without recomputation", "bold"),
        Fact("peak at", f"operation {shown(found.binding_operation)!r}" if found.binding_operation else "no operation", ""),
        Fact("limit", exact_bytes(smallest.limit.bytes), f"gap {format_share(found.gap)}, {SCOPES[smallest.scope]}"),
        Fact("limit set by", shown(what_binds(smallest.limit).removeprefix("for ")), ""),
        Fact("cost", format_cost(result.cost, unit), f"{format_change(result.overhead)} over the ideal cost"),
        Fact("recomputed", count(result.recomputed, "computation"), ""),
        Fact("order", found.order, f"schedule found by {smallest.found_by}"),
        Fact("time", format_elapsed(result.seconds), ""),
        *(Fact("written" if number == 0 else "", shown(str(path)), "", "cyan") for number, path in enumerate(written)),
    ]
