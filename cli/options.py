"""Options that several commands share, each declared once, and what they add up to."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import click

from ..core.errors import InputError
from ..core.milp import FORMULATIONS
from ..core.runtime import Runtime
from ..core.settings import Settings
from ..core.solvers import SOLVERS
from .command import VARIABLE_PREFIX, Function, Option, option
from .config import read_config
from .parameters import COUNT, DIMENSION, DURATION, GAP, SEED, SIZE, Name, nearest, parse_gap
from .session import Session

PROBLEM, COSTS, SOLVING, OUTPUT, GENERAL = "The problem", "Costs", "Solving", "Output", "General"

DEFAULT_TIME_LIMIT = "60s"


@dataclass(frozen=True, slots=True)
class GraphRequest:
    """Which graph, at which sizes and prices: everything needed to build a problem but the budget."""

    source: str
    dims: dict[str, int]
    batch_size: int | None
    costs: str | None
    device: str | None
    reserve: int | None
    pin: tuple[str, ...]
    runtime: str | None = None


@dataclass(frozen=True, slots=True)
class ScheduleGraph:
    """Which graph a schedule is of; by default the one in its file."""

    source: str | None
    dims: dict[str, int]
    batch_size: int | None


DEFAULT_GAP = "0.5%"
OPTIMAL_GAP = "0.01%"
"""What `--gap` is if nobody says: for most, and for the strategy called optimal."""


@dataclass(frozen=True, slots=True)
class SolvingRequest:
    """How to solve, and for how long."""

    settings: Settings
    time_limit: float
    order_was_chosen: bool = False
    gap_was_chosen: bool = True

    def settings_for(self, strategy: str) -> Settings:
        """Unless told otherwise `auto` searches for an order, where the others take it as given, and `optimal` is held to more."""
        settings = self.settings
        if strategy == "auto" and not self.order_was_chosen:
            settings = replace(settings, order="search")
        if strategy == "optimal" and not self.gap_was_chosen:
            settings = replace(settings, gap=parse_gap(OPTIMAL_GAP))
        return settings


def graph_options(*, reserve: bool = True, sizes: bool = True) -> Callable[[Function], Function]:
    """GRAPH and all that says how to read it, handed to the command as one `request`; without `sizes`, these are the command's affair."""
    return functools.partial(_with_graph_options, reserve, sizes)


def _with_graph_options(reserve: bool, sizes: bool, function: Function) -> Function:
    @functools.wraps(function)
    def packed(*arguments: Any, **values: Any) -> Any:
        dims, batch_size = (_sizes_by_name(values.pop("dim")), values.pop("batch_size")) if sizes else ({}, None)
        names = ("costs", "device", "pin", "runtime")
        chosen = {name: values.pop(name) for name in names}
        request = GraphRequest(values.pop("graph"), dims, batch_size, reserve=values.pop("reserve", None), **chosen)
        return function(*arguments, request=request, **values)

    decorators = (
        click.argument("graph", type=click.Path(allow_dash=True)),
        *(_size_options if sizes else ()),
        *([_reserve_option] if reserve else []),
        option(
            "--pin",
            group=PROBLEM,
            multiple=True,
            metavar="PATTERN",
            help="Never recompute operations of this name; * and ? match, as in 'dropout*'; repeatable.",
        ),
        option(
            "--runtime",
            group=PROBLEM,
            type=Name("RUNTIME", tuple(runtime.value for runtime in Runtime)),
            help="Whose memory model: onnxruntime or generic, the paper's.  [default: onnxruntime for ONNX models, else generic]",
        ),
        option(
            "--costs",
            group=COSTS,
            metavar="MODEL|FILE",
            help="given (what the file states), roofline, flops, unit, or a file of measured costs.  [default: given, else roofline]",
        ),
        option("--device", group=COSTS, metavar="NAME", help="The machine of the roofline model; see docs/cli.md for names and own files."),
    )
    return _stacked(packed, decorators)  # type: ignore[return-value]


_size_options = (
    option("--dim", group=PROBLEM, multiple=True, type=DIMENSION, help="Size of a symbolic dimension of an ONNX model; repeatable."),
    option("--batch-size", group=PROBLEM, type=COUNT, help="Size of the first free dimension of an ONNX model's inputs."),
)

_reserve_option = option("--reserve", group=PROBLEM, type=SIZE, help="Memory to leave free for others, counted against the budget.")


def _sizes_by_name(sizes: tuple[tuple[str, int], ...]) -> dict[str, int]:
    dims: dict[str, int] = {}
    for name, size in sizes:
        if dims.setdefault(name, size) != size:
            raise InputError(f"--dim gives {name!r} twice: {dims[name]} and {size}")
    return dims


def schedule_graph_options(function: Function) -> Function:
    """Where the graph of a schedule file is found if the file does not hold it, handed to the command as `graph`."""

    @functools.wraps(function)
    def packed(*arguments: Any, **values: Any) -> Any:
        source, dims, batch_size = values.pop("graph"), _sizes_by_name(values.pop("dim")), values.pop("batch_size")
        return function(*arguments, graph=ScheduleGraph(source, dims, batch_size), **values)

    graph = option(
        "--graph",
        group=PROBLEM,
        type=click.Path(allow_dash=True),
        help="The graph that was solved; only for schedule files that do not hold it.",
    )
    return _stacked(packed, (graph, *_size_options))  # type: ignore[return-value]


