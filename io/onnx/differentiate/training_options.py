"""The options and the result of `differentiate`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
from onnx import ModelProto, TensorProto, helper

from ..proto.elements import tensor_bytes
from ..proto.stored import Array, array_of


@dataclass(frozen=True, slots=True)
class TrainingOptions:
    """Everything a user can choose about a training graph."""

    loss: str | None = "cross-entropy"
    """One of `choices.LOSSES`; None if `loss_output` names an output that is already the loss."""
    loss_output: str | None = None
    output: str | None = None
    """The output to compute the loss from; by default the first."""
    class_axis: int | None = None
    """The axis of the classes, for cross-entropy. By default that of a final Softmax, else the last of three (language models), else 1."""
    train: tuple[str, ...] = ()
    """Patterns of the parameters to train; if empty, all that look like weights."""
    freeze: tuple[str, ...] = ()
    optimizer: str = "none"
    weight_decay: float = 0.0
    momentum: float = 0.0
    """Of sgd."""
    betas: tuple[float, float] = (0.9, 0.999)
    """Of adamw."""
    epsilon: float = 1e-8
    """Of adamw."""
    keep_initializers: bool = False
    """Parameters stay in the model instead of becoming inputs."""
    batch_norm: str = "train"
    dropout: str = "train"
    seed: int = 0
    """The seed of the first Dropout; the others count up from it."""
    model_outputs: bool = False
    """Also output the model's own outputs."""
    gradient_outputs: bool = True
    """Output the gradients; with an optimizer they may be omitted."""
    dims: Mapping[str, int] = field(default_factory=dict)
    batch_size: int | None = None


class Role(StrEnum):
    """The role of a parameter."""

    TRAINED = "trained"
    FROZEN = "frozen"
    STATISTIC = "statistic"


@dataclass(frozen=True, slots=True)
class Parameter:
    """A tensor that a training loop owns: a weight or a running statistic."""

    name: str
    role: Role
    element: int
    shape: tuple[int, ...]
    stored: TensorProto | None
    """The tensor in the file; None if the parameter is filled with one number."""
    fill: float = 0.0

    @property
    def bytes(self) -> int:
        return tensor_bytes(self.element, self.shape) or 0

    def array(self) -> Array:
        """Its values. External data must be loaded first."""
        if self.stored is not None:
            return array_of(self.stored)
        return np.full(self.shape, self.fill, helper.tensor_dtype_to_np_dtype(self.element))


@dataclass(frozen=True, slots=True)
class TrainingGraph:
    """A model that computes a loss and its gradients, and what its inputs and outputs are."""

    model: ModelProto
    loss: str
    data_inputs: tuple[str, ...]
    label_input: str | None
    parameters: tuple[Parameter, ...]
    """Trained, frozen and statistics, in file order."""
    gradients: Mapping[str, str]
    """Parameter -> the tensor that holds its gradient."""
    updates: Mapping[str, str]
    """Input -> the output to feed into it in the next step: parameters, running statistics, state of the optimizer."""
    state: Mapping[str, Array] = field(default_factory=dict)
    """Further inputs of the optimizer, with their initial values."""
    without_gradient: Mapping[str, str] = field(default_factory=dict)
    """Parameters that look like weights but have no gradient -> the reason."""
    warnings: tuple[str, ...] = ()
    """What the user should know: the file is not what it was made from."""
    forward_nodes: int = 0
    """How many of the model's nodes make the loss; the rest is the backward pass and the update."""
