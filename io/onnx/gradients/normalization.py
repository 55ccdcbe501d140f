"""Normalizations, and Dropout."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..build.gradient_context import GradientContext, Gradients
from ..proto.elements import DOUBLE


def batch_normalization(context: GradientContext) -> Gradients:
    if context.attribute_int("training_mode", 0):
        return _batch_normalization_in_training(context)
    x, scale, _, mean, variance = context.inputs
    dy, inverse = context.gradient, _inverse_deviation(context, variance)
    axes = [axis for axis in range(context.rank(x)) if axis != 1]

    def by_scale() -> str:
        total = context.builder.sum_over(context.add("Mul", dy, _minus(context, x, mean)), axes)
        return context.add("Mul", total, inverse)

    return context.each(
        lambda: context.add("Mul", dy, _per_channel(context, context.add("Mul", scale, inverse), x)),
        by_scale,
        lambda: context.builder.sum_over(dy, axes),
    )


def _batch_normalization_in_training(context: GradientContext) -> Gradients:
    """With the mean and variance of the batch, which are outputs 2 and 3 because momentum is 0.

    dx = a (dy - mean(dy)) + b (x - mean) per channel, with a = scale / deviation and b = -a / deviation^2 * mean(dy (x - mean)).
    """
    x, scale = context.inputs[:2]
    dy, builder = context.gradient, context.builder
    if context.attribute_float("momentum", 0.9) != 0 or len(context.outputs) < 3:
        raise context.refusal("in training mode it must output the mean and variance of the batch: set momentum to 0 and use three outputs")
    mean, variance = context.outputs[1:3]
    axes = [axis for axis in range(context.rank(x)) if axis != 1]
    inverse = _inverse_deviation(context, variance)
    centred = _minus(context, x, mean)
    slope = builder.sum_over(context.add("Mul", dy, centred), axes)
    total = builder.sum_over(dy, axes)
    made: list[str | None] = [None, None, None]
    if context.wants(1):
        made[1] = context.add("Mul", slope, inverse)
    if context.wants(2):
        made[2] = total
    if context.wants(0):
        count = builder.count(context.shape(x), axes, dy)
        a = context.add("Mul", scale, inverse)
        b = context.add("Mul", context.add("Mul", a, context.add("Mul", inverse, inverse)), context.add("Div", slope, count))
        level = _minus(context, dy, context.add("Div", total, count))
        straight = context.add("Mul", level, _per_channel(context, a, x))
        made[0] = context.add("Sub", straight, context.add("Mul", centred, _per_channel(context, b, x)))
    return made


def _inverse_deviation(context: GradientContext, variance: str) -> str:
    padded = context.add("Add", variance, context.scalar(context.attribute_float("epsilon", 1e-5), variance))
    return context.add("Reciprocal", context.add("Sqrt", padded))


def _per_channel(context: GradientContext, value: str, like: str) -> str:
    return context.builder.reshape(value, (context.shape(value)[0], *[1] * (context.rank(like) - 2)))


def _minus(context: GradientContext, value: str, channels: str) -> str:
    return context.add("Sub", value, _per_channel(context, channels, value))


def layer_normalization(context: GradientContext) -> Gradients:
    """From its outputs mean and inverse deviation, which are float32; for float64 they are recomputed, to keep precision."""
    x = context.inputs[0]
    axis = context.axis(-1)
    axes = list(range(axis, context.rank(x)))
    if context.element(x) == DOUBLE:
        return _normalized(context, axes, *_moments(context, x, axes))
    mean, inverse = context.extra_output(1), context.extra_output(2)
    element = context.element(x)
    return _normalized(context, axes, context.builder.cast(mean, element), context.builder.cast(inverse, element))


def _moments(context: GradientContext, x: str, axes: Sequence[int]) -> tuple[str, str]:
    """Mean and inverse deviation along some axes."""
    mean = context.add("ReduceMean", x, context.integers(axes))
    centred = context.add("Sub", x, mean)
    variance = context.add("ReduceMean", context.add("Mul", centred, centred), context.integers(axes))
    return mean, _inverse_deviation(context, variance)


def _normalized(context: GradientContext, axes: Sequence[int], mean: str, inverse: str) -> Gradients:
    """The gradient for normal = (x - mean) * inverse, y = normal * scale + shift."""
    x, scale = context.inputs[:2]
    dy = context.gradient
    normal = context.add("Mul", context.add("Sub", x, mean), inverse)

    def by_data() -> str:
        return _by_normal(context, context.add("Mul", dy, scale), normal, inverse, axes)

    return context.each(
        by_data,
        lambda: context.sum_to(context.add("Mul", dy, normal), 1),
        *([lambda: context.sum_to(dy, 2)] if context.has_input(2) else []),
    )


def _by_normal(context: GradientContext, g: str, normal: str, inverse: str, axes: Sequence[int]) -> str:
    """inverse * (g - mean(g) - normal * mean(g * normal))."""
    over = context.integers(axes)
    level = context.add("Sub", g, context.add("ReduceMean", g, over))
    slope = context.add("ReduceMean", context.add("Mul", g, normal), over)
    return context.add("Mul", context.add("Sub", level, context.add("Mul", normal, slope)), inverse)


def instance_normalization(context: GradientContext) -> Gradients:
    """Per example and channel, with a scale and shift per channel."""
    x, scale = context.inputs[:2]
    dy, builder = context.gradient, context.builder
    axes = list(range(2, context.rank(x)))
    mean, inverse = _moments(context, x, axes)
    normal = context.add("Mul", context.add("Sub", x, mean), inverse)
    others = [0, *axes]
    return context.each(
        lambda: _by_normal(context, context.add("Mul", dy, _per_channel(context, scale, x)), normal, inverse, axes),
        lambda: builder.sum_over(context.add("Mul", dy, normal), others),
        lambda: builder.sum_over(dy, others),
    )


def dropout(context: GradientContext) -> Gradients:
    """Uses the mask of the forward pass."""
    dy = context.gradient
    training = context.known(2, "training mode") if context.has_input(2) else np.asarray(False)
    if not training.reshape(-1)[0]:
        return [dy]
    mask = context.as_float(context.extra_output(1), dy)

    def scaled() -> str:
        if not context.has_input(1):
            return context.scalar(2.0, dy)
        ratio = context.numbers(context.inputs[1])
        if ratio is not None:
            return context.scalar(1 / (1 - float(ratio.reshape(-1)[0])), dy)
        kept = context.add("Sub", context.scalar(1.0, dy), context.builder.cast(context.inputs[1], context.element(dy)))
        return context.add("Reciprocal", kept)

    maker: Callable[[], str] = lambda: context.add("Mul", context.add("Mul", dy, mask), scaled())  # noqa: E731
    return context.only_first(maker)
