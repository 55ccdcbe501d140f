"""Options that several commands share, each declared once, and the objects they are packed into."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from ...api.graph import LoadedGraph, load
from ...api.pricing import PricedGraph, check_costs_name, price
from ...api.solving import DEFAULT_GAP, DEFAULT_TIME_LIMIT, OPTIMAL_GAP
from ...api.solving import solving_options as as_options
from ...core.errors import InputError
from ...core.model.memory_model import MemoryModel
from ...core.settings import FormulationName, Order
from ...core.solvers import SOLVERS
from ...core.spelling import nearest
from ..console import Console
from .command import VARIABLE_PREFIX, Function, Option, option
from .config import read_config
from .values import COUNT, DIMENSION, DURATION, GAP, SEED, SIZE, Name

if TYPE_CHECKING:
    from ...io.formats.costs_json import CostsFile

PROBLEM, COSTS, SOLVING, OUTPUT, GENERAL = "The problem", "Costs", "Solving", "Output", "General"


@dataclass(frozen=True, slots=True)
class GraphRequest:
    """Which graph, with which sizes and costs: everything that is needed to build a problem, except the budget."""

    source: str
    dims: dict[str, int]
    batch_size: int | None
    costs: str | None
    device: str | None
    reserve: int | None
    pin: tuple[str, ...]
    memory_model: str | None = None
    session_threads: int | None = None

    def load(self) -> LoadedGraph:
        """The graph from the file or from standard input."""
        check_costs_name(self.costs)
        return load(self.source, dims=self.dims, batch_size=self.batch_size, session_threads=self.session_threads)

    def price(self, loaded: LoadedGraph, measured: CostsFile | None = None) -> PricedGraph:
        """The graph with its costs; measured costs replace the cost model."""
        return price(
            loaded,
            measured or self.costs,
            device=self.device,
            pin=self.pin,
            reserve=self.reserve or 0,
            memory_model=self.memory_model,
        )


@dataclass(frozen=True, slots=True)
class ScheduleGraph:
    """The graph a schedule belongs to; by default the one in its file."""

    source: str | None
    dims: dict[str, int]
    batch_size: int | None

    def load(self) -> LoadedGraph | None:
        """None if no graph was named."""
        return None if self.source is None else load(self.source, dims=self.dims, batch_size=self.batch_size)


def graph_options(*, reserve: bool = True, sizes: bool = True) -> Callable[[Function], Function]:
    """GRAPH and the options for reading it, passed as one argument `request`. Without `sizes`, the command reads --dim itself."""
    return functools.partial(_with_graph_options, reserve, sizes)


def _with_graph_options(reserve: bool, sizes: bool, function: Function) -> Function:
    @functools.wraps(function)
    def packed(*arguments: Any, **values: Any) -> Any:
        dims, batch_size = (_sizes_by_name(values.pop("dim")), values.pop("batch_size")) if sizes else ({}, None)
        names = ("costs", "device", "pin", "memory_model", "session_threads")
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
            help="Never recompute operations whose name matches, as in 'dropout*'; repeatable.",
        ),
        option(
            "--runtime",
            "memory_model",
            group=PROBLEM,
            type=Name("RUNTIME", tuple(model.value for model in MemoryModel)),
            help="The memory model: onnxruntime, torch, or generic (the paper's).  [default: by the format, generic for JSON graphs]",
        ),
        option(
            "--session-threads",
            group=PROBLEM,
            type=COUNT,
            help="Threads of the onnxruntime session that will run an ONNX model; a Conv needs workspace for each.  [default: all cores]",
        ),
        option(
            "--costs",
            group=COSTS,
            metavar="MODEL|FILE",
            help="given (the costs in the graph file), roofline, flops, unit, or a costs file.  [default: given, else roofline]",
        ),
        option(
            "--device", group=COSTS, metavar="NAME", help="The machine for the roofline model: a name or a .yaml file; see docs/cli.md."
        ),
    )
    return _stacked(packed, decorators)  # type: ignore[return-value]


_size_options = (
    option(
        "--dim",
        group=PROBLEM,
        multiple=True,
        type=DIMENSION,
        help="Size of a free dimension of a model; images[2]=48 if it has no name; repeatable.",
    ),
    option("--batch-size", group=PROBLEM, type=COUNT, help="Size of the first free dimension of a model's inputs."),
)

_reserve_option = option("--reserve", group=PROBLEM, type=SIZE, help="Memory to leave free for other uses, counted against the budget.")


def _sizes_by_name(sizes: tuple[tuple[str, int], ...]) -> dict[str, int]:
    dims: dict[str, int] = {}
    for name, size in sizes:
        if dims.setdefault(name, size) != size:
            raise InputError(f"--dim sets {name!r} twice, to {dims[name]} and to {size}; leave out one")
    return dims


def schedule_graph_options(function: Function) -> Function:
    """The graph of a schedule file that does not contain it, passed to the command as `graph`."""

    @functools.wraps(function)
    def packed(*arguments: Any, **values: Any) -> Any:
        source, dims, batch_size = values.pop("graph"), _sizes_by_name(values.pop("dim")), values.pop("batch_size")
        return function(*arguments, graph=ScheduleGraph(source, dims, batch_size), **values)

    graph = option(
        "--graph",
        group=PROBLEM,
        type=click.Path(allow_dash=True),
        help="The graph that was solved; only for schedule files that do not contain it.",
    )
    return _stacked(packed, (graph, *_size_options))  # type: ignore[return-value]


def solving_options(function: Function) -> Function:
    """All options of the strategies, passed to the command as one argument `solving`."""

    @functools.wraps(function)
    def packed(*arguments: Any, **values: Any) -> Any:
        names = ("time_limit", "gap", "order", "solver", "formulation", "threads", "seed", "iterations")
        return function(*arguments, solving=as_options(**{name: values.pop(name) for name in names}), **values)

    decorators = (
        option(
            "--time-limit",
            group=SOLVING,
            type=DURATION,
            default=f"{DEFAULT_TIME_LIMIT:g}s",
            show_default=True,
            help="Stop after this time, with the best schedule so far: 90s, 5m, 1h30m.",
        ),
        option(
            "--gap",
            group=SOLVING,
            type=GAP,
            help=f"Stop when the gap is at most this: 0.1% or 1e-3.  [default: {DEFAULT_GAP:.1%}; {OPTIMAL_GAP:.2%} for optimal]",
        ),
        option(
            "--solver",
            group=SOLVING,
            type=Name("SOLVER", tuple(SOLVERS)),
            default="highs",
            show_default=True,
            help=f"The MILP solver: {', '.join(SOLVERS)}.",
        ),
        option(
            "--formulation",
            group=SOLVING,
            type=Name("FORMULATION", tuple(name.value for name in FormulationName)),
            default="liveness",
            show_default=True,
            help="MILP of the exact strategies: liveness (fast), paper (as printed), any-order (bounds for every order).",
        ),
        option(
            "--order",
            group=SOLVING,
            type=Name("ORDER", tuple(order.value for order in reversed(Order))),
            help="Order of first computations: search for one, or keep the given one.  [default: search for auto, else given]",
        ),
        option(
            "--threads", group=SOLVING, type=COUNT, help="Number of cores to use; schedules of auto do not depend on it.  [default: all]"
        ),
        option(
            "--seed",
            group=SOLVING,
            type=SEED,
            default=0,
            show_default=True,
            help="Seed for everything random.",
        ),
        option(
            "--iterations",
            group=SOLVING,
            type=COUNT,
            help="Stop auto after N rounds, so that the result for a seed does not depend on the machine's speed.",
        ),
    )
    return _stacked(packed, decorators)  # type: ignore[return-value]


def general_options(function: Function) -> Function:
    """Read before all others, so that errors in other options are reported in the right form. The command gets the `Console`."""

    def remember(attribute: str) -> Callable[[click.Context, click.Parameter, bool], None]:
        def callback(context: click.Context, parameter: click.Parameter, value: bool) -> None:
            console = context.ensure_object(Console)
            setattr(console, attribute, value)
            if attribute == "verbose" and value:
                from ..log import show_stages

                show_stages()
                console.is_logged = True

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
        help="A YAML file with option values.",
    )
    log_file = option(
        "--log-file",
        group=GENERAL,
        type=click.Path(dir_okay=False),
        is_eager=True,
        expose_value=False,
        callback=_begin_log,
        metavar="FILE",
        help="Append a log with the time of each stage to this file.",
    )
    decorators = (
        config,
        log_file,
        switch("--json", group=OUTPUT, help="Print one JSON object instead of text."),
        switch("-q", "--quiet", group=GENERAL, help="Print nothing but errors."),
        switch("-v", "--verbose", group=GENERAL, help="Print progress messages on stderr."),
    )
    return _stacked(click.pass_obj(function), decorators)  # type: ignore[return-value]


def _stacked(function: Callable[..., Any], decorators: tuple[Callable[[Any], Any], ...]) -> Callable[..., Any]:
    """Apply decorators so that the first is listed first in the help."""
    for decorate in reversed(decorators):
        function = decorate(function)
    return function


def _apply_config(context: click.Context, parameter: click.Parameter, path: str | None) -> None:
    from ..registry import all_commands

    _check_variables(context)
    if path is None:
        return
    context.ensure_object(Console).config_path = path
    context.default_map = read_config(path, str(context.command.name), all_commands())


def _begin_log(context: click.Context, parameter: click.Parameter, path: str | None) -> None:
    if path is None:
        return
    from ..log import log_command, open_log

    console = context.ensure_object(Console)
    open_log(path)
    console.is_logged = True
    log_command(console.arguments)


def _check_variables(context: click.Context) -> None:
    """A misspelt variable would be ignored silently: a name similar to a real one is an error."""
    from ..registry import all_commands

    own = {parameter.variable for parameter in context.command.params if isinstance(parameter, Option)} | {f"{VARIABLE_PREFIX}DEBUG"}
    strange = sorted(name for name in os.environ if name.startswith(VARIABLE_PREFIX) and name not in own)
    if not strange:
        return
    known = own | {found.variable for command in all_commands().values() for found in command.own_options}
    words = [variable.removeprefix(VARIABLE_PREFIX) for variable in sorted(known)]
    for name in strange:
        near = nearest(name.removeprefix(VARIABLE_PREFIX), words)
        if name not in known and near:
            raise InputError(f"the environment variable {name} sets no option; did you mean {VARIABLE_PREFIX}{near}?")
