"""`checkmate solve`, the main command: load, price, check that the budget is not provably too small, solve, verify, write."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ...api.counting import Counting
from ...api.graph import LoadedGraph, load
from ...api.profiling import profile, save_costs
from ...api.result import Result
from ...api.solving import SolvingOptions, solve_priced
from ...api.verifying import verify_compiled
from ...core.engine.strategies import STRATEGIES
from ...core.errors import InputError
from ...core.model.units import Budget, count, exact_bytes, format_bytes
from ...core.result import Scope, Status, Stop
from ...io.onnx.compile.anchor_modes import Anchor
from ...io.onnxruntime.counts import Count
from ..console import Console
from ..exit_codes import ExitCode
from ..jobs.interruption import Interruption
from ..next_step import finding_a_budget
from ..options.command import Command, option
from ..options.destinations import check_destinations, choose_destinations, report_path, stem_of
from ..options.running import BesidesSolving, RunningRequest, besides_solving_options
from ..options.shared import OUTPUT, PROBLEM, SOLVING, GraphRequest, general_options, graph_options, solving_options
from ..options.training import TrainingRequest, training_files, training_options
from ..options.values import BUDGET, Name
from ..output.amounts import format_change, format_cost, format_elapsed, format_share, shown, source_name
from ..output.milp_file import check_model_name, write_model
from ..output.progress import Progress
from ..output.render import Fact, show_facts
from ..output.run_checks import show_checks, verification_fields
from ..output.schedule_files import check_model_can_be_written, write_results
from ..output.solved import note_if_forward_only, solved_fields
from ..output.training_notes import training_notes

if TYPE_CHECKING:
    from ...io.onnxruntime.measure import ProfileResult
    from ...io.onnxruntime.process_memory import ProcessMemory
    from ...io.onnxruntime.verification import Verification


@click.command(
    cls=Command,
    examples=[
        ("checkmate solve model.onnx --budget 8GB", "writes model.schedule.json and model.remat.onnx"),
        ("checkmate solve model.onnx --budget 80% --batch-size 32 -o out/", "80 % of the keep-all peak; write into a folder"),
        (
            "checkmate solve model.onnx --loss cross-entropy --budget 8GB --batch-size 32",
            "make a training graph from a forward model, and fit it into 8 GB",
        ),
        ("checkmate solve model.onnx --budget 8GB --profile --verify", "measure the costs first, and run the compiled model afterwards"),
        ("checkmate solve model.onnx --budget 8GB --report report.html", "also write an HTML page about the schedule"),
        ("checkmate solve model.pt2 --budget 8GB --profile", "a PyTorch program, with measured costs; writes model.remat.pt2"),
        ("checkmate solve graph.json --budget 8GiB --strategy chen-greedy --json", "one baseline, for a script"),
        ("cat graph.json | checkmate solve - --budget 2e9 -o - > schedule.json", "read the graph from stdin, write the schedule to stdout"),
    ],
)
@option(
    "--budget",
    group=PROBLEM,
    type=BUDGET,
    required=True,
    help="Limit on all memory together: 8GB, 8GiB, 8e9, or 80% of the keep-all peak.",
)
@option(
    "--count",
    group=PROBLEM,
    type=Name("WHAT", tuple(count.value for count in Count)),
    default=Count.TENSORS.value,
    show_default=True,
    help="What the budget limits: tensors, arena (with the gaps between tensors in onnxruntime's memory), or process (all that it takes).",
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
@option(
    "-o",
    "--output",
    group=OUTPUT,
    metavar="PATH",
    help="A folder, a schedule.json, a model.onnx or .pt2, a prefix, or - for the schedule on stdout.",
)
@option("--no-onnx", group=OUTPUT, is_flag=True, help="Write the schedule only, no model.")
@option(
    "--anchor",
    group=OUTPUT,
    type=Name("ANCHOR", tuple(anchor.value for anchor in Anchor)),
    default=Anchor.FULL.value,
    show_default=True,
    help="How the model keeps its recomputations in any onnxruntime session: full (keeps the order too; for CPU), attr (for CUDA) or none.",
)
@option(
    "--report",
    group=OUTPUT,
    metavar="PATH",
    help="Also write an HTML page about the schedule, as 'checkmate report' does: a folder or a page.html.",
)
@besides_solving_options
@general_options
def solve(
    console: Console,
    request: GraphRequest,
    solving: SolvingOptions,
    training: TrainingRequest,
    budget: Budget,
    count: str,
    strategy: str,
    model_file: str | None,
    output: str | None,
    no_onnx: bool,
    anchor: str,
    report: str | None,
    besides: BesidesSolving,
) -> ExitCode:
    """Find the cheapest schedule of GRAPH that fits the budget.

    Writes model.schedule.json and, for a model, model.remat.onnx or model.remat.pt2 into the current folder. Nothing is written unless the
    schedule fits and the independent verifier has passed it.
    GRAPH is an ONNX model, a PyTorch program (.pt2), a checkmate JSON graph or networkx node-link JSON; - is stdin.
    """
    if output == "-" and console.json:
        raise InputError("--json and -o - both write to stdout; choose one, or name a file with -o")
    besides.check(request, output, no_onnx)
    model_path = Path(model_file) if model_file else None
    if model_path:
        check_model_name(model_path)
    page = report_path(stem_of(request.source), report) if report else None
    more_paths = [path for path in (model_path, page) if path]
    destinations = choose_destinations(request.source, output)
    check_destinations([*destinations.without_model().paths, *more_paths], request.source)
    progress = Progress(console, time_limit=solving.time_limit)
    with progress:
        progress.begin(f"reading {source_name(request.source)}")
        loaded = training.load(request, solving.settings.seed)
        for note in training_notes(loaded.training):
            progress.announce(note)
        measured = _measure(loaded, progress) if besides.profile else None
        priced = request.price(loaded, None if measured is None else measured.costs)
        destinations = destinations.without_model() if no_onnx else destinations.for_model(loaded)
        beside = training_files(destinations.model) if loaded.training and destinations.model else ()
        besides.require_model(destinations)
        costs_path = besides.costs_file(destinations)
        check_destinations([*destinations.paths, *more_paths, *beside, *([costs_path] if costs_path else [])], request.source)
        check_model_can_be_written(loaded, destinations)
        counting = Counting(priced, Count(count), anchor)
        problem = priced.at(budget)
        if counting.count is Count.TENSORS:
            with finding_a_budget(counting, solving, progress):
                priced.require_possible(problem)
        if not loaded.can_be_compiled and not no_onnx:
            console.detail("the input is a JSON graph, so no model is written")
        if model_path:
            formulation = solving.settings.formulation
            progress.begin(f"writing the {formulation} model to {shown(str(model_path))}")
            write_model(problem, formulation, model_path)
        progress.price(priced.costs.unit, problem.ideal_cost)
        interruption = Interruption(
            console, lambda: progress.announce("stopping with the best schedule so far; press Ctrl-C again to exit at once")
        )
        with interruption, finding_a_budget(counting, solving, progress):
            progress.begin(strategy)
            result = solve_priced(
                priced,
                budget,
                strategy,
                solving,
                counting=counting,
                on_progress=progress.on_event,
                interrupted=lambda: interruption.requested,
            )
            progress.begin("writing")
            interruption.consequence = "some files may be missing"
            written = write_results(result, destinations, anchor=anchor, report=page, training=beside)
    if model_path:
        written.append(model_path)
    if costs_path and measured:
        written.append(save_costs(measured, costs_path))
    verification = None
    if besides.verify and destinations.model is not None:
        with Progress(console) as running:
            verification = _run_written(request, loaded, destinations.model, beside[0] if beside else None, running)
    memory = result.memory(anchor)
    _deliver(console, result, memory, written, verification, to_stderr=destinations.to_stdout)
    note_if_forward_only(console, loaded)
    if result.reason:
        console.note(f"note: {result.reason}")
    if interruption.requested:
        console.note("interrupted: this is the best schedule found so far; it is verified" + (" and written" if written else ""))
        return ExitCode.INTERRUPTED
    return ExitCode.OK if verification is None or verification.passed else ExitCode.VERIFICATION


def _measure(loaded: LoadedGraph, progress: Progress) -> ProfileResult:
    if not loaded.can_be_compiled:
        raise InputError("--profile needs a model, because it runs the model; leave it out for a JSON graph")
    progress.begin("profiling")
    return profile(loaded, on_progress=progress.share)


def _run_written(
    request: GraphRequest, loaded: LoadedGraph, compiled: Path, training_graph: Path | None, progress: Progress
) -> Verification:
    """Run the compiled model and the original."""
    options = RunningRequest().verify_options(reserve=request.reserve)
    if training_graph is not None:
        return verify_compiled(load(training_graph), compiled, options=options, on_task=progress.begin)
    return verify_compiled(loaded, compiled, dims=request.dims, batch_size=request.batch_size, options=options, on_task=progress.begin)


def _deliver(
    console: Console,
    result: Result,
    memory: ProcessMemory | None,
    written: list[Path],
    verification: Verification | None,
    *,
    to_stderr: bool,
) -> None:
    if console.json:
        ran = {} if verification is None else {"verification": verification_fields(verification)}
        console.emit_json({"format": "checkmate-solve", "version": 1, **solved_fields(result, written, memory), **ran})
    elif not console.quiet:
        show_facts(shown(result.priced.graph.name), _facts(result, memory, written), sys.stderr if to_stderr else sys.stdout)
        if verification is not None:
            show_checks(verification)


def _facts(result: Result, memory: ProcessMemory | None, written: list[Path]) -> list[Fact]:
    unit, budget = result.priced.costs.unit, result.budget
    saved = result.peak_bytes / result.keep_all_peak_bytes - 1 if result.keep_all_peak_bytes else 0.0
    whole = "keep-all peak" if result.count is Count.TENSORS else f"{result.count.value} without recomputation"
    limits = "" if result.count is Count.TENSORS else f"for the {result.count.value}"
    share = f"{budget.text} of the {whole}" if budget.share is not None else limits
    optimal = result.status is Status.OPTIMAL
    stopped = {Stop.TIME_LIMIT: "time limit reached", Stop.INTERRUPTED: "interrupted", Stop.FINISHED: ""}[result.stop]
    return [
        Fact("status", result.status.value, stopped, "bold green" if optimal else "bold yellow"),
        Fact("graph", source_name(result.priced.loaded.source), count(result.operations, "operation")),
        Fact("budget", exact_bytes(result.budget_bytes), share),
        Fact(
            "peak",
            exact_bytes(result.peak_bytes),
            f"{format_change(saved)} compared to {format_bytes(result.keep_all_peak_bytes)} without recomputation",
        ),
        *_besides_tensors(result, memory),
        Fact(
            "cost",
            format_cost(result.cost, unit),
            f"{format_change(result.overhead)} over the ideal cost of {format_cost(result.ideal_cost, unit)}",
            "bold",
        ),
        Fact("bound", format_cost(result.bound, unit), _gap(result)),
        Fact("recomputed", count(result.recomputed, "computation")),
        Fact("strategy", result.strategy, _how(result)),
        Fact("time", format_elapsed(result.seconds), ""),
        *(Fact("written" if number == 0 else "", shown(str(path)), "", "cyan") for number, path in enumerate(written)),
    ]


def _gap(result: Result) -> str:
    """The gap, and which schedules it compares with."""
    model = "" if result.bound_model is result.priced.problem.memory_model else " if nothing is computed in place"
    if result.bound_scope is Scope.ANY:
        return f"gap {format_share(result.gap)} for any order{model}"
    return f"gap {format_share(result.gap)} for this order{model}, {format_share(result.any_gap)} for any order"


def _besides_tensors(result: Result, memory: ProcessMemory | None) -> list[Fact]:
    """What onnxruntime and its process take, with `checkmate.session`."""
    if memory is None:
        return []
    gaps = memory.arena_bytes + result.priced.reserve - result.peak_bytes
    threads = count(result.priced.loaded.session_threads or 1, "thread")
    return [
        Fact("arena", exact_bytes(memory.arena_bytes), f"{format_bytes(max(gaps, 0))} of it gaps between tensors"),
        Fact("process", exact_bytes(memory.process_bytes), f"with checkmate.session, {threads}"),
    ]


def _how(result: Result) -> str:
    """How the strategy found the schedule, from its provenance."""
    notes = dict(result.provenance)
    found_by, solver, formulation = (notes.pop(key, None) for key in ("found_by", "solver", "formulation"))
    parts = [f"{solver} on the {formulation} model"] if solver else []
    if found_by and found_by not in (result.strategy, solver):
        parts.append(f"schedule found by {found_by}")
    return ", ".join([*parts, *(f"{key.replace('_', ' ')} {value}" for key, value in notes.items())])