def solving_options(function: Function) -> Function:
    """Everything the MILP-based strategies can be told, handed to the command as one `solving`."""

    @functools.wraps(function)
    def packed(*arguments: Any, **values: Any) -> Any:
        time_limit = values.pop("time_limit")
        names = ("solver", "formulation", "threads", "seed", "iterations")
        order, gap = values.pop("order"), values.pop("gap")
        near = parse_gap(DEFAULT_GAP) if gap is None else gap
        settings = Settings(order=order or "given", gap=near, **{name: values.pop(name) for name in names})
        return function(*arguments, solving=SolvingRequest(settings, time_limit, order is not None, gap is not None), **values)

    decorators = (
        option(
            "--time-limit",
            group=SOLVING,
            type=DURATION,
            default=DEFAULT_TIME_LIMIT,
            show_default=True,
            help="When to stop with the best schedule so far: 90s, 5m, 1h30m.",
        ),
        option(
            "--gap",
            group=SOLVING,
            type=GAP,
            help=f"How near the optimum is near enough: 0.1% or 1e-3.  [default: {DEFAULT_GAP}; {OPTIMAL_GAP} for optimal]",
        ),
        option(
            "--solver",
            group=SOLVING,
            type=Name("SOLVER", tuple(SOLVERS)),
            default="highs",
            show_default=True,
            help=f"One of {', '.join(SOLVERS)}.",
        ),
        option(
            "--formulation",
            group=SOLVING,
            type=Name("FORMULATION", tuple(FORMULATIONS)),
            default="liveness",
            show_default=True,
            help="The MILP: liveness (fast) or paper (as printed).",
        ),
        option(
            "--order",
            group=SOLVING,
            type=Name("ORDER", ("search", "given")),
            help="Of first computations: search for one, or as given.  [default: search for auto, else given]",
        ),
        option("--threads", group=SOLVING, type=COUNT, help="Threads for the solver.  [default: its own choice]"),
        option(
            "--seed",
            group=SOLVING,
            type=SEED,
            default=0,
            show_default=True,
            help="Seed for all that is random.",
        ),
        option(
            "--iterations",
            group=SOLVING,
            type=COUNT,
            help="Stop auto after so many rounds of search, without MILPs: for a seed the result is then the same at any speed.",
        ),
    )
    return _stacked(packed, decorators)  # type: ignore[return-value]


def general_options(function: Function) -> Function:
    """Read first, so that even a bad option is reported as the user wants it. The command gets the `Session` itself."""

    def remember(attribute: str) -> Callable[[click.Context, click.Parameter, bool], None]:
        def callback(context: click.Context, parameter: click.Parameter, value: bool) -> None:
            session = context.ensure_object(Session)
            setattr(session, attribute, value)
            if attribute == "verbose" and value:
                from .log import show_stages

                show_stages()
                session.is_logged = True

        return callback

    def switch(*names: str, group: str, help: str) -> Callable[[Function], Function]:
        attribute = names[-1].removeprefix("--")
        return option(
            *names,
            f"want_{attribute}",
            group=group,
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=remember(attribute),
            help=help,
        )

    config = option(
        "--config",
        group=GENERAL,
        type=click.Path(dir_okay=False),
        is_eager=True,
        expose_value=False,
        callback=_apply_config,
        metavar="FILE",
        help="A YAML file of option values.",
    )
    log_file = option(
        "--log-file",
        group=GENERAL,
        type=click.Path(dir_okay=False),
        is_eager=True,
        expose_value=False,
        callback=_begin_log,
        metavar="FILE",
        help="Append what happens and how long each stage takes to a file.",
    )
    decorators = (
        config,
        log_file,
        switch("--json", group=OUTPUT, help="Print one JSON object instead of text."),
        switch("-q", "--quiet", group=GENERAL, help="Print nothing but errors."),
        switch("-v", "--verbose", group=GENERAL, help="Tell what happens, on stderr."),
    )
    return _stacked(click.pass_obj(function), decorators)  # type: ignore[return-value]


def _stacked(function: Callable[..., Any], decorators: tuple[Callable[[Any], Any], ...]) -> Callable[..., Any]:
    """Apply decorators so that the first is listed first in the help."""
    for decorate in reversed(decorators):
        function = decorate(function)
    return function


def _apply_config(context: click.Context, parameter: click.Parameter, path: str | None) -> None:
    from .main import all_commands

    _check_variables(context)
    if path is None:
        return
    context.ensure_object(Session).config_path = path
    context.default_map = read_config(path, str(context.command.name), all_commands())


def _begin_log(context: click.Context, parameter: click.Parameter, path: str | None) -> None:
    if path is None:
        return
    from .log import log_command, open_log

    session = context.ensure_object(Session)
    open_log(path)
    session.is_logged = True
    log_command(session.arguments)


def _check_variables(context: click.Context) -> None:
    """A misspelt variable would be ignored in silence: it is an error if it is near a real one."""
    from .main import all_commands

    own = {parameter.variable for parameter in context.command.params if isinstance(parameter, Option)} | {f"{VARIABLE_PREFIX}DEBUG"}
    strange = sorted(name for name in os.environ if name.startswith(VARIABLE_PREFIX) and name not in own)
    if not strange:
        return
    known = own | {found.variable for command in all_commands().values() for found in command.own_options}
    words = [variable.removeprefix(VARIABLE_PREFIX) for variable in sorted(known)]
    for name in strange:
        near = nearest(name.removeprefix(VARIABLE_PREFIX), words)
        if name not in known and near:
            raise InputError(f"the variable {name} sets no option; did you mean {VARIABLE_PREFIX}{near}?")
