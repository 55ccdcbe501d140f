"""`checkmate differentiate`: make a training graph from a forward model."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ...api.training import differentiate as make_training_graph
from ...api.training import differentiate_model, is_torch_source, save_training_program
from ...core.errors import InputError
from ...core.model.units import count, format_bytes
from ..console import Console
from ..options.command import Command, option
from ..options.destinations import check_destinations, make_folders
from ..options.shared import OUTPUT, PROBLEM, general_options
from ..options.training import TRAINING_SUFFIX, TrainingRequest, training_options, values_file
from ..options.values import COUNT, DIMENSION, SEED
from ..output.amounts import shown, source_name
from ..output.render import Fact, show_facts
from ..output.training_notes import training_notes

if TYPE_CHECKING:
    from ...io.onnx.differentiate.training_files import Differentiated
    from ...io.onnx.differentiate.training_options import Role


@click.command(
    cls=Command,
    examples=[
        ("checkmate differentiate model.onnx --loss cross-entropy", "writes model.train.onnx and model.train.params.npz"),
        (
            "checkmate differentiate model.onnx --loss mse --optimizer adamw --batch-size 32 -o step.onnx",
            "a complete training step, optimizer included",
        ),
        ("checkmate differentiate model.onnx --loss cross-entropy --freeze 'backbone*'", "train the head only"),
        ("checkmate differentiate --list", "the operators that have a gradient"),
    ],
)
@click.argument("model", type=click.Path(allow_dash=True), required=False)
@option("--dim", group=PROBLEM, multiple=True, type=DIMENSION, help="Size of a symbolic dimension; repeatable.  [default: free]")
@option("--batch-size", group=PROBLEM, type=COUNT, help="Size of the batch; replaces a fixed size in the file.")
@training_options
@option("--seed", group=PROBLEM, type=SEED, default=0, show_default=True, help="Seed of the first Dropout; the others count up from it.")
@option("-o", "--output", group=OUTPUT, metavar="PATH", help="A folder or a model.onnx; parameter values are written next to it.")
@option("--list", "list_operators", group=OUTPUT, is_flag=True, help="List the operators that have a gradient, and exit.")
@general_options
def differentiate(
    console: Console,
    model: str | None,
    dim: tuple[tuple[str, int], ...],
    batch_size: int | None,
    training: TrainingRequest,
    seed: int,
    output: str | None,
    list_operators: bool,
) -> None:
    """Make a training graph from MODEL: a loss, and its gradients with respect to every parameter.

    Parameters become inputs, so that a training loop can feed updated values; their initial values are written next to the model.
    The graph has standard ONNX operators only, for onnxruntime and 'checkmate solve'. MODEL is an ONNX model; - is stdin. A PyTorch program
    (.pt2) becomes a program that returns its loss and a dict of gradients; its parameters stay in the file.
    """
    if list_operators:
        _list(console)
        return
    if model is None:
        raise InputError("missing MODEL: name an ONNX model, or use --list to see the operators that have a gradient")
    if not training.wanted:
        raise InputError("missing loss: add --loss cross-entropy, mse or bce-with-logits, or --loss-output NAME")
    if is_torch_source(model):
        _differentiate_program(console, model, output, training, dict(dim), batch_size)
        return
    target = _target(model, output)
    values = values_file(target)
    check_destinations([target, values], model)
    made = differentiate_model(model, dims=dict(dim), batch_size=batch_size, seed=seed, **training.options)
    make_folders([target])
    written = made.write(target, values)
    for note in training_notes(made):
        console.note(note)
    if console.json:
        console.emit_json(_fields(made, model, written))
    elif not console.quiet:
        show_facts(shown(made.graph.model.graph.name), _facts(made, model, written))


def _differentiate_program(
    console: Console, model: str, output: str | None, training: TrainingRequest, dims: dict[str, int], batch_size: int | None
) -> None:
    """The same for a PyTorch program: one file, with its backward pass."""
    target = _target(model, output, ".train.pt2")
    check_destinations([target], model)
    loaded = make_training_graph(model, dims=dims, batch_size=batch_size, **training.options)
    make_folders([target])
    written = save_training_program(loaded, target)
    operations = loaded.graph.operations
    forward = sum(not operation.backward for operation in operations)
    gradients = sum(spec.kind == "gradient" for spec in loaded.torch.outputs) if loaded.torch is not None else 0
    if console.json:
        fields = {"format": "checkmate-differentiate", "version": 1, "status": "ok", "source": model, "nodes": len(operations)}
        console.emit_json({**fields, "forward_nodes": forward, "gradients": gradients, "outputs": [str(written)]})
    elif not console.quiet:
        facts = [
            Fact("program", source_name(model), count(forward, "forward operation")),
            Fact("training graph", count(len(operations), "operation"), f"{len(operations) - forward} for the backward pass", "bold"),
            Fact("outputs", "loss", count(gradients, "gradient")),
            Fact("written", shown(str(written)), "", "cyan"),
        ]
        show_facts(shown(loaded.name), facts)


def _target(source: str, output: str | None, suffix: str = TRAINING_SUFFIX) -> Path:
    stem = "model" if source == "-" else Path(source).name.removesuffix(".onnx").removesuffix(".pt2")
    if output is None:
        return Path(stem + suffix)
    if output == "-":
        raise InputError(
            "the training graph cannot be written to stdout, because its parameter values are a second file; name a file with -o"
        )
    if output.endswith(("/", os.sep)) or Path(output).is_dir():
        return Path(output) / (stem + suffix)
    return Path(output if output.endswith(Path(suffix).suffix) else output + suffix)


def _list(console: Console) -> None:
    from ...io.onnx.gradients import GRADIENTS, WITHOUT_GRADIENT

    if console.json:
        console.emit_json(
            {
                "format": "checkmate-gradients",
                "version": 1,
                "status": "ok",
                "operators": sorted(GRADIENTS),
                "without_gradient": sorted(WITHOUT_GRADIENT),
            }
        )
    elif not console.quiet:
        for operator in sorted(GRADIENTS):
            click.echo(operator)
        console.note(
            f"{len(GRADIENTS)} operators; operators that onnx defines in terms of these work too (Attention, GroupNormalization, ...)"
        )


def _roles(made: Differentiated) -> dict[Role, int]:
    from ...io.onnx.differentiate.training_options import Role

    return {role: sum(parameter.role is role for parameter in made.graph.parameters) for role in Role}


def _facts(made: Differentiated, source: str, written: list[Path]) -> list[Fact]:
    graph = made.graph
    nodes = len(graph.model.graph.node)
    roles = [f"{amount} {role.value}" for role, amount in _roles(made).items() if amount]
    size = sum(parameter.bytes for parameter in graph.parameters)
    feeds = [*graph.data_inputs, *([graph.label_input] if graph.label_input else [])]
    return [
        Fact("model", source_name(source), count(graph.forward_nodes, "forward node")),
        Fact("training graph", count(nodes, "node"), f"{nodes - graph.forward_nodes} for backward pass and updates", "bold"),
        Fact("parameters", format_bytes(size), ", ".join(roles)),
        Fact("inputs", shown(", ".join(feeds)), "and the tensors in the .npz" if len(written) > 1 else ""),
        Fact("outputs", shown(graph.loss), f"{count(len(graph.gradients), 'gradient')}, {count(len(graph.updates), 'update')}"),
        *(Fact("written" if number == 0 else "", shown(str(path)), "", "cyan") for number, path in enumerate(written)),
    ]


def _fields(made: Differentiated, source: str, written: list[Path]) -> dict[str, Any]:
    graph = made.graph
    return {
        "format": "checkmate-differentiate",
        "version": 1,
        "status": "ok",
        "source": source,
        "nodes": len(graph.model.graph.node),
        "forward_nodes": graph.forward_nodes,
        "loss": graph.loss,
        "data_inputs": list(graph.data_inputs),
        "label_input": graph.label_input,
        "parameters": {parameter.name: parameter.role.value for parameter in graph.parameters},
        "gradients": dict(graph.gradients),
        "updates": dict(graph.updates),
        "state": list(graph.state),
        "without_gradient": dict(graph.without_gradient),
        "warnings": list(graph.warnings),
        "outputs": [str(path) for path in written],
    }
