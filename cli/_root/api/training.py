"""From a forward model to a training graph: loss, gradients and optionally an optimizer, in standard operators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.errors import InputError
from ..core.events import stage
from .graph import LoadedGraph

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
    """Make a training graph from a forward ONNX model, given as a path, bytes or an `onnx.ModelProto`.

    `loss` adds a loss (`cross-entropy`, `mse`, ...) on the output `predictions`; `loss_output` names an output that is already the loss.
    `train` and `freeze` select parameters by patterns. `optimizer` (`sgd`, `adamw`) adds updated parameters as outputs.
    """
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


def save_training(graph: LoadedGraph, model: Path, values: Path) -> list[Path]:
    """Write a training graph, and next to it the initial values of parameters and state; returns the files written."""
    if graph.training is None:
        raise InputError(f"{graph.name}: this graph was not made by differentiate")
    return graph.training.write(model, values)
