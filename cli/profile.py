"""`checkmate profile`: what each operation of a model costs on this machine, for `solve --costs`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from ..core.errors import InputError
from ..io.runtime.providers import PROVIDERS
from .amounts import count, exact_bytes, format_cost, shown, source_name
from .command import Command, option
from .options import OUTPUT, PROBLEM, general_options
from .outputs import check_destinations, make_folders
from .parameters import COUNT, DIMENSION, SIZE, Name
from .progress import Progress
from .render import Column, Fact, Row, show_facts, show_table
from .runtime_verify import RUNNING, inputs_option, threads_option
from .session import Session

if TYPE_CHECKING:
    from ..io.onnx.reader import OnnxModel
    from ..io.runtime.profile import ProfileResult, ProfileWishes

COSTS_SUFFIX = ".costs.json"
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
        ("checkmate solve model.onnx --costs costs.json --budget 8GB", "... and solve with what was measured"),
        ("checkmate profile model.onnx --provider cuda --batch-size 32", "on a GPU; needs onnxruntime-gpu"),
    ],
)
@click.argument("model", type=click.Path(dir_okay=False))
@option("--dim", group=PROBLEM, multiple=True, type=DIMENSION, help="Size of a symbolic dimension; repeatable.")
@option("--batch-size", group=PROBLEM, type=COUNT, help="Size of the first free dimension of the model's inputs.")
@provider_option
@option("--repeat", group=RUNNING, type=COUNT, default=20, show_default=True, help="Runs; of each operation the shortest counts.")
@threads_option
@inputs_option
@option("--memory", group=RUNNING, type=SIZE, help="Profile in pieces no larger than this.  [default: what is free]")
@option(
    "-o",
    "--output",
    group=OUTPUT,
    type=click.Path(),
    metavar="FILE",
    help="The costs file, or - for stdout.  [default: named like the model]",
)
@general_options
def profile(
    session: Session,
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
    """Measure the time and the workspace of every operation of MODEL, an ONNX model.

    Writes a costs file for 'checkmate solve --costs'. Inputs are generated, and so are weights that are missing. A model too large for
    the memory is profiled in pieces.
    """
    from ..io.runtime.profile import ProfileWishes

    if output == "-" and session.json:
        raise InputError("--json and -o - both want stdout; choose one, or name a file with -o")
    target = None if output == "-" else costs_file(model, output)
    check_destinations([target] if target else [], model)
    progress = Progress(session)
    with progress:
        progress.begin(f"reading {source_name(model)}")
        loaded = _load(model, dict(dim), batch_size)
        wishes = ProfileWishes(provider, repeat, threads, None if inputs is None else Path(inputs), memory)
        result = run_profile(progress, loaded, wishes)
    if target is None:
        sys.stdout.write(costs_text(result))
    else:
        write_costs(result, target)
    if not result.workspace_measured:
        session.note(f"note: onnxruntime {result.version} does not measure workspace; 1.23 and newer do")
    if session.json:
        session.emit_json(_fields(result, provider, repeat, target))
    elif not session.quiet:
        _show(result, provider, repeat, target, loaded, sys.stdout if target else sys.stderr)


def costs_file(model: str, output: str | None) -> Path:
    stem = Path(model).name.removesuffix(".onnx")
    if output is None:
        return Path(stem + COSTS_SUFFIX)
    return Path(output) / (stem + COSTS_SUFFIX) if output.endswith("/") or Path(output).is_dir() else Path(output)


def run_profile(progress: Progress, model: OnnxModel, wishes: ProfileWishes) -> ProfileResult:
    """Profile with a bar that says how far it is."""
    from ..io.runtime.profile import profile_model

    progress.begin("profiling")
    return profile_model(model, wishes, progress.share)


def costs_text(result: ProfileResult) -> str:
    from ..io.costs_json import render_costs
    from ..io.json_text import json_text

    return json_text(render_costs(result.costs))


def write_costs(result: ProfileResult, path: Path) -> None:
    from ..io.atomic import atomic_write

    make_folders([path])
    atomic_write(path, costs_text(result).encode("utf-8", "backslashreplace"))


def _load(path: str, dims: dict[str, int], batch_size: int | None) -> OnnxModel:
    from ..io.load import load

    if path == "-":
        raise InputError("a model to profile must be a file, not standard input")
    loaded = load(path, dims=dims, batch_size=batch_size)
    if loaded.onnx is None:
        raise InputError(f"{path}: only ONNX models can be run and profiled; a JSON graph states its costs itself")
    return loaded.onnx


def _fields(result: ProfileResult, provider: str, repeat: int, target: Path | None) -> dict[str, Any]:
    return {
        "format": "checkmate-profile",
        "version": 1,
        "status": "ok",
        "onnxruntime": result.version,
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


def _show(result: ProfileResult, provider: str, repeat: int, target: Path | None, model: OnnxModel, stream: TextIO) -> None:
    costs = result.costs.costs
    total = sum(costs.values())
    name, workspace = max(result.costs.workspace.items(), key=lambda entry: entry[1], default=("", 0))
    pieces = f", in {count(result.pieces, 'piece')}" if result.pieces > 1 else ""
    facts = [
        Fact("time", format_cost(total, "s"), f"{count(len(costs), 'operation')}, shortest of {count(repeat, 'run')}{pieces}", "bold"),
        Fact("workspace", exact_bytes(workspace), f"the most, in {shown(name)}" if name else ""),
        Fact("machine", provider, f"onnxruntime {result.version}, {count(result.threads, 'thread')}"),
        *([Fact("written", shown(str(target)), "", "cyan")] if target else []),
    ]
    show_facts(shown(model.graph.name), facts, stream)
    kinds: dict[str, tuple[int, float]] = {}
    for operation in model.graph.operations:
        if operation.name in costs:
            number, seconds = kinds.get(operation.kind, (0, 0.0))
            kinds[operation.kind] = number + 1, seconds + costs[operation.name]
    ranked = sorted(kinds.items(), key=lambda entry: -entry[1][1])[:_MOST_SHOWN]
    rows = [Row((kind, str(number), format_cost(seconds, "s"), f"{100 * seconds / total:.1f} %")) for kind, (number, seconds) in ranked]
    show_table("By kind", [Column("kind"), Column("operations", True), Column("time", True), Column("share", True)], rows, stream)
