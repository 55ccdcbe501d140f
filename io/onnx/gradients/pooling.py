"""Pools."""

from __future__ import annotations

import numpy as np
from onnx import helper

from ..build.gradient_context import GradientContext, Gradients
from ..proto.stored import Array
from .matrices import along_axis
from .windows import Window, window_of


def max_pool(context: GradientContext) -> Gradients:
    """The gradient is added at the position of each maximum. MaxUnpool would be faster, but is wrong if windows overlap."""
    if context.attribute_int("storage_order", 0):
        raise context.refusal("storage_order=1 is not supported; use storage_order=0")
    x, builder = context.inputs[0], context.builder
    indices = context.extra_output(1)
    flat = builder.integers([-1])
    zeros = context.add("Reshape", context.zeros_like(x), flat)
    places, amounts = context.add("Reshape", indices, flat), context.add("Reshape", context.gradient, flat)
    total = context.add("ScatterElements", zeros, places, amounts, axis=0, reduction="add")
    return [context.reshape_like(total, x)]


def average_pool(context: GradientContext) -> Gradients:
    """Averages along one axis after the other are products with small constant matrices, and so are their gradients."""
    x, gradient = context.inputs[0], context.gradient
    kernel = context.attribute_ints("kernel_shape") or ()
    window = window_of(context, kernel, context.shape(x)[2:], context.shape(gradient)[2:])
    for axis in range(len(kernel)):
        length, stops = context.size(x, axis + 2), context.size(context.outputs[0], axis + 2)
        matrix = _shares(window, axis, length, stops, bool(context.attribute_int("count_include_pad", 0)))
        gradient = along_axis(context, gradient, axis + 2, matrix)
    return [gradient]


def _shares(window: Window, axis: int, length: int, stops: int, count_pad: bool) -> Array:
    """The weight of each element in each average."""
    taps = np.arange(window.kernel[axis]) * window.dilations[axis]
    places = np.arange(stops)[:, None] * window.strides[axis] - window.begins[axis] + taps
    inside = (places >= 0) & (places < length)
    counted = places < length + window.ends[axis] if count_pad else inside
    matrix = np.zeros((stops, length))
    rows = np.broadcast_to(np.arange(stops)[:, None], places.shape)
    shares = np.broadcast_to(1 / np.maximum(counted.sum(axis=1, keepdims=True), 1), places.shape)
    np.add.at(matrix, (rows[inside], places[inside]), shares[inside])
    return matrix


def global_average_pool(context: GradientContext) -> Gradients:
    x, dy = context.inputs[0], context.gradient
    share = context.add("Div", dy, context.builder.count(context.shape(x), range(2, context.rank(x)), dy))
    return [context.builder.expand(share, context.shape(x), x)]


def global_max_pool(context: GradientContext) -> Gradients:
    """The gradient is split equally among all elements that are equal to the maximum."""
    x, dy = context.inputs[0], context.gradient
    reached = context.as_float(context.add("Equal", x, context.outputs[0]), dy)
    ties = context.builder.sum_over(reached, range(2, context.rank(x)), keepdims=True)
    return [context.add("Mul", reached, context.add("Div", dy, ties))]


def lrn(context: GradientContext) -> Gradients:
    """y = x s^-beta with s = bias + alpha/size * (sum of x^2 over neighbouring channels), a product with a banded matrix."""
    x, dy = context.inputs[0], context.gradient
    builder, shape = context.builder, context.shape(context.inputs[0])
    size = context.attribute_int("size", 1)
    alpha, beta, bias = (context.attribute_float(name, default) for name, default in (("alpha", 1e-4), ("beta", 0.75), ("bias", 1.0)))
    channels = context.size(x, 1)
    offset = np.arange(channels)[None, :] - np.arange(channels)[:, None]
    near = (offset >= -((size - 1) // 2)) & (offset <= size // 2)
    dtype = helper.tensor_dtype_to_np_dtype(context.element(x))

    def summed(value: str, neighbours: Array) -> str:
        rows = builder.add("Reshape", value, builder.integers([0, 0, -1]))
        return builder.reshape(context.add("MatMul", builder.array(neighbours.astype(dtype), "matrix"), rows), shape, x)

    squares = summed(context.add("Mul", x, x), near)
    scale = context.add("Add", context.add("Mul", squares, context.scalar(alpha / size, x)), context.scalar(bias, x))
    damped = context.add("Mul", dy, context.add("Pow", scale, context.scalar(-beta, x)))
    shared = summed(context.add("Div", context.add("Mul", damped, x), scale), near.T)
    pull = context.add("Mul", context.add("Mul", x, shared), context.scalar(2 * alpha * beta / size, x))
    return [context.add("Sub", damped, pull)]
