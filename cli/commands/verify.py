"""`checkmate verify`: check a schedule file against the graph, with the verifier that shares no code with the solver.

A compiled model instead of a schedule file is checked by running it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from ...api.pricing import as_memory_model, keep_all_peak, pinned, price_operations
from ...api.verifying import Judgement, is_model, judge_schedule, solved_threads, verify_compiled
from ...core.errors import InputError
from ...core.model.units import Budget, count, exact_bytes
from ..console import Console
from ..exit_codes import ExitCode
from ..options.command import Command, option
from ..options.running import RunningRequest, running_options
from ..options.shared import PROBLEM, GraphRequest, general_options, graph_options
from ..options.values import BUDGET
from ..output.amounts import format_change, format_cost, shown, source_name
from ..output.progress import Progress
from ..output.render import Fact, show_facts, show_lines
from ..output.run_checks import show_verification, verification_fields


@click.command(
    cls=Command,
    examples=[
        ("checkmate verify model.onnx model.schedule.json", "check a schedule file"),
        ("checkmate verify model.onnx model.schedule.json --budget 6GB", "would it fit a smaller budget?"),
        ("checkmate verify model.onnx model.remat.onnx", "run both models: compare outputs, memory and time"),
        (
            "checkmate verify model.onnx model.remat.onnx --enforce",
            "limit memory to the budget: the compiled model runs, the original fails",
        ),
    ],
)
@option("--budget", group=PROBLEM, type=BUDGET, help="The budget to check against.  [default: the one in the file]")
@graph_options()
@click.argument("schedule", type=click.Path(allow_dash=True))
@running_options
@general_options
def verify(console: Console, request: GraphRequest, schedule: str, budget: Budget | None, running: RunningRequest) -> ExitCode:
    """Verify SCHEDULE, a schedule file or a compiled ONNX model, against GRAPH.

    A schedule file is replayed. The inputs of each operation must be in memory when it runs, every operation must run, every output must
    be in memory at the end, and peak, cost and budget must be as the file says. Costs are those in the file, unless --costs is given.
    A compiled model and the original are run in onnxruntime, to compare outputs, order, memory at each node, budget and time.
    Exits with 6 if a check fails. GRAPH or SCHEDULE may be - for stdin.
    """
    if request.source == "-" and schedule == "-":
        raise InputError("GRAPH and SCHEDULE cannot both be - (stdin)")
    if is_model(schedule):
        return _verify_by_running(console, request, schedule, budget, running)
    running.refuse_for_schedules()
    if request.session_threads is None:
        request = replace(request, session_threads=solved_threads(schedule))
    graph = pinned(request.load().graph, request.pin)
    model = None if request.memory_model is None else as_memory_model(request.memory_model)
    judgement = judge_schedule(
        graph, schedule, budget, costs=request.costs, device=request.device, reserve=request.reserve, memory_model=model
    )
    if console.json:
        console.emit_json(_fields(judgement))
    elif not console.quiet:
        _show(judgement, schedule)
    return ExitCode.OK if judgement.passed else ExitCode.VERIFICATION


def _verify_by_running(console: Console, request: GraphRequest, compiled: str, budget: Budget | None, running: RunningRequest) -> ExitCode:
    """Run both models and report the results."""
    progress = Progress(console)
    with progress:
        progress.begin(f"reading {source_name(request.source)}")
        loaded = request.load()
        graph = pinned(loaded.graph, request.pin)
        amounts = None
        if request.costs is not None or request.device is not None:
            _, costs = price_operations(graph, request.costs, request.device)
            amounts = dict(zip((operation.name for operation in graph.operations), costs.amounts, strict=True))
        memory_model = loaded.memory_model if request.memory_model is None else as_memory_model(request.memory_model)
        limit = None if budget is None else budget.resolve(keep_all_peak(graph, request.reserve or 0, memory_model))
        options = running.verify_options(limit, request.reserve, amounts)
        verification = verify_compiled(
            loaded, compiled, dims=request.dims, batch_size=request.batch_size, options=options, on_task=progress.begin
        )
    if console.json:
        console.emit_json(
            {
                "format": "checkmate-verify",
                "version": 1,
                "status": "passed" if verification.passed else "failed",
                "graph": {"name": graph.name},
                "compiled": compiled,
                **verification_fields(verification),
            }
        )
    elif not console.quiet:
        show_verification(verification, compiled)
    return ExitCode.OK if verification.passed else ExitCode.VERIFICATION


def _fields(judgement: Judgement) -> dict[str, Any]:
    document, verdict = judgement.document, judgement.verdict
    return {
        "format": "checkmate-verify",
        "version": 1,
        "status": "failed" if judgement.violations else "passed",
        "graph": {"name": judgement.graph.name},
        "strategy": document.strategy,
        "budget_bytes": judgement.budget_bytes,
        "peak_bytes": verdict.peak_bytes,
        "cost": verdict.cost,
        "steps": len(document.schedule.steps),
        "violations": list(judgement.violations),
        "unchecked": list(judgement.unchecked),
    }


def _show(judgement: Judgement, path: str) -> None:
    document, verdict = judgement.document, judgement.verdict
    wrong = judgement.violations
    facts = [
        Fact(
            "verdict",
            "failed" if wrong else "passed",
            count(len(wrong), "violation") if wrong else "",
            "bold red" if wrong else "bold green",
        ),
        Fact("schedule", source_name(path), f"{document.strategy}, {count(len(document.schedule.steps), 'step')}"),
        Fact("budget", exact_bytes(judgement.budget_bytes)),
        Fact("peak", exact_bytes(verdict.peak_bytes)),
        Fact(
            "cost",
            format_cost(verdict.cost, document.cost_unit),
            f"{format_change(document.overhead)} over the ideal cost ({document.cost_model})",
        ),
        *(Fact("not checked" if number == 0 else "", shown(claim)) for number, claim in enumerate(judgement.unchecked)),
    ]
    show_facts(shown(judgement.graph.name), facts)
    if wrong:
        show_lines("Violations", [f"  {number}. {shown(violation)}" for number, violation in enumerate(wrong, start=1)])
