"""`checkmate solve`: the main job. Load, price, check that it is possible at all, solve, prove, write."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..core.certify import run_strategy
from ..core.errors import InputError
from ..core.events import Watch
from ..core.history import History
from ..core.problem import Problem
from ..core.result import Status, Stop
from ..core.strategies import STRATEGIES
from ..core.units import Budget, format_bytes
from ..io.onnx.anchoring import Anchor
from .amounts import count, exact_bytes, format_change, format_cost, format_elapsed, format_share, shown, source_name
from .command import Command, option
from .exit_codes import ExitCode
from .interruption import Interruption
from .model_file import check_model_name, write_model
from .options import OUTPUT, PROBLEM, SOLVING, GraphRequest, SolvingRequest, general_options, graph_options, solving_options
from .outcome import Outcome
from .outputs import check_destinations, choose_destinations, report_path, stem_of
from .parameters import BUDGET, Name
from .pipeline import Prepared, note_if_forward_only, prepare, require_above_floor
from .progress import Progress
from .render import Fact, show_facts
from .runtime_verify import show_checks, verification_fields
from .schedule_files import check_model_can_be_written, write_results
from .session import Session
from .solve_runtime import RuntimeRequest, runtime_options
from .solved import require_fitting, solved_fields
from .training import TrainingRequest, training_files, training_options, write_training_files

if TYPE_CHECKING:
    from ..io.runtime.verification import Verification


@click.command(
    cls=Command,
    examples=[
        ("checkmate solve model.onnx --budget 8GB", "writes model.schedule.json and model.remat.onnx"),
        ("checkmate solve model.onnx --budget 80% --batch-size 32 -o out/", "80 % of what keeping everything takes, into a folder"),
        ("checkmate solve model.onnx --loss cross-entropy --budget 8GB --batch-size 32", "a forward model, trained within 8 GB"),
        ("checkmate solve model.onnx --budget 8GB --profile --verify", "with costs measured here, and run afterwards to see that it holds"),
        ("checkmate solve model.onnx --budget 8GB --report report.html", "with a page to look at in a browser"),
        ("checkmate solve graph.json --budget 8GiB --strategy chen-greedy --json", "one baseline, for a script"),
        ("cat graph.json | checkmate solve - --budget 2e9 -o - > schedule.json", "a filter"),
    ],
)
@option(
    "--budget",
    group=PROBLEM,
    type=BUDGET,
    required=True,
    help="Memory for everything together: 8GB, 8GiB, 8e9, or 80% of what keeping everything takes.",
)
@graph_options()
@option(
    "--strategy",
    group=SOLVING,
    type=Name("STRATEGY", tuple(STRATEGIES)),
    default="auto",
    show_default=True,
    help="auto, optimal, lp-rounding or a baseline; 'checkmate compare' runs them all.",
)
@solving_options
@training_options
@option(
    "--write-model",
    "model_file",
    group=SOLVING,
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Write the MILP as .lp or .mps before solving it.",
)
@option("-o", "--output", group=OUTPUT, metavar="PATH", help="A folder, a schedule.json, a prefix, or - for the schedule on stdout.")
@option("--no-onnx", group=OUTPUT, is_flag=True, help="Write the schedule only, no model.")
@option(
    "--anchor",
    group=OUTPUT,
    type=Name("ANCHOR", tuple(anchor.value for anchor in Anchor)),
    default=Anchor.FULL.value,
    show_default=True,
    help="How the model keeps its recomputations in any onnxruntime session: full (order too, for CPU), attr (for CUDA) or none.",
)
@option(
    "--report",
    group=OUTPUT,
    metavar="PATH",
    help="Write an HTML page about the schedule too, as 'checkmate report' does: a folder or a page.html.",
)
@runtime_options
@general_options
def solve(
    session: Session,
    request: GraphRequest,
    solving: SolvingRequest,
    training: TrainingRequest,
    budget: Budget,
    strategy: str,
    model_file: str | None,
    output: str | None,
    no_onnx: bool,
    anchor: str,
    report: str | None,
    runtime: RuntimeRequest,
) -> ExitCode:
    """Find the cheapest schedule of GRAPH that fits the budget.

    Writes model.schedule.json, and for ONNX input model.remat.onnx, into the current folder. Nothing is written unless an independent
    verifier has passed the schedule and it fits.
    GRAPH is an ONNX model, a checkmate JSON graph or networkx node-link JSON; - is stdin.
    """
    if output == "-" and session.json:
        raise InputError("--json and -o - both want stdout; choose one, or name a file with -o")
    runtime.check(request, output, no_onnx)
    model_path = Path(model_file) if model_file else None
    if model_path:
        check_model_name(model_path)
    page = report_path(stem_of(request.source), report) if report else None
    more_paths = [path for path in (model_path, page) if path]
    check_destinations([*choose_destinations(request.source, output, with_model=False).paths, *more_paths], request.source)
    progress = Progress(session, time_limit=solving.time_limit)
    with progress:
        progress.begin(f"reading {source_name(request.source)}")
        measure = runtime.measure(progress, made=training.wanted)
        prepared = prepare(request, training if training.wanted else None, solving.settings.seed, measure)
        problem = prepared.at(budget)
        destinations = choose_destinations(request.source, output, with_model=prepared.loaded.onnx is not None and not no_onnx)
        beside = training_files(destinations.model) if prepared.training and destinations.model else ()
        runtime.require_model(destinations)
        costs_path = runtime.costs_file(destinations)
        check_destinations([*destinations.paths, *more_paths, *beside, *([costs_path] if costs_path else [])], request.source)
        check_model_can_be_written(prepared, destinations)
        require_above_floor(prepared, problem)
        if prepared.loaded.onnx is None and not no_onnx:
            session.detail("the input is not an ONNX model, so no ONNX model is written")
        if model_path:
            _write_model(problem, solving, model_path, progress)
        progress.price(prepared.costs.unit, problem.ideal_cost)
        interruption = Interruption(session, lambda: progress.announce("stopping with the best so far; Ctrl-C again stops at once"))
        with interruption:
            progress.begin(strategy)
            history = History(progress.on_event)
            watch = history.watch = Watch(solving.time_limit, history.on_event, lambda: interruption.requested)
            certified = run_strategy(problem, strategy, solving.settings_for(strategy), watch)
            outcome = require_fitting(certified, prepared, problem, solving, interrupted=interruption.requested)
            progress.begin("writing")
            interruption.consequence = "some files may not be written"
            written = write_results(
                prepared, problem, solving, certified, outcome, destinations, Anchor(anchor), history=history, report=page
            )
    if prepared.training and beside:
        written += write_training_files(prepared.training, *beside)
    if model_path:
        written.append(model_path)
    written += runtime.write_costs(costs_path)
    verification = runtime.run_written(session, prepared, request, destinations.model, beside[0] if beside else None)
    _deliver(session, prepared, budget, outcome, written, verification, to_stderr=destinations.to_stdout)
    note_if_forward_only(session, prepared)
    if certified.solution.reason:
        session.note(f"note: {certified.solution.reason}")
    if interruption.requested:
        session.note("interrupted: this is the best schedule found so far; it is verified" + (" and written" if written else ""))
        return ExitCode.INTERRUPTED
    return ExitCode.OK if verification is None or verification.passed else ExitCode.VERIFICATION


def _write_model(problem: Problem, solving: SolvingRequest, path: Path, progress: Progress) -> None:
    formulation = solving.settings.formulation
    progress.begin(f"writing the {formulation} model to {shown(str(path))}")
    write_model(problem, formulation, path)


def _deliver(
    session: Session,
    prepared: Prepared,
    budget: Budget,
    outcome: Outcome,
    written: list[Path],
    verification: Verification | None,
    *,
    to_stderr: bool,
) -> None:
    if session.json:
        ran = {} if verification is None else {"verification": verification_fields(verification)}
        session.emit_json({"format": "checkmate-solve", "version": 1, **solved_fields(prepared, budget, outcome, written), **ran})
    elif not session.quiet:
        show_facts(shown(prepared.graph.name), _facts(prepared, budget, outcome, written), sys.stderr if to_stderr else sys.stdout)
        if verification is not None:
            show_checks(verification)


def _facts(prepared: Prepared, budget: Budget, outcome: Outcome, written: list[Path]) -> list[Fact]:
    unit = prepared.costs.unit
    saved = outcome.peak_bytes / outcome.keep_all_peak_bytes - 1 if outcome.keep_all_peak_bytes else 0.0
    share = f"{budget.text} of keeping everything" if budget.share is not None else ""
    optimal = outcome.status is Status.OPTIMAL
    scope = " for this order" if outcome.bound_scope == "order" else ""
    stopped = {Stop.TIME_LIMIT: "time limit reached", Stop.INTERRUPTED: "interrupted", Stop.FINISHED: ""}[outcome.stop]
    return [
        Fact("status", outcome.status.value, stopped, "bold green" if optimal else "bold yellow"),
        Fact("graph", source_name(prepared.loaded.source), count(outcome.operations, "operation")),
        Fact("budget", exact_bytes(outcome.budget_bytes), share),
        Fact(
            "peak",
            exact_bytes(outcome.peak_bytes),
            f"{format_change(saved)} against {format_bytes(outcome.keep_all_peak_bytes)} keeping everything",
        ),
        Fact(
            "cost",
            format_cost(outcome.cost, unit),
            f"{format_change(outcome.overhead)} over the ideal {format_cost(outcome.ideal_cost, unit)}",
            "bold",
        ),
        Fact("bound", format_cost(outcome.bound, unit), f"gap {format_share(outcome.gap or 0.0)}{scope}"),
        Fact("recomputed", count(outcome.recomputed, "operation")),
        Fact("strategy", outcome.strategy, _how(outcome)),
        Fact("time", format_elapsed(outcome.seconds), ""),
        *(Fact("written" if number == 0 else "", shown(str(path)), "", "cyan") for number, path in enumerate(written)),
    ]


def _how(outcome: Outcome) -> str:
    """How the strategy came to its schedule, in the words of its provenance."""
    notes = dict(outcome.provenance)
    found_by, solver, formulation = (notes.pop(key, None) for key in ("found_by", "solver", "formulation"))
    parts = [f"{solver} on the {formulation} model"] if solver else []
    if found_by and found_by not in (outcome.strategy, solver):
        parts.append(f"schedule found by {found_by}")
    return ", ".join([*parts, *(f"{key.replace('_', ' ')} {value}" for key, value in notes.items())])
