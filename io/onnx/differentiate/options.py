"""What to differentiate and how, and what came out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
from onnx import ModelProto, TensorProto, helper

from ..elements import tensor_bytes
from ..stored import Array, array_of


@dataclass(frozen=True, slots=True)
class TrainingOptions:
    """Everything a user can choose about a training graph."""

    loss: str | None = "cross-entropy"
    """One of `choices.LOSSES`; None if `loss_output` names an output that is the loss already."""
    loss_output: str | None = None
    output: str | None = None
    """The output the loss looks at; the first if not said."""
    class_axis: int | None = None
    """Of cross-entropy: where the classes lie. By default 1, and the last axis of three (language models) or where a final Softmax says."""
    train: tuple[str, ...] = ()
    """Patterns of the parameters to train; none means all that look like weights."""
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
    """Of the first Dropout; the others count on from there."""
    model_outputs: bool = False
    """Give the model's own outputs too."""
    gradient_outputs: bool = True
    """Give the gradients; with an optimizer one may do without."""
    dims: Mapping[str, int] = field(default_factory=dict)
    batch_size: int | None = None


class Role(StrEnum):
    """What a parameter is for."""

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
    """As in the file; None if one number fills it."""
    fill: float = 0.0

    @property
    def bytes(self) -> int:
        return tensor_bytes(self.element, self.shape) or 0

    def array(self) -> Array:
        """Its values. Only for data inside the file: load external data first."""
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
    """Input -> the output to feed back into it next time: parameters, running statistics, state of the optimizer."""
    state: Mapping[str, Array] = field(default_factory=dict)
    """Further inputs of the optimizer, with what they begin with."""
    without_gradient: Mapping[str, str] = field(default_factory=dict)
    """Parameters that look like weights and have no gradient -> why."""
    forward_nodes: int = 0
    """How many of the model's nodes make the loss; the rest is the backward pass and the update."""
