"""`checkmate max-batch`: the largest batch, or any other size, that fits, for every strategy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from ..core.certify import Certified, certify
from ..core.errors import InputError
from ..core.events import Watch
from ..core.largest import Largest, SizeSearch
from ..core.result import Solution, Status, Stop
from ..core.strategies import HEURISTICS, STRATEGIES
from ..core.units import Budget, format_bytes
from ..io.onnx.anchoring import Anchor
from .amounts import exact_bytes, format_change, format_elapsed, shown, source_name
from .command import Command, option
from .exit_codes import ExitCode
from .interruption import Interruption
from .options import OUTPUT, PROBLEM, SOLVING, GraphRequest, SolvingRequest, general_options, graph_options, solving_options
from .outcome import outcome_of
from .outputs import Destinations, check_destinations, choose_destinations
from .parameters import BUDGET, FREE_DIMENSION, CommaSeparated, Name, Parsed
from .progress import Progress
from .render import Column, Fact, Row, blank, show_facts, show_table
from .schedule_files import write_results
from .session import Session
from .sizes import ONE_FORWARD, Allowance, SizedModel, parse_allowance, split_dimensions
from .training import TrainingRequest, training_files, training_options, write_training_files

DEFAULT_STRATEGIES = (*HEURISTICS, "auto")


@dataclass(frozen=True, slots=True)
class Answers:
    """What was found, and what it was asked of."""

    model: SizedModel
    dimension: str
    budget: Budget
    budget_bytes: int
    allowance: Allowance
    found: tuple[Largest, ...]
    impossible_from: int | None
    sizes_tried: int
    interrupted: bool
    cost_model: str
    cost_unit: str
    name: str

    @property
    def best(self) -> Largest | None:
        """The largest; of equals the cheapest."""
        answered = [answer for answer in self.found if answer.finding is not None]
        return min(answered, key=lambda answer: (-answer.size, answer.finding.cost if answer.finding else 0.0), default=None)

    @property
    def status(self) -> str:
        """In the words of exit codes: no size at all is no success."""
        if self.interrupted or self.best is not None:
            return "interrupted" if self.interrupted else "ok"
        return "infeasible" if self.impossible_from == 1 else "unknown"

    @property
    def keep_all(self) -> int | None:
        return next((answer.size for answer in self.found if answer.strategy == "keep-all" and answer.size), None)


@click.command(
    cls=Command,
    examples=[
        ("checkmate max-batch model.onnx --loss cross-entropy --budget 16GB", "how large a batch can be trained within 16 GB"),
        ("checkmate max-batch model.train.onnx --budget 16GB --overhead 30%", "of a training graph, at most 30 % slower than the ideal"),
        (
            "checkmate max-batch model.onnx --budget 8GB --dim seq --dim batch=4 --overhead 50% --strategies keep-all,auto",
            "the longest sequence",
        ),
        ("checkmate max-batch model.onnx --loss cross-entropy --budget 16GB -o large/", "write the largest's schedule and model too"),
    ],
)
@option(
    "--budget",
    group=PROBLEM,
    type=BUDGET,
    required=True,
    help="Memory for everything together: 16GB, 16GiB, 16e9.",
)
@graph_options(sizes=False)
@option(
    "--dim",
    group=PROBLEM,
    multiple=True,
    type=FREE_DIMENSION,
    help="NAME: the dimension to vary; NAME=N: the size of another; repeatable.  [default: the first free one]",
)
@option(
    "--overhead",
    group=PROBLEM,
    type=Parsed("SHARE", parse_allowance),
    default=ONE_FORWARD,
    show_default=True,
    help="What recomputing may cost: a share of the ideal cost such as 30%, or one-forward, one more forward pass.",
)
@option(
    "--strategies",
    group=SOLVING,
    type=CommaSeparated(Name("STRATEGY", tuple(STRATEGIES))),
    default=",".join(DEFAULT_STRATEGIES),
    help="Strategies with commas between them.  [default: keep-all, each heuristic and auto]",
)
@solving_options
@training_options
@option(
    "-o", "--output", group=OUTPUT, metavar="PATH", help="Write the largest's schedule and model: a folder, a schedule.json or a prefix."
)
@option("--no-onnx", group=OUTPUT, is_flag=True, help="Write the schedule only, no model.")
@general_options
def max_batch(
    session: Session,
    request: GraphRequest,
    solving: SolvingRequest,
    training: TrainingRequest,
    budget: Budget,
    dim: tuple[tuple[str, int | None], ...],
    overhead: Allowance,
    strategies: tuple[str, ...],
    output: str | None,
    no_onnx: bool,
) -> ExitCode:
    """Find the largest batch of GRAPH that fits the budget, for each strategy.

    A size counts if the strategy has a schedule that fits and costs at most the ideal and one forward pass (--overhead), verified. The
    time limit holds for each size tried. GRAPH is an ONNX model with a free dimension, a training graph or with --loss a forward model.
    """
    if budget.share is not None:
        raise InputError(f"--budget {budget.text}: what keeping everything takes grows with the size; give bytes, such as 16GB")
    if output == "-":
        raise InputError("-o -: name a folder, a schedule.json or a prefix; for the figures on stdout use --json")
    settled, vary = split_dimensions(dim)
    model = SizedModel(replace(request, dims=settled), training if training.wanted else None, solving.settings.seed, vary)
    model.check()
    destinations = None if output is None else choose_destinations(request.source, output, with_model=not no_onnx)
    if destinations is not None:
        check_destinations(destinations.paths, request.source)
    progress = Progress(session, time_limit=solving.time_limit)
    with progress:
        interruption = Interruption(session, lambda: progress.announce("stopping with the largest so far; Ctrl-C again stops at once"))
        with interruption:
            answers = _search(model, budget, overhead, strategies, solving, progress, interruption)
            interruption.consequence = "some files may not be written"
            written = [] if destinations is None else _write(answers, solving, destinations, progress)
    if session.json:
        session.emit_json(_fields(answers, written))
    elif not session.quiet:
        _show(answers, written)
    if answers.interrupted:
        session.note(
            "interrupted: sizes not tried may work; every size shown is verified" + (" and the largest written" if written else "")
        )
        return ExitCode.INTERRUPTED
    return {"infeasible": ExitCode.INFEASIBLE, "unknown": ExitCode.LIMIT}.get(answers.status, ExitCode.OK)


def _search(
    model: SizedModel,
    budget: Budget,
    allowance: Allowance,
    strategies: Sequence[str],
    solving: SolvingRequest,
    progress: Progress,
    interruption: Interruption,
) -> Answers:
    def watch_for(strategy: str, size: int) -> Watch:
        progress.begin(f"{strategy}: {model.label} {size}")
        return Watch(solving.time_limit, progress.on_event, lambda: interruption.requested)

    progress.begin(f"reading {source_name(model.request.source)}")
    search = SizeSearch(lambda size: model.trial(size, budget, allowance), solving.settings_for, watch_for)
    first = search.trial(1)
    progress.price(first.problem.costs.unit, 0.0)
    found: list[Largest] = []
    for strategy in sorted(strategies, key=lambda name: name not in HEURISTICS):
        if interruption.requested:
            break
        progress.begin(f"{strategy}")
        found.append(search.find(strategy))
    by_name = {answer.strategy: answer for answer in found}
    return Answers(
        model=model,
        dimension=model.label,
        budget=budget,
        budget_bytes=first.problem.budget,
        allowance=allowance,
        found=tuple(by_name[strategy] for strategy in strategies if strategy in by_name),
        impossible_from=search.impossible_from() if not interruption.requested else None,
        sizes_tried=search.sizes_tried,
        interrupted=interruption.requested,
        cost_model=first.problem.costs.model,
        cost_unit=first.problem.costs.unit,
        name=first.problem.graph.name,
    )


def _write(answers: Answers, solving: SolvingRequest, destinations: Destinations, progress: Progress) -> list[Path]:
    """The largest, as `solve` writes it."""
    best = answers.best
    if best is None or best.finding is None or best.finding.sequence is None:
        return []
    progress.begin("writing")
    prepared = answers.model.at(best.size)
    problem = prepared.at(answers.budget)
    schedule, simulation = certify(problem, best.finding.sequence)
    provenance: dict[str, str | int | float] = {"found_by": best.finding.found_by, answers.dimension: best.size}
    solution = Solution(Status.FEASIBLE, Stop.FINISHED, best.finding.sequence, provenance=provenance)
    certified = Certified(best.strategy, solution, schedule, simulation, True, best.seconds)
    outcome = outcome_of(certified, problem, prepared.keep_all.peak, solving.settings_for(certified.strategy).gap)
    beside = training_files(destinations.model) if prepared.training and destinations.model else ()
    check_destinations([*destinations.paths, *beside], answers.model.request.source)
    written = write_results(prepared, problem, solving, certified, outcome, destinations, Anchor.FULL)
    if prepared.training and beside:
        written += write_training_files(prepared.training, *beside)
    return written


def _row(answer: Largest, keep_all: int | None) -> dict[str, Any]:
    found = answer.finding
    return {
        "strategy": answer.strategy,
        "size": answer.size,
        "ratio": answer.size / keep_all if keep_all and found else None,
        "cost": found.cost if found else None,
        "overhead": _overhead(answer),
        "peak_bytes": found.peak if found else None,
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
    return answer.finding.cost / answer.ideal_cost - 1 if answer.finding and answer.ideal_cost > 0 else None


def _fields(answers: Answers, written: list[Path]) -> dict[str, Any]:
    return {
        "format": "checkmate-max-batch",
        "version": 1,
        "status": answers.status,
        "graph": {"name": answers.name, "source": answers.model.request.source, "format": "onnx"},
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


def _show(answers: Answers, written: list[Path]) -> None:
    best = answers.best
    allowed = "one more forward pass" if answers.allowance.share is None else f"{answers.allowance.text} over the ideal"
    impossible = answers.impossible_from
    facts = [
        Fact("graph", source_name(answers.model.request.source), shown(answers.name)),
        Fact("budget", exact_bytes(answers.budget_bytes)),
        Fact("cost at most", allowed, answers.cost_model),
        Fact(f"largest {shown(answers.dimension)}", str(best.size) if best else "none", best.strategy if best else "", "bold green"),
        *(
            [Fact("impossible from", str(impossible), "proven: what must be in memory together is more than the budget")]
            if impossible
            else []
        ),
        *(Fact("written" if number == 0 else "", shown(str(path)), "", "cyan") for number, path in enumerate(written)),
    ]
    show_facts(shown(answers.name), facts)
    blank()
    columns = [
        *(Column("strategy"), Column(shown(answers.dimension), True), Column("of keep-all", True), Column("overhead", True)),
        *(Column("peak", True), Column("time", True), Column("why not more")),
    ]
    rows = [_table_row(answer, answers.keep_all, best) for answer in answers.found]
    show_table(f"Largest {shown(answers.dimension)} that fits", columns, rows)


def _table_row(answer: Largest, keep_all: int | None, best: Largest | None) -> Row:
    overhead = _overhead(answer)
    cells = (
        answer.strategy,
        str(answer.size) if answer.finding else "-",
        f"{answer.size / keep_all:.2f} x" if keep_all and answer.finding else "-",
        "-" if overhead is None else format_change(overhead),
        format_bytes(answer.finding.peak) if answer.finding else "-",
        format_elapsed(answer.seconds),
        _next(answer),
    )
    return Row(cells, "bold green" if best and answer.size == best.size else "" if answer.finding else "dim")


def _next(answer: Largest) -> str:
    """Why it is not more."""
    if answer.failed is None:
        return "fits at every size tried"
    proof = "proven: " if answer.proven and not answer.reason.startswith("proven") else ""
    broken_off = "" if answer.complete else "; sizes between were not tried"
    return f"{answer.failed}: {proof}{shown(answer.reason)}{broken_off}"
