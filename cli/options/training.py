"""Options for making a training graph from a forward model, shared by `differentiate` and `solve`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from ...api.graph import LoadedGraph
from ...api.pricing import check_costs_name
from ...api.training import differentiate
from ...core.errors import InputError
from ...io.onnx.differentiate.choices import LOSSES, MODES, OPTIMIZERS
from .command import Function, option
from .destinations import MODEL_SUFFIX
from .shared import GraphRequest
from .values import Name, Parsed

TRAINING = "The training graph"
TRAINING_SUFFIX = ".train.onnx"
VALUES_SUFFIX = ".params.npz"


@dataclass(frozen=True, slots=True)
class TrainingRequest:
    """What to add to a forward model; nothing if `loss` and `loss_output` are both None."""

    loss: str | None = None
    loss_output: str | None = None
    predictions: str | None = None
    class_axis: int | None = None
    train: tuple[str, ...] = ()
    freeze: tuple[str, ...] = ()
    optimizer: str = "none"
    weight_decay: float = 0.0
    momentum: float = 0.0
    bn: str = "train"
    dropout: str = "train"
    keep_initializers: bool = False
    model_outputs: bool = False
    no_gradient_outputs: bool = False

    @property
    def wanted(self) -> bool:
        return self.loss is not None or self.loss_output is not None

    def check(self) -> None:
        """Refuse options that contradict each other before a large model is read."""
        if self.loss is not None and self.loss_output is not None:
            raise InputError("--loss adds a loss and --loss-output names one that the model already has; choose one")
        given = [field.name for field in fields(self) if getattr(self, field.name) != field.default]
        if given and not self.wanted:
            raise InputError(f"--{given[0].replace('_', '-')} is for training graphs: add --loss {LOSSES[0]}, or --loss-output NAME")
        if self.no_gradient_outputs and self.optimizer == "none":
            raise InputError(
                "--no-gradient-outputs needs --optimizer, otherwise the graph has nothing to train with; add --optimizer sgd or adamw"
            )

    @property
    def options(self) -> dict[str, Any]:
        """The arguments for `checkmate.differentiate`."""
        options = {field.name: getattr(self, field.name) for field in fields(self)}
        options["batch_norm"] = options.pop("bn")
        options["gradient_outputs"] = not options.pop("no_gradient_outputs")
        return options

    def load(self, request: GraphRequest, seed: int) -> LoadedGraph:
        """The training graph of a forward model, if one was asked for; else the graph itself."""
        if not self.wanted:
            return request.load()
        check_costs_name(request.costs)
        return differentiate(
            request.source,
            dims=request.dims,
            batch_size=request.batch_size,
            session_threads=request.session_threads,
            seed=seed,
            **self.options,
        )


def _share(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1:
        raise InputError(f"expected a number from 0 to below 1, not {text!r}")
    return value


def _axis(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise InputError(f"expected a whole number such as 1 or -1, not {text!r}") from None


def training_options(function: Function) -> Function:
    """All options for the training graph, passed to the command as one argument `training`."""

    @functools.wraps(function)
    def packed(*arguments: Any, **values: Any) -> Any:
        training = TrainingRequest(**{field.name: values.pop(field.name) for field in fields(TrainingRequest)})
        training.check()
        return function(*arguments, training=training, **values)

    decorators: tuple[Callable[[Any], Any], ...] = (
        option("--loss", group=TRAINING, type=Name("LOSS", LOSSES), help=f"Add a loss and its gradients: {', '.join(LOSSES)}."),
        option("--loss-output", group=TRAINING, metavar="NAME", help="Differentiate this output, which is already the loss."),
        option("--predictions", group=TRAINING, metavar="NAME", help="The output to compute the loss from.  [default: the first]"),
        option(
            "--class-axis",
            group=TRAINING,
            type=Parsed("AXIS", _axis),
            help="The axis of the classes, for cross-entropy.  [default: that of a final Softmax, else the last of three, else 1]",
        ),
        option("--train", group=TRAINING, multiple=True, metavar="PATTERN", help="Train only parameters whose name matches; repeatable."),
        option(
            "--freeze", group=TRAINING, multiple=True, metavar="PATTERN", help="Do not train parameters whose name matches; repeatable."
        ),
        option(
            "--optimizer",
            group=TRAINING,
            type=Name("OPTIMIZER", OPTIMIZERS),
            default="none",
            show_default=True,
            help=f"Add updated parameters as outputs: {', '.join(OPTIMIZERS)}.",
        ),
        option(
            "--weight-decay",
            group=TRAINING,
            type=Parsed("NUMBER", _share),
            default=0.0,
            help="Weight decay of the optimizer.  [default: 0]",
        ),
        option("--momentum", group=TRAINING, type=Parsed("NUMBER", _share), default=0.0, help="Momentum of sgd.  [default: 0]"),
        option(
            "--bn",
            group=TRAINING,
            type=Name("MODE", MODES),
            default="train",
            show_default=True,
            help="BatchNormalization with the statistics of the batch (train) or the stored ones (eval).",
        ),
        option(
            "--dropout",
            group=TRAINING,
            type=Name("MODE", MODES),
            default="train",
            show_default=True,
            help="Dropout on, with a seed (train), or off (eval).",
        ),
        option("--keep-initializers", group=TRAINING, is_flag=True, help="Keep parameters in the model instead of making them inputs."),
        option("--model-outputs", group=TRAINING, is_flag=True, help="Also output the model's own outputs."),
        option("--no-gradient-outputs", group=TRAINING, is_flag=True, help="With an optimizer: output updated parameters, not gradients."),
    )
    for decorate in reversed(decorators):
        packed = decorate(packed)
    return packed  # type: ignore[return-value]


def training_files(model: Path) -> tuple[Path, Path]:
    """The files next to a compiled model: its training graph, and the initial values of its inputs."""
    stem = str(model).removesuffix(MODEL_SUFFIX).removesuffix(".onnx")
    return Path(stem + TRAINING_SUFFIX), values_file(Path(stem + TRAINING_SUFFIX))


def values_file(model: Path) -> Path:
    return Path(str(model).removesuffix(".onnx") + VALUES_SUFFIX)
