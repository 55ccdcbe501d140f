"""A loss for a program that has none, and which of its parameters to train."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import torch
from torch.nn import functional

from ....core.errors import InputError
from ....core.spelling import suggestion
from .program import DTYPES, ProgramModule
from .program_json import InputSpec, Program, Ref, TensorMeta

CROSS_ENTROPY, MSE, BCE = "cross-entropy", "mse", "bce-with-logits"
LABELS = "labels"


@dataclass(frozen=True)
class ProgramTraining:
    """How to make a training step of a program. By default its loss is its first output that is one floating-point number."""

    loss: str | None = None
    """A loss to add."""
    loss_output: str | None = None
    """The output that is the loss."""
    predictions: str | None = None
    """The output to compute an added loss from; None for the first."""
    class_axis: int | None = None
    train: tuple[str, ...] = ()
    freeze: tuple[str, ...] = ()


@dataclass(frozen=True)
class Objective:
    """Which output is the loss, or what it is computed from."""

    place: int
    """The place among the outputs of the program."""
    added: str | None = None
    class_axis: int | None = None


def find_objective(program: Program, training: ProgramTraining, where: str) -> Objective | None:
    """The loss of a program; None if it has none and none was asked for."""
    names = [output.value.name if isinstance(output.value, Ref) and output.kind in ("output", "loss") else "" for output in program.outputs]
    if training.loss is not None:
        place = (
            _named(names, training.predictions, where)
            if training.predictions
            else next((at for at, name in enumerate(names) if name), None)
        )
        if place is None:
            raise InputError(f"{where}: no output to compute a loss from")
        return Objective(place, training.loss, training.class_axis)
    if training.loss_output is not None:
        place = _named(names, training.loss_output, where)
        if not _is_scalar(program.tensors.get(names[place])):
            raise InputError(f"{where}: the output {training.loss_output!r} is not one floating-point number, so it is no loss")
        return Objective(place)
    found = next((at for at, name in enumerate(names) if name and _is_scalar(program.tensors.get(name))), None)
    return None if found is None else Objective(found)


def _named(names: Sequence[str], wanted: str, where: str) -> int:
    if wanted in names:
        return names.index(wanted)
    known = [name for name in names if name]
    raise InputError(f"{where}: no output {wanted!r}{suggestion(wanted, known) or '; outputs are ' + ', '.join(known[:5])}")


def _is_scalar(meta: TensorMeta | None) -> bool:
    return meta is not None and not meta.sizes and DTYPES.get(meta.dtype, torch.int64).is_floating_point


def trained(program: Program, training: ProgramTraining, where: str) -> frozenset[str]:
    """The names of the parameters to train."""
    names = [spec.target for spec in program.inputs if spec.kind == "parameter"]
    for pattern in (*training.train, *training.freeze):
        if not any(fnmatchcase(name, pattern) for name in names):
            raise InputError(f"{where}: no parameter matches {pattern!r}{suggestion(pattern, names)}")
    metas = {spec.target: program.tensors[spec.name] for spec in program.inputs if spec.kind == "parameter"}
    chosen = [name for name in names if metas[name].requires_grad or training.train]
    chosen = [name for name in chosen if not training.train or any(fnmatchcase(name, pattern) for pattern in training.train)]
    return frozenset(name for name in chosen if not any(fnmatchcase(name, pattern) for pattern in training.freeze))


class TrainingModule(torch.nn.Module):
    """A program with its loss first; its other outputs follow and take no part in the backward pass."""

    def __init__(self, program: ProgramModule, objective: Objective) -> None:
        super().__init__()
        self.inner = program
        self.objective = objective

    def forward(self, *tensors: torch.Tensor) -> tuple[Any, ...]:
        labels = tensors[-1] if self.objective.added else None
        outputs = self.inner(*(tensors[:-1] if self.objective.added else tensors))
        found = outputs[self.objective.place]
        loss = found if labels is None else added_loss(self.objective, found, labels)
        others = outputs if self.objective.added else (*outputs[: self.objective.place], *outputs[self.objective.place + 1 :])
        return (loss, *(each.detach() if isinstance(each, torch.Tensor) else each for each in others))


def added_loss(objective: Objective, predictions: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """The mean loss of predictions."""
    if objective.added == MSE:
        return functional.mse_loss(predictions, labels)
    if objective.added == BCE:
        return functional.binary_cross_entropy_with_logits(predictions, labels)
    return functional.cross_entropy(predictions.movedim(class_axis(objective, predictions.dim()), 1), labels)


def class_axis(objective: Objective, dimensions: int) -> int:
    """The axis of the classes: the one asked for, else the last of three, else 1."""
    return objective.class_axis if objective.class_axis is not None else 2 if dimensions == 3 else min(1, dimensions - 1)


def fake_labels(objective: Objective, predictions: torch.Tensor, where: str) -> torch.Tensor:
    """The labels that a loss needs. To be called where tensors are fake."""
    if not predictions.dtype.is_floating_point:
        raise InputError(f"{where}: a loss needs predictions that are floating-point numbers, not {predictions.dtype}")
    if objective.added in (MSE, BCE):
        return torch.empty_like(predictions, requires_grad=False)
    axis = class_axis(objective, predictions.dim())
    if predictions.dim() < 2 or not -predictions.dim() <= axis < predictions.dim():
        raise InputError(f"{where}: predictions of shape {tuple(predictions.shape)} have no axis {axis} of classes; set --class-axis")
    sizes = [size for place, size in enumerate(predictions.shape) if place != axis % predictions.dim()]
    return torch.empty(sizes, dtype=torch.int64, device=predictions.device)


def label_input() -> InputSpec:
    return InputSpec("user", LABELS)
