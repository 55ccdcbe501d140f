"""`checkmate profile`: measure what each operation of a model costs on this machine, for `solve --costs`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from ...api.graph import LoadedGraph, load
from ...api.profiling import costs_text, save_costs
from ...api.profiling import profile as measure
from ...core.errors import InputError
from ...core.model.graph import Graph
from ...core.model.units import count, exact_bytes
from ...io.onnxruntime.providers import PROVIDERS
from ..console import Console
from ..options.command import Command, option
from ..options.destinations import check_destinations, make_folders
from ..options.running import COSTS_SUFFIX, RUNNING, inputs_option, threads_option
from ..options.shared import OUTPUT, PROBLEM, general_options
from ..options.values import COUNT, DIMENSION, SIZE, Name
from ..output.amounts import format_cost, shown, source_name
from ..output.progress import Progress
from ..output.render import Column, Fact, Row, show_facts, show_table

if TYPE_CHECKING:
    from ...io.onnxruntime.measure import ProfileResult

_MOST_SHOWN = 8

provider_option = option(
    "--provider",
    group=RUNNING,
    type=Name("PROVIDER", tuple(PROVIDERS)),
    default="cpu",
    show_default=True,
    help="Where to run: cpu, cuda, tensorrt, ...",
)


@click.command(
    cls=Command,
    examples=[
        ("checkmate profile model.onnx -o costs.json", "measure, ..."),
        ("checkmate solve model.onnx --costs costs.json --budget 8GB", "... and solve with the measured costs"),
        ("checkmate profile model.onnx --provider cuda --batch-size 32", "on a GPU; needs onnxruntime-gpu"),
    ],
)
@click.argument("model", type=click.Path(dir_okay=False))
@option("--dim", group=PROBLEM, multiple=True, type=DIMENSION, help="Size of a symbolic dimension; repeatable.")
@option("--batch-size", group=PROBLEM, type=COUNT, help="Size of the first free dimension of the model's inputs.")
@provider_option
@option(
    "--repeat", group=RUNNING, type=COUNT, default=20, show_default=True, help="Number of runs; the shortest time of each operation counts."
)
@threads_option
@inputs_option
@option(
    "--memory", group=RUNNING, type=SIZE, help="Profile a larger model in pieces of at most this size.  [default: based on free memory]"
)
@option(
    "-o",
    "--output",
    group=OUTPUT,
    type=click.Path(),
    metavar="FILE",
    help="The costs file, or - for stdout.  [default: named after the model]",
)
@general_options
def profile(
    console: Console,
    model: str,
    dim: tuple[tuple[str, int], ...],
    batch_size: int | None,
    provider: str,
    repeat: int,
    threads: int | None,
    inputs: str | None,
    memory: int | None,
    output: str | None,
) -> None:
    """Measure the time and the workspace of every operation of MODEL, an ONNX model or a PyTorch program.

    Writes a costs file for 'checkmate solve --costs'. Inputs and missing weights are generated. An ONNX model that is too large for the
    memory is profiled in pieces; of a PyTorch program, each distinct operation is measured by itself.
    """
    if output == "-" and console.json:
        raise InputError("--json and -o - both write to stdout; choose one, or name a file with -o")
    target = None if output == "-" else costs_file(model, output)
    check_destinations([target] if target else [], model)
    progress = Progress(console)
    with progress:
        progress.begin(f"reading {source_name(model)}")
        loaded = _load(model, dict(dim), batch_size)
        progress.begin("profiling")
        result = measure(
            loaded, provider=provider, repeat=repeat, threads=threads, inputs=inputs, memory=memory, on_progress=progress.share
        )
    if target is None:
        sys.stdout.write(costs_text(result))
    else:
        make_folders([target])
        save_costs(result, target)
    if not result.workspace_measured:
        console.note(f"note: onnxruntime {result.version} does not report workspace; install 1.23 or newer to measure it")
    if result.estimated:
        console.note(f"note: operations of {count(len(result.estimated), 'kind')} could not be measured: {', '.join(result.estimated[:3])}")
    if console.json:
        console.emit_json(_fields(result, provider, repeat, target))
    elif not console.quiet:
        _show(result, provider, repeat, target, loaded.graph, sys.stdout if target else sys.stderr)


def costs_file(model: str, output: str | None) -> Path:
    stem = Path(model).name.removesuffix(".onnx").removesuffix(".pt2")
    if output is None:
        return Path(stem + COSTS_SUFFIX)
    return Path(output) / (stem + COSTS_SUFFIX) if output.endswith("/") or Path(output).is_dir() else Path(output)


def _load(path: str, dims: dict[str, int], batch_size: int | None) -> LoadedGraph:
    if path == "-":
        raise InputError("profile cannot read a model from standard input; give a file")
    return load(path, dims=dims, batch_size=batch_size)


def _fields(result: ProfileResult, provider: str, repeat: int, target: Path | None) -> dict[str, Any]:
    return {
        "format": "checkmate-profile",
        "version": 1,
        "status": "ok",
        result.runtime: result.version,
        "provider": provider,
        "threads": result.threads,
        "repeat": repeat,
        "pieces": result.pieces,
        "operations": len(result.costs.costs),
        "seconds": sum(result.costs.costs.values()),
        "workspace_measured": result.workspace_measured,
        "largest_workspace_bytes": max(result.costs.workspace.values(), default=0),
        "outputs": [str(target)] if target else [],
    }


def _show(result: ProfileResult, provider: str, repeat: int, target: Path | None, graph: Graph, stream: TextIO) -> None:
    costs = result.costs.costs
    total = sum(costs.values())
    name, workspace = max(result.costs.workspace.items(), key=lambda entry: entry[1], default=("", 0))
    pieces = f", in {count(result.pieces, 'piece')}" if result.pieces > 1 else ""
    facts = [
        Fact("time", format_cost(total, "s"), f"{count(len(costs), 'operation')}, shortest of {count(repeat, 'run')}{pieces}", "bold"),
        Fact("workspace", exact_bytes(workspace), f"largest, of operation {shown(name)!r}" if name else ""),
        Fact("machine", provider, f"{result.runtime} {result.version}, {count(result.threads, 'thread')}"),
        *([Fact("written", shown(str(target)), "", "cyan")] if target else []),
    ]
    show_facts(shown(graph.name), facts, stream)
    kinds: dict[str, tuple[int, float]] = {}
    for operation in graph.operations:
        if operation.name in costs:
            number, seconds = kinds.get(operation.kind, (0, 0.0))
            kinds[operation.kind] = number + 1, seconds + costs[operation.name]
    ranked = sorted(kinds.items(), key=lambda entry: -entry[1][1])[:_MOST_SHOWN]
    rows = [Row((kind, str(number), format_cost(seconds, "s"), f"{100 * seconds / total:.1f} %")) for kind, (number, seconds) in ranked]
    show_table("By kind", [Column("kind"), Column("operations", True), Column("time", True), Column("share", True)], rows, stream)
