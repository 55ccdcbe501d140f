"""Options for running a model in onnxruntime, and for what `solve` runs besides solving."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ...core.errors import InputError
from .command import Function, option
from .destinations import SCHEDULE_SUFFIX, Destinations
from .shared import GraphRequest
from .values import COUNT

if TYPE_CHECKING:
    from ...io.onnxruntime.verification import VerifyOptions

RUNNING = "Running"
COSTS_SUFFIX = ".costs.json"
DEFAULT_REPEAT = 10


@dataclass(frozen=True, slots=True)
class RunningRequest:
    """How to run a model."""

    inputs: str | None = None
    repeat: int | None = None
    threads: int | None = None
    enforce: bool = False

    def refuse_for_schedules(self) -> None:
        """Refuse options that would be ignored silently."""
        given = {"--inputs": self.inputs, "--repeat": self.repeat, "--threads": self.threads, "--enforce": self.enforce}
        for name, value in given.items():
            if value:
                raise InputError(f"{name} is for compiled models; a schedule file is not run: leave it out")

    def verify_options(
        self, budget: int | None = None, reserve: int | None = None, amounts: dict[str, float] | None = None
    ) -> VerifyOptions:
        """As `verify_compiled` takes them."""
        from ...io.onnxruntime.verification import VerifyOptions

        return VerifyOptions(
            budget=budget,
            reserve=reserve,
            enforce=self.enforce,
            inputs=None if self.inputs is None else Path(self.inputs),
            repeat=self.repeat or DEFAULT_REPEAT,
            threads=self.threads,
            amounts=amounts,
        )


inputs_option = option(
    "--inputs",
    group=RUNNING,
    type=click.Path(dir_okay=False),
    metavar="FILE.npz",
    help="Inputs by name; inputs that are not in the file are generated.",
)
threads_option = option("--threads", group=RUNNING, type=COUNT, help="Number of threads of onnxruntime.  [default: all cores]")


def running_options(function: Function) -> Function:
    """How to run a model, passed to the command as one argument `running`."""

    @functools.wraps(function)
    def packed(*arguments: Any, **values: Any) -> Any:
        names = ("inputs", "repeat", "threads", "enforce")
        return function(*arguments, running=RunningRequest(**{name: values.pop(name) for name in names}), **values)

    decorated: Any = packed
    for decorate in (
        option(
            "--enforce",
            group=RUNNING,
            is_flag=True,
            help="Limit memory to the budget; the compiled model must run, the original must fail.",
        ),
        threads_option,
        option(
            "--repeat",
            group=RUNNING,
            type=COUNT,
            help=f"Number of timed runs of each model; the shortest counts.  [default: {DEFAULT_REPEAT}]",
        ),
        inputs_option,
    ):
        decorated = decorate(decorated)
    return decorated  # type: ignore[no-any-return]


@dataclass(frozen=True, slots=True)
class BesidesSolving:
    """What `solve` does in onnxruntime on request: measure costs before it solves, run the compiled model afterwards."""

    profile: bool
    verify: bool

    def check(self, request: GraphRequest, output: str | None, no_onnx: bool) -> None:
        """Refuse impossible combinations before the long work starts."""
        if self.profile and (request.costs is not None or request.device is not None):
            raise InputError("--profile measures the costs: leave out --costs and --device")
        if self.verify and (output == "-" or no_onnx):
            raise InputError("--verify runs the compiled model, which is not written with " + ("-o -" if output == "-" else "--no-onnx"))
        if (self.profile or self.verify) and request.source == "-":
            raise InputError("a model from standard input cannot be run: give a file, or leave out --profile and --verify")

    def require_model(self, destinations: Destinations) -> None:
        if self.verify and destinations.model is None:
            raise InputError("--verify needs an ONNX model, because it runs the compiled model; leave it out for a JSON graph")

    def costs_file(self, destinations: Destinations) -> Path | None:
        """The file for measured costs, which `verify` needs later."""
        if not self.profile or destinations.schedule is None:
            return None
        return Path(str(destinations.schedule).removesuffix(SCHEDULE_SUFFIX).removesuffix(".json") + COSTS_SUFFIX)


def besides_solving_options(function: Function) -> Function:
    """Passed to the command as one argument `besides`."""

    @functools.wraps(function)
    def packed(*arguments: Any, **values: Any) -> Any:
        return function(*arguments, besides=BesidesSolving(values.pop("measure_first"), values.pop("run_after")), **values)

    decorated: Any = packed
    for decorate in (
        option("--verify", "run_after", group=RUNNING, is_flag=True, help="Afterwards run the compiled model, as 'checkmate verify' does."),
        option("--profile", "measure_first", group=RUNNING, is_flag=True, help="First measure the costs, as 'checkmate profile' does."),
    ):
        decorated = decorate(decorated)
    return decorated  # type: ignore[no-any-return]
