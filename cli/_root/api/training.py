"""From a forward model to a training graph: loss, gradients and optionally an optimizer, in standard operators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.errors import InputError
from ..core.events import stage
from .graph import TORCH, LoadedGraph

if TYPE_CHECKING:
    from ..io.onnx.differentiate.training_files import Differentiated


def differentiate(
    source: Any,
    *,
    loss: str | None = None,
    loss_output: str | None = None,
    predictions: str | None = None,
    class_axis: int | None = None,
    train: Sequence[str] = (),
    freeze: Sequence[str] = (),
    optimizer: str = "none",
    weight_decay: float = 0.0,
    momentum: float = 0.0,
    batch_norm: str = "train",
    dropout: str = "train",
    keep_initializers: bool = False,
    model_outputs: bool = False,
    gradient_outputs: bool = True,
    seed: int = 0,
    dims: Mapping[str, int] | None = None,
    batch_size: int | None = None,
    session_threads: int | None = None,
) -> LoadedGraph:
    """Make a training graph from a forward model: an ONNX model or a PyTorch program, as a path, bytes or an `onnx.ModelProto`.

    `loss` adds a loss (`cross-entropy`, `mse`, ...) on the output `predictions`; `loss_output` names an output that is already the loss.
    `train` and `freeze` select parameters by patterns. `optimizer` (`sgd`, `adamw`) adds updated parameters as outputs. The options that
    say how to change the model (`optimizer`, `batch_norm`, `dropout`, ...) are for ONNX models; a PyTorch program is as it was exported.
    """
    if is_torch_source(source):
        unchanged = {"optimizer": "none", "weight_decay": 0.0, "momentum": 0.0, "batch_norm": "train", "dropout": "train"}
        unchanged |= {"keep_initializers": False, "model_outputs": False, "gradient_outputs": True}
        stated = (optimizer, weight_decay, momentum, batch_norm, dropout, keep_initializers, model_outputs, gradient_outputs)
        for (name, default), value in zip(unchanged.items(), stated, strict=True):
            if value != default:
                raise InputError(f"{name} is for ONNX models; a PyTorch program is trained as it was exported: leave it out")
        return _differentiate_program(source, loss, loss_output, predictions, class_axis, train, freeze, dims, batch_size)
    made = differentiate_model(
        source,
        loss=loss,
        loss_output=loss_output,
        predictions=predictions,
        class_axis=class_axis,
        train=train,
        freeze=freeze,
        optimizer=optimizer,
        weight_decay=weight_decay,
        momentum=momentum,
        batch_norm=batch_norm,
        dropout=dropout,
        keep_initializers=keep_initializers,
        model_outputs=model_outputs,
        gradient_outputs=gradient_outputs,
        seed=seed,
        dims=dims,
        batch_size=batch_size,
    )
    return read_training_graph(made, source, session_threads)


def is_torch_source(source: Any) -> bool:
    """True if the content is a PyTorch program. Standard input is not looked at, because it can be read only once."""
    from ..io.formats.content import Content
    from ..io.load import is_torch

    if isinstance(source, bytes):
        return is_torch(Content.from_bytes(source, "bytes"))
    return isinstance(source, (str, Path)) and source != "-" and Path(source).is_file() and is_torch(Content.from_path(Path(source)))


def torch_dimensions(source: str) -> tuple[str, ...]:
    """The names of the free sizes of a PyTorch program."""
    from ..io.formats.content import Content
    from ..io.torch.files.archive import open_archive

    return open_archive(Content.from_path(Path(source))).program.symbols


def _differentiate_program(
    source: Any,
    loss: str | None,
    loss_output: str | None,
    predictions: str | None,
    class_axis: int | None,
    train: Sequence[str],
    freeze: Sequence[str],
    dims: Mapping[str, int] | None,
    batch_size: int | None,
) -> LoadedGraph:
    from ..io.formats.content import Content
    from ..io.torch_files import read_torch_program, require_torch

    if loss is not None and loss_output is not None:
        raise InputError("pass either loss, to add one, or loss_output, the name of an output that is already the loss")
    require_torch()
    from ..io.torch.files.program_training import ProgramTraining

    content = Content.from_bytes(source, "bytes") if isinstance(source, bytes) else Content.from_path(Path(source))
    training = ProgramTraining(loss, loss_output, predictions, class_axis, tuple(train), tuple(freeze))
    with stage("differentiate"):
        program = read_torch_program(content, dict(dims or {}), batch_size, training)
    return LoadedGraph(program.traced.graph, TORCH, "" if isinstance(source, bytes) else str(source), torch=program)


def differentiate_model(
    source: Any,
    *,
    loss: str | None = None,
    loss_output: str | None = None,
    predictions: str | None = None,
    class_axis: int | None = None,
    train: Sequence[str] = (),
    freeze: Sequence[str] = (),
    optimizer: str = "none",
    weight_decay: float = 0.0,
    momentum: float = 0.0,
    batch_norm: str = "train",
    dropout: str = "train",
    keep_initializers: bool = False,
    model_outputs: bool = False,
    gradient_outputs: bool = True,
    seed: int = 0,
    dims: Mapping[str, int] | None = None,
    batch_size: int | None = None,
) -> Differentiated:
    """`differentiate` without loading the result as a graph, so that dimensions may stay free."""
    from ..io.onnx.differentiate.training_files import differentiate_source
    from ..io.onnx.differentiate.training_options import TrainingOptions

    if (loss is None) == (loss_output is None):
        raise InputError("pass either loss, to add one, or loss_output, the name of an output that is already the loss")
    options = TrainingOptions(
        loss=loss,
        loss_output=loss_output,
        output=predictions,
        class_axis=class_axis,
        train=tuple(train),
        freeze=tuple(freeze),
        optimizer=optimizer,
        weight_decay=weight_decay,
        momentum=momentum,
        keep_initializers=keep_initializers,
        batch_norm=batch_norm,
        dropout=dropout,
        seed=seed,
        model_outputs=model_outputs,
        gradient_outputs=gradient_outputs,
        dims=dict(dims or {}),
        batch_size=batch_size,
    )
    with stage("differentiate"):
        return differentiate_source(source, options)


def read_training_graph(made: Differentiated, source: Any, session_threads: int | None = None) -> LoadedGraph:
    """Load a model that was made in memory, named after the file it is written to."""
    from ..io.onnx.read.reader import read_onnx

    named = str(source) if isinstance(source, (str, Path)) else ""
    stem = Path(named).stem if named not in ("", "-") else "model"
    with stage("read the training graph"):
        model = read_onnx(made.graph.model, name=f"{stem}.train", threads=session_threads)
    return LoadedGraph(model.graph, "onnx", named, replace(model, path=made.path), made)


def save_training_program(graph: LoadedGraph, path: Path) -> Path:
    """Write a PyTorch program with its backward pass, completely or not at all."""
    from ..io.formats.atomic import atomic_write
    from ..io.torch.files.program_writer import as_traced, program_bytes

    if graph.torch is None or graph.torch.objective is None:
        raise InputError(f"{graph.name}: this graph is not a PyTorch program that was differentiated")
    atomic_write(path, program_bytes(graph.torch, as_traced(graph.torch), {}))
    return path


def save_training(graph: LoadedGraph, model: Path, values: Path) -> list[Path]:
    """Write a training graph, and next to it the initial values of parameters and state; returns the files written."""
    if graph.training is None:
        raise InputError(f"{graph.name}: this graph was not made by differentiate")
    return graph.training.write(model, values)
