"""`checkmate verify`: judge a schedule file by the graph alone, with the checker that shares no code with what made it.

A compiled model in place of the schedule is judged by running it: `runtime_verify`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..core.costs import given_costs, has_given_costs, unit_costs
from ..core.errors import InputError
from ..core.graph import Graph
from ..core.runtime import Runtime
from ..core.units import Budget
from ..core.verify import Claim, Verdict
from ..core.verify import verify as judge
from .amounts import count, exact_bytes, format_change, format_cost, shown, source_name
from .command import Command, option
from .exit_codes import ExitCode
from .log import stage
from .options import PROBLEM, GraphRequest, general_options, graph_options
from .parameters import BUDGET
from .pipeline import keep_all_peak, load_pinned, priced
from .render import Fact, show_facts, show_lines
from .runtime_verify import RunningRequest, is_model, running_options, verify_by_running
from .session import Session

if TYPE_CHECKING:
    from ..io.schedule_json import ScheduleDocument


@dataclass(frozen=True, slots=True)
class Judgement:
    """What was checked, and everything found wrong."""

    graph: Graph
    document: ScheduleDocument
    budget: int
    verdict: Verdict
    violations: tuple[str, ...]


@click.command(
    cls=Command,
    examples=[
        ("checkmate verify model.onnx model.schedule.json", "is it legal, and all that it says it is?"),
        ("checkmate verify model.onnx model.schedule.json --budget 6GB", "would it fit into less?"),
        ("checkmate verify model.onnx model.remat.onnx", "run both: equal outputs, predicted memory, real overhead"),
        (
            "checkmate verify model.onnx model.remat.onnx --enforce",
            "prove it: the compiled model runs in the budget, the original does not",
        ),
    ],
)
@option("--budget", group=PROBLEM, type=BUDGET, help="The budget to hold it to.  [default: the one in the file]")
@graph_options()
@click.argument("schedule", type=click.Path(allow_dash=True))
@running_options
@general_options
def verify(session: Session, request: GraphRequest, schedule: str, budget: Budget | None, running: RunningRequest) -> ExitCode:
    """Check SCHEDULE, a schedule file or a compiled ONNX model, against GRAPH.

    A compiled model is run in onnxruntime beside the original: outputs, order, memory at each node, budget and time.
    A schedule file is replayed: each operation's inputs are in memory when it runs, every operation runs, every output is there at the
    end, and peak, cost and budget are what the file says. Costs are those in the file unless --costs prices the graph anew.
    Exits with 6 if anything is wrong. GRAPH and SCHEDULE may be - for stdin.
    """
    if request.source == "-" and schedule == "-":
        raise InputError("GRAPH and SCHEDULE cannot both be - (stdin)")
    if is_model(schedule):
        return verify_by_running(session, request, schedule, budget, running)
    running.refuse_for_schedules()
    judgement = _judge(request, schedule, budget)
    passed = not judgement.violations
    if session.json:
        session.emit_json(_fields(judgement))
    elif not session.quiet:
        _show(judgement, schedule)
    return ExitCode.OK if passed else ExitCode.VERIFICATION


def _judge(request: GraphRequest, schedule: str, budget: Budget | None) -> Judgement:
    from ..io.content import Content
    from ..io.schedule_json import contradictions, parse_schedule

    _, graph = load_pinned(request)
    amounts: tuple[float, ...] | None = None
    if request.costs is not None or request.device is not None:
        graph, costs = priced(graph, request.costs, request.device)
        amounts = costs.amounts
    with stage("read the schedule"):
        content = _stdin_content() if schedule == "-" else Content.from_path(Path(schedule))
        document = parse_schedule(content.document, graph, content.where)
    reserve = document.reserve_bytes if request.reserve is None else request.reserve
    runtime = document.runtime if request.runtime is None else Runtime(request.runtime)
    with stage("simulate keeping everything"):
        everything = keep_all_peak(graph, reserve, runtime)
    limit = document.budget_bytes if budget is None else budget.resolve(everything)
    amounts = amounts if amounts is not None else _amounts_of(graph, document)
    claim = Claim(limit, document.peak_bytes, document.cost)
    with stage("verify"):
        verdict = judge(graph, amounts, document.schedule, claim, reserve=reserve, runtime=runtime)
        wrong = [*verdict.violations, *contradictions(content.document, document, graph)]
    if document.keep_all_peak_bytes != everything:
        wrong.append(f"keeping everything takes {everything} bytes, but {document.keep_all_peak_bytes} was claimed")
    if document.bound is not None and document.bound > document.cost * (1 + 1e-9):
        wrong.append(f"the bound {document.bound!r} is above the cost {document.cost!r}: it cannot be one")
    return Judgement(graph, document, limit, verdict, tuple(wrong))


def _stdin_content() -> Any:
    import sys

    from ..io.content import Content

    return Content.from_stream(sys.stdin.buffer)


def _amounts_of(graph: Graph, document: ScheduleDocument) -> tuple[float, ...]:
    """Costs the graph itself states are taken from the graph, not from the file that is being judged."""
    if document.cost_model == "given" and has_given_costs(graph):
        return given_costs(graph).amounts
    if document.cost_model == "unit":
        return unit_costs(graph).amounts
    return document.amounts


def _fields(judgement: Judgement) -> dict[str, Any]:
    document, verdict = judgement.document, judgement.verdict
    return {
        "format": "checkmate-verify",
        "version": 1,
        "status": "failed" if judgement.violations else "passed",
        "graph": {"name": judgement.graph.name},
        "strategy": document.strategy,
        "budget_bytes": judgement.budget,
        "peak_bytes": verdict.peak_bytes,
        "cost": verdict.cost,
        "steps": len(document.schedule.steps),
        "violations": list(judgement.violations),
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
        Fact("budget", exact_bytes(judgement.budget)),
        Fact("peak", exact_bytes(verdict.peak_bytes)),
        Fact(
            "cost",
            format_cost(verdict.cost, document.cost_unit),
            f"{format_change(document.overhead)} over the ideal ({document.cost_model})",
        ),
    ]
    show_facts(shown(judgement.graph.name), facts)
    if wrong:
        show_lines("Violations", [f"  {number}. {shown(violation)}" for number, violation in enumerate(wrong, start=1)])
