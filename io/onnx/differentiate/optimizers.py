"""Parameter updates as further outputs. One step of the optimizer is part of the graph; the training loop feeds the outputs back."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from onnx import ValueInfoProto, helper

from ..build.builder import GraphBuilder
from ..proto.elements import FLOAT
from ..proto.stored import Array
from .training_options import TrainingOptions

LEARNING_RATE = "learning_rate"
STEP = "step"


class Optimizer:
    """Collects the inputs and outputs of the updates. Single numbers are inputs too, so that a learning-rate schedule can change them."""

    def __init__(self, builder: GraphBuilder, options: TrainingOptions) -> None:
        self._builder = builder
        self._options = options
        self.inputs: list[ValueInfoProto] = []
        self.state: dict[str, Array] = {}
        self.updates: dict[str, str] = {}
        self._corrections: tuple[str, str] | None = None
        if options.optimizer != "none":
            self._rate = self._feed(LEARNING_RATE, np.asarray(0.001 if options.optimizer == "adamw" else 0.01, np.float32))

    def update(self, parameter: str, gradient: str) -> None:
        """Add the new value of one parameter, in the parameter's own type; arithmetic is in float32 at least."""
        rule = RULES.get(self._options.optimizer)
        if rule is None:
            return
        builder = self._builder
        builder.prefix = f"update/{parameter}"
        element = builder.tensors.element(parameter)
        wide = element if element not in (10, 16) else FLOAT
        new = rule(self, parameter, builder.cast(parameter, wide), builder.cast(gradient, wide))
        self.updates[parameter] = builder.cast(new, element)

    def sgd(self, name: str, value: str, gradient: str) -> str:
        builder, options = self._builder, self._options
        step = gradient
        if options.weight_decay:
            step = builder.add("Add", step, builder.add("Mul", value, builder.scalar(options.weight_decay, value)))
        if options.momentum:
            speed = self._moment(name, "momentum", value)
            step = builder.add("Add", builder.add("Mul", speed, builder.scalar(options.momentum, value)), step)
            self.updates[speed] = step
        return builder.add("Sub", value, builder.add("Mul", step, self._rate_like(value)))

    def adamw(self, name: str, value: str, gradient: str) -> str:
        builder, options = self._builder, self._options
        first, second = self._moment(name, "first", value), self._moment(name, "second", value)
        new_first = self._mixed(first, gradient, options.betas[0])
        new_second = self._mixed(second, builder.add("Mul", gradient, gradient), options.betas[1])
        self.updates |= {first: new_first, second: new_second}
        bias_first, bias_second = (builder.cast(bias, builder.tensors.element(value)) for bias in self._bias_corrections())
        spread = builder.add("Sqrt", builder.add("Div", new_second, bias_second))
        step = builder.add(
            "Div", builder.add("Div", new_first, bias_first), builder.add("Add", spread, builder.scalar(options.epsilon, value))
        )
        if options.weight_decay:
            step = builder.add("Add", step, builder.add("Mul", value, builder.scalar(options.weight_decay, value)))
        return builder.add("Sub", value, builder.add("Mul", step, self._rate_like(value)))

    def _mixed(self, old: str, new: str, share: float) -> str:
        builder = self._builder
        return builder.add(
            "Add", builder.add("Mul", old, builder.scalar(share, old)), builder.add("Mul", new, builder.scalar(1 - share, new))
        )

    def _bias_corrections(self) -> tuple[str, str]:
        """1 - beta^step, computed once for all parameters."""
        if self._corrections is None:
            builder = self._builder
            prefix, builder.prefix = builder.prefix, "update"
            step = self._feed(STEP, np.asarray(0.0, np.float32))
            new = builder.add("Add", step, builder.scalar(1.0, step))
            self.updates[step] = new
            one = builder.scalar(1.0, step)
            powers = [builder.add("Pow", builder.scalar(beta, step), new) for beta in self._options.betas]
            first, second = (builder.add("Sub", one, power) for power in powers)
            self._corrections = first, second
            builder.prefix = prefix
        return self._corrections

    def _rate_like(self, value: str) -> str:
        return self._builder.cast(self._rate, self._builder.tensors.element(value))

    def _moment(self, name: str, kind: str, like: str) -> str:
        shape = tuple(dim for dim in self._builder.tensors.shape(like) if isinstance(dim, int))
        dtype = helper.tensor_dtype_to_np_dtype(self._builder.tensors.element(like))
        return self._feed(f"state/{name}/{kind}", np.zeros(shape, dtype))

    def _feed(self, name: str, initial: Array) -> str:
        value = helper.make_tensor_value_info(
            self._builder.unused(name), helper.np_dtype_to_tensor_dtype(initial.dtype), list(initial.shape)
        )
        self._builder.tensors.add_inputs([value])
        self.inputs.append(value)
        self.state[value.name] = initial
        return value.name


RULES: Mapping[str, Callable[[Optimizer, str, str, str], str]] = {"sgd": Optimizer.sgd, "adamw": Optimizer.adamw}
"""Optimizer -> its update rule. To add one, write a method and add a line."""
