"""Judging a compiled model by running it in onnxruntime, and telling the outcome: for `verify` and for `solve --verify`."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..core.errors import InputError
from ..core.units import Budget
from .amounts import shown, source_name
from .command import Function, option
from .exit_codes import ExitCode
from .options import GraphRequest
from .parameters import COUNT
from .pipeline import keep_all_peak, load_pinned, priced, runtime_of
from .progress import Progress
from .render import Column, Fact, Row, show_facts, show_lines, show_table
from .session import Session

if TYPE_CHECKING:
    from ..io.onnx.reader import OnnxModel
    from ..io.runtime.compare import Check
    from ..io.runtime.verification import Verification

RUNNING = "Running"
DEFAULT_REPEAT = 10
_STYLES = {"passed": "green", "failed": "bold red", "skipped": "yellow"}


@dataclass(frozen=True, slots=True)
class RunningRequest:
    """How to run a model."""

    inputs: str | None = None
    repeat: int | None = None
    threads: int | None = None
    enforce: bool = False

    def refuse_for_schedules(self) -> None:
        """These options would be ignored in silence."""
        given = {"--inputs": self.inputs, "--repeat": self.repeat, "--threads": self.threads, "--enforce": self.enforce}
        for name, value in given.items():
            if value:
                raise InputError(f"{name} is for compiled models, which are run; a schedule file is not")


def running_options(function: Function) -> Function:
    """How to run a model, handed to the command as one `running`."""

    @functools.wraps(function)
    def packed(*arguments: Any, **values: Any) -> Any:
        names = ("inputs", "repeat", "threads", "enforce")
        return function(*arguments, running=RunningRequest(**{name: values.pop(name) for name in names}), **values)

    decorated: Any = packed
    for decorate in (
        option("--enforce", group=RUNNING, is_flag=True, help="Prove the budget: limit memory to it, and see the original fail."),
        threads_option,
        option("--repeat", group=RUNNING, type=COUNT, help=f"Timed runs of each model; the shortest counts.  [default: {DEFAULT_REPEAT}]"),
        inputs_option,
    ):
        decorated = decorate(decorated)
    return decorated  # type: ignore[no-any-return]


inputs_option = option(
    "--inputs",
    group=RUNNING,
    type=click.Path(dir_okay=False),
    metavar="FILE.npz",
    help="Inputs by name; what is not in it is generated.",
)
threads_option = option("--threads", group=RUNNING, type=COUNT, help="Threads of onnxruntime.  [default: all cores]")


def is_model(path: str) -> bool:
    """Is it an ONNX model, by its content?"""
    from ..io.content import Content
    from ..io.load import is_onnx

    return path != "-" and Path(path).is_file() and is_onnx(Content.from_path(Path(path)))


def verify_by_running(session: Session, request: GraphRequest, compiled: str, budget: Budget | None, running: RunningRequest) -> ExitCode:
    """Run both models and say what was found."""
    progress = Progress(session)
    with progress:
        progress.begin(f"reading {source_name(request.source)}")
        loaded, graph = load_pinned(request)
        if loaded.onnx is None:
            raise InputError(f"{request.source}: a compiled model can only be compared with the ONNX model it was made from")
        amounts = None
        if request.costs is not None or request.device is not None:
            _, costs = priced(graph, request.costs, request.device)
            amounts = dict(zip((operation.name for operation in graph.operations), costs.amounts, strict=True))
        limit = None if budget is None else budget.resolve(keep_all_peak(graph, request.reserve or 0, runtime_of(request, loaded)))
        verification = run_verification(progress, loaded.onnx, compiled, request, running, limit, amounts)
    if session.json:
        session.emit_json(
            {
                "format": "checkmate-verify",
                "version": 1,
                "status": "passed" if verification.passed else "failed",
                "graph": {"name": graph.name},
                "compiled": compiled,
                **verification_fields(verification),
            }
        )
    elif not session.quiet:
        show_verification(verification, compiled)
    return ExitCode.OK if verification.passed else ExitCode.VERIFICATION


def run_verification(
    progress: Progress,
    original: OnnxModel,
    compiled: str,
    request: GraphRequest,
    running: RunningRequest,
    budget: int | None,
    amounts: dict[str, float] | None,
) -> Verification:
    from ..io.onnx.reader import read_onnx
    from ..io.runtime.verification import Wishes, verify_models

    wishes = Wishes(
        budget=budget,
        reserve=request.reserve,
        enforce=running.enforce,
        inputs=None if running.inputs is None else Path(running.inputs),
        repeat=running.repeat or DEFAULT_REPEAT,
        threads=running.threads,
        amounts=amounts,
    )
    model = read_onnx(Path(compiled), dims=request.dims, batch_size=request.batch_size)
    return verify_models(original, model, wishes, progress.begin)


def verification_fields(verification: Verification) -> dict[str, Any]:
    return {
        "onnxruntime": verification.version,
        "budget_bytes": verification.budget,
        "checks": [_check_fields(check) for check in verification.checks],
    }


def _check_fields(check: Check) -> dict[str, Any]:
    return {
        "name": check.name,
        "status": check.outcome.value,
        "summary": check.summary,
        "details": list(check.details),
        **check.figures,
    }


def show_verification(verification: Verification, compiled: str) -> None:
    """The verdict, and a line for each question."""
    verdict = "passed" if verification.passed else "failed"
    style = "bold green" if verification.passed else "bold red"
    show_facts(
        shown(compiled),
        [Fact("verdict", verdict, "", style), Fact("model", shown(compiled), f"onnxruntime {verification.version}")],
    )
    show_checks(verification)


def show_checks(verification: Verification) -> None:
    """A line for each question, and below what went wrong."""
    rows = [Row((check.name, check.outcome.value, shown(check.summary)), _STYLES[check.outcome.value]) for check in verification.checks]
    show_table("Checks", [Column("check"), Column("outcome"), Column("found")], rows)
    details = [f"  {check.name}: {shown(detail)}" for check in verification.checks for detail in check.details]
    if details:
        show_lines("Details", details)
