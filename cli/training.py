"""Options that say how to make a training graph of a forward model, shared by `differentiate` and `solve`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.errors import InputError
from ..io.onnx.differentiate.choices import LOSSES, MODES, OPTIMIZERS
from .command import Function, option
from .outputs import MODEL_SUFFIX
from .parameters import Name, Parsed

if TYPE_CHECKING:
    from ..io.onnx.differentiate.files import Differentiated

TRAINING = "The training graph"
TRAINING_SUFFIX = ".train.onnx"
VALUES_SUFFIX = ".params.npz"


@dataclass(frozen=True, slots=True)
class TrainingRequest:
    """What to add to a forward model. `loss` and `loss_output` both None: nothing."""

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
        """What contradicts itself is said before a large model is read."""
        if self.loss is not None and self.loss_output is not None:
            raise InputError("--loss adds a loss and --loss-output names one that is there; choose one")
        given = [field.name for field in fields(self) if getattr(self, field.name) != field.default]
        if given and not self.wanted:
            raise InputError(f"--{given[0].replace('_', '-')} is for training graphs: add --loss {LOSSES[0]}, or --loss-output NAME")
        if self.no_gradient_outputs and self.optimizer == "none":
            raise InputError("--no-gradient-outputs without --optimizer would leave nothing to train with; add --optimizer sgd or adamw")

    def differentiate(self, source: str, dims: dict[str, int], batch_size: int | None, seed: int) -> Differentiated:
        """Read the forward model and add all that was asked for."""
        from ..io.onnx.differentiate.files import differentiate_file
        from ..io.onnx.differentiate.options import TrainingOptions

        options = TrainingOptions(
            loss=self.loss,
            loss_output=self.loss_output,
            output=self.predictions,
            class_axis=self.class_axis,
            train=self.train,
            freeze=self.freeze,
            optimizer=self.optimizer,
            weight_decay=self.weight_decay,
            momentum=self.momentum,
            keep_initializers=self.keep_initializers,
            batch_norm=self.bn,
            dropout=self.dropout,
            seed=seed,
            model_outputs=self.model_outputs,
            gradient_outputs=not self.no_gradient_outputs,
            dims=dims,
            batch_size=batch_size,
        )
        return differentiate_file(source, options)


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
    """Everything about the training graph, handed to the command as one `training`."""

    @functools.wraps(function)
    def packed(*arguments: Any, **values: Any) -> Any:
        training = TrainingRequest(**{field.name: values.pop(field.name) for field in fields(TrainingRequest)})
        training.check()
        return function(*arguments, training=training, **values)

    decorators: tuple[Callable[[Any], Any], ...] = (
        option("--loss", group=TRAINING, type=Name("LOSS", LOSSES), help=f"Add a loss and its gradients: {', '.join(LOSSES)}."),
        option("--loss-output", group=TRAINING, metavar="NAME", help="Differentiate an output that is the loss already."),
        option("--predictions", group=TRAINING, metavar="NAME", help="The output the loss looks at.  [default: the first]"),
        option(
            "--class-axis",
            group=TRAINING,
            type=Parsed("AXIS", _axis),
            help="Where the classes of cross-entropy lie.  [default: 1, or the last of three]",
        ),
        option("--train", group=TRAINING, multiple=True, metavar="PATTERN", help="Train only parameters of this name; repeatable."),
        option("--freeze", group=TRAINING, multiple=True, metavar="PATTERN", help="Do not train parameters of this name; repeatable."),
        option(
            "--optimizer",
            group=TRAINING,
            type=Name("OPTIMIZER", OPTIMIZERS),
            default="none",
            show_default=True,
            help=f"Add updated parameters as outputs: {', '.join(OPTIMIZERS)}.",
        ),
        option("--weight-decay", group=TRAINING, type=Parsed("SHARE", _share), default=0.0, help="Of the optimizer.  [default: 0]"),
        option("--momentum", group=TRAINING, type=Parsed("SHARE", _share), default=0.0, help="Of sgd.  [default: 0]"),
        option(
            "--bn",
            group=TRAINING,
            type=Name("MODE", MODES),
            default="train",
            show_default=True,
            help="BatchNormalization by the batch (train) or frozen (eval).",
        ),
        option(
            "--dropout",
            group=TRAINING,
            type=Name("MODE", MODES),
            default="train",
            show_default=True,
            help="Dropout active and seeded (train) or off (eval).",
        ),
        option("--keep-initializers", group=TRAINING, is_flag=True, help="Leave parameters in the model instead of making them inputs."),
        option("--model-outputs", group=TRAINING, is_flag=True, help="Give the model's own outputs too."),
        option("--no-gradient-outputs", group=TRAINING, is_flag=True, help="With an optimizer: give updates, not gradients."),
    )
    for decorate in reversed(decorators):
        packed = decorate(packed)
    return packed  # type: ignore[return-value]


def training_files(model: Path) -> tuple[Path, Path]:
    """Beside a compiled model: its training graph, and the values of what it is fed."""
    stem = str(model).removesuffix(MODEL_SUFFIX).removesuffix(".onnx")
    return Path(stem + TRAINING_SUFFIX), values_file(Path(stem + TRAINING_SUFFIX))


def values_file(model: Path) -> Path:
    return Path(str(model).removesuffix(".onnx") + VALUES_SUFFIX)


def write_training_files(made: Differentiated, model: Path, values: Path) -> list[Path]:
    from ..io.onnx.differentiate.files import write_training

    return write_training(made, model, values)
