"""`checkmate max-batch`: the largest batch, or other dimension, that fits, for each strategy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ...api.largest import DEFAULT_STRATEGIES, ONE_FORWARD, Allowance, MaxBatch, SizedModel, find_max_batch, parse_allowance
from ...api.solving import SolvingOptions
from ...core.engine.strategies import STRATEGIES
from ...core.errors import InputError
from ...core.model.units import Budget, exact_bytes, format_bytes
from ...core.studies.largest import Largest
from ..console import Console
from ..exit_codes import ExitCode
from ..jobs.interruption import Interruption
from ..options.command import Command, option
from ..options.destinations import Destinations, check_destinations, choose_destinations
from ..options.shared import OUTPUT, PROBLEM, SOLVING, GraphRequest, general_options, graph_options, solving_options
from ..options.training import TrainingRequest, training_files, training_options
from ..options.values import BUDGET, FREE_DIMENSION, CommaSeparated, Name, Parsed, split_dimensions
from ..output.amounts import format_change, format_elapsed, shown, source_name
from ..output.progress import Progress
from ..output.render import Column, Fact, Row, blank, show_facts, show_table
from ..output.schedule_files import write_results


@click.command(
    cls=Command,
    examples=[
        ("checkmate max-batch model.onnx --loss cross-entropy --budget 16GB", "the largest batch that can be trained within 16 GB"),
        ("checkmate max-batch model.train.onnx --budget 16GB --overhead 30%", "a training graph, at most 30 % over the ideal cost"),
        (
            "checkmate max-batch model.onnx --budget 8GB --dim seq --dim batch=4 --overhead 50% --strategies keep-all,auto",
            "the longest sequence",
        ),
        (
            "checkmate max-batch model.onnx --loss cross-entropy --budget 16GB -o large/",
            "also write the schedule and the model of the largest size",
        ),
    ],
)
@option(
    "--budget",
    group=PROBLEM,
    type=BUDGET,
    required=True,
    help="Limit on all memory together: 16GB, 16GiB, 16e9.",
)
@graph_options(sizes=False)
@option(
    "--dim",
    group=PROBLEM,
    multiple=True,
    type=FREE_DIMENSION,
    help="NAME: the dimension to vary; NAME=N: the size of another dimension; repeatable.  [default: the first free one]",
)
@option(
    "--overhead",
    group=PROBLEM,
    type=Parsed("SHARE", parse_allowance),
    default=ONE_FORWARD,
    show_default=True,
    help="Limit on the cost of recomputation: a share of the ideal cost such as 30%, or one-forward (one more forward pass).",
)
@option(
    "--strategies",
    group=SOLVING,
    type=CommaSeparated(Name("STRATEGY", tuple(STRATEGIES))),
    default=",".join(DEFAULT_STRATEGIES),
    help="Strategies, separated by commas.  [default: keep-all, each heuristic and auto]",
)
@solving_options
@training_options
@option(
    "-o",
    "--output",
    group=OUTPUT,
    metavar="PATH",
    help="Write the schedule and the model of the largest size: a folder, a schedule.json, a model.onnx or a prefix.",
)
@option("--no-onnx", group=OUTPUT, is_flag=True, help="Write the schedule only, no model.")
@general_options
def max_batch(
    console: Console,
    request: GraphRequest,
    solving: SolvingOptions,
    training: TrainingRequest,
    budget: Budget,
    dim: tuple[tuple[str, int | None], ...],
    overhead: Allowance,
    strategies: tuple[str, ...],
    output: str | None,
    no_onnx: bool,
) -> ExitCode:
    """Find the largest batch of GRAPH that fits the budget, for each strategy.

    A size counts if the strategy has a verified schedule that fits and costs at most the ideal cost plus one forward pass (--overhead).
    The time limit applies to each size tried. GRAPH is an ONNX model or a PyTorch program with a free dimension: a training graph or, with
    --loss, a forward model.
    """
    if output == "-":
        raise InputError("-o - is not supported: name a folder, a schedule.json or a prefix; --json prints the figures on stdout")
    settled, vary = split_dimensions(dim)
    pricing = {
        "costs": request.costs,
        "device": request.device,
        "pin": request.pin,
        "reserve": request.reserve or 0,
        "memory_model": request.memory_model,
    }
    training_choices = {"seed": solving.settings.seed, **training.options} if training.wanted else None
    model = SizedModel(request.source, vary, settled, training_choices, pricing, request.session_threads)
    destinations = None if output is None else choose_destinations(request.source, output)
    if destinations is not None:
        destinations = destinations.without_model() if no_onnx else destinations
        check_destinations(destinations.paths, request.source)
    progress = Progress(console, time_limit=solving.time_limit)
    with progress:
        interruption = Interruption(
            console, lambda: progress.announce("stopping with the largest size so far; press Ctrl-C again to exit at once")
        )
        with interruption:
            progress.begin(f"reading {source_name(request.source)}")
            answers = find_max_batch(
                model,
                budget,
                overhead,
                strategies,
                solving,
                on_event=progress.on_event,
                interrupted=lambda: interruption.requested,
                on_task=progress.begin,
                on_unit=lambda unit: progress.price(unit, 0.0),
            )
            interruption.consequence = "some files may be missing"
            written = [] if destinations is None else _write(answers, destinations, progress)
    if console.json:
        console.emit_json(_fields(answers, written))
    elif not console.quiet:
        _show(answers, written)
    if answers.interrupted:
        console.note(
            "interrupted: sizes not tried may work; every size shown is verified"
            + (", and the files of the largest are written" if written else "")
        )
        return ExitCode.INTERRUPTED
    return {"infeasible": ExitCode.INFEASIBLE, "unknown": ExitCode.LIMIT}.get(_status(answers), ExitCode.OK)


def _status(answers: MaxBatch) -> str:
    """The exit code and its status: if no size works, it is not a success."""
    if answers.interrupted or answers.best is not None:
        return "interrupted" if answers.interrupted else "ok"
    return "infeasible" if answers.impossible_from == 1 else "unknown"


def _write(answers: MaxBatch, destinations: Destinations, progress: Progress) -> list[Path]:
    """Write the largest size, as `solve` writes its results."""
    progress.begin("writing")
    result = answers.result()
    if result is None:
        return []
    destinations = destinations.for_model(result.priced.loaded)
    beside = training_files(destinations.model) if result.priced.loaded.training and destinations.model else ()
    check_destinations([*destinations.paths, *beside], answers.model.source)
    return write_results(result, destinations, training=beside)


def _row(answer: Largest, keep_all: int | None) -> dict[str, Any]:
    found = answer.result
    return {
        "strategy": answer.strategy,
        "size": answer.size,
        "ratio": answer.size / keep_all if keep_all and found else None,
        "cost": found.cost if found else None,
        "overhead": _overhead(answer),
        "peak_bytes": found.peak_bytes if found else None,
        "recomputed": found.recomputed if found else None,
        "found_by": found.found_by if found else "",
        "failed_size": answer.failed,
        "proven": answer.proven,
        "complete": answer.complete,
        "note": answer.reason,
        "solved": answer.solved,
        "seconds": round(answer.seconds, 6),
    }


def _overhead(answer: Largest) -> float | None:
    return answer.result.cost / answer.ideal_cost - 1 if answer.result and answer.ideal_cost > 0 else None


def _fields(answers: MaxBatch, written: list[Path]) -> dict[str, Any]:
    return {
        "format": "checkmate-max-batch",
        "version": 1,
        "status": _status(answers),
        "graph": {"name": answers.name, "source": answers.model.source, "format": answers.format},
        "dimension": answers.dimension,
        "budget_bytes": answers.budget_bytes,
        "allowed_overhead": answers.allowance.text,
        "cost_model": answers.cost_model,
        "cost_unit": answers.cost_unit,
        "impossible_size": answers.impossible_from,
        "sizes_tried": answers.sizes_tried,
        "rows": [_row(answer, answers.keep_all) for answer in answers.found],
        "outputs": [str(path) for path in written],
    }


def _show(answers: MaxBatch, written: list[Path]) -> None:
    best = answers.best
    allowed = "one more forward pass" if answers.allowance.share is None else f"{answers.allowance.text} over the ideal cost"
    impossible = answers.impossible_from
    facts = [
        Fact("graph", source_name(answers.model.source), shown(answers.name)),
        Fact("budget", exact_bytes(answers.budget_bytes)),
        Fact("cost at most", allowed, answers.cost_model),
        Fact(f"largest {shown(answers.dimension)}", str(best.size) if best else "none", best.strategy if best else "", "bold green"),
        *(
            [Fact("impossible from", str(impossible), "proven: the values that must be in memory together exceed the budget")]
            if impossible
            else []
        ),
        *(Fact("written" if number == 0 else "", shown(str(path)), "", "cyan") for number, path in enumerate(written)),
    ]
    show_facts(shown(answers.name), facts)
    blank()
    columns = [
        *(Column("strategy"), Column(shown(answers.dimension), True), Column("of keep-all", True), Column("overhead", True)),
        *(Column("peak", True), Column("time", True), Column("why not larger")),
    ]
    rows = [_table_row(answer, answers.keep_all, best) for answer in answers.found]
    show_table(f"Largest {shown(answers.dimension)} that fits", columns, rows)


def _table_row(answer: Largest, keep_all: int | None, best: Largest | None) -> Row:
    overhead = _overhead(answer)
    cells = (
        answer.strategy,
        str(answer.size) if answer.result else "-",
        f"{answer.size / keep_all:.2f} x" if keep_all and answer.result else "-",
        "-" if overhead is None else format_change(overhead),
        format_bytes(answer.result.peak_bytes) if answer.result else "-",
        format_elapsed(answer.seconds),
        _next(answer),
    )
    return Row(cells, "bold green" if best and answer.size == best.size else "" if answer.result else "dim")


def _next(answer: Largest) -> str:
    """Why it is not larger."""
    if answer.failed is None:
        return "fits at every size tried"
    proof = "proven: " if answer.proven and not answer.reason.startswith("proven") else ""
    broken_off = "" if answer.complete else "; sizes in between were not tried"
    return f"{answer.failed}: {proof}{shown(answer.reason)}{broken_off}"
