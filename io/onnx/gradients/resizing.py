"""Resize: along each axis a product with a constant matrix, and so is its gradient."""

from __future__ import annotations

import numpy as np

from ..build.gradient_context import GradientContext, Gradients
from ..proto.stored import Array
from .matrices import along_axis


def resize(context: GradientContext) -> Gradients:
    x, gradient = context.inputs[0], context.gradient
    if context.attribute_int("antialias", 0):
        raise context.refusal("antialias=1 is not supported")
    given = context.attribute_ints("axes")
    rank = context.rank(x)
    axes = [axis % rank for axis in given] if given else list(range(rank))
    scales = list(context.known(2, "list of scales")) if context.has_input(2) and context.shape(context.inputs[2]) != (0,) else None
    for position, axis in enumerate(axes):
        before, after = context.shape(x)[axis], context.shape(context.outputs[0])[axis]
        if before == after and (scales is None or float(scales[position]) == 1):
            continue
        length, size = context.fixed(before, x), context.fixed(after, context.outputs[0])
        scale = float(scales[position]) if scales is not None else size / length
        gradient = along_axis(context, gradient, axis, _weights(context, length, size, scale))
    return context.only_first(lambda: gradient)


def _weights(context: GradientContext, length: int, size: int, scale: float) -> Array:
    """One row per output position, one column per input position."""
    places = _origins(context, length, size, scale)
    mode = context.attribute_text("mode", "nearest")
    match mode:
        case "nearest":
            picked = _rounded(places, context.attribute_text("nearest_mode", "round_prefer_floor"))
            return _matrix(length, [(picked, np.ones(size))])
        case "linear":
            low = np.floor(places)
            return _matrix(length, [(low, 1 - (places - low)), (low + 1, places - low)])
        case "cubic":
            return _cubic(context, places, length)
    raise context.refusal(f"mode {mode!r} is not supported")


def _origins(context: GradientContext, length: int, size: int, scale: float) -> Array:
    """The input coordinate of each output position."""
    after = np.arange(size, dtype=np.float64)
    mode = context.attribute_text("coordinate_transformation_mode", "half_pixel")
    match mode:
        case "half_pixel":
            return (after + 0.5) / scale - 0.5
        case "half_pixel_symmetric":
            adjustment = size / (scale * length)
            return length / 2 * (1 - adjustment) + (after + 0.5) / scale - 0.5
        case "pytorch_half_pixel":
            return (after + 0.5) / scale - 0.5 if size > 1 else np.zeros(size)
        case "asymmetric":
            return after / scale
        case "align_corners":
            return after * (length - 1) / (size - 1) if size > 1 else np.zeros(size)
    raise context.refusal(f"coordinate_transformation_mode {mode!r} is not supported")


def _rounded(places: Array, mode: str) -> Array:
    match mode:
        case "floor":
            return np.floor(places)
        case "ceil":
            return np.ceil(places)
        case "round_prefer_ceil":
            return np.floor(places + 0.5)
    return np.ceil(places - 0.5)


def _cubic(context: GradientContext, places: Array, length: int) -> Array:
    a = context.attribute_float("cubic_coeff_a", -0.75)
    low = np.floor(places)
    parts = []
    for offset in (-1, 0, 1, 2):
        distance = np.abs(places - (low + offset))
        near = ((a + 2) * distance - (a + 3)) * distance**2 + 1
        far = ((distance - 5) * distance + 8) * distance * a - 4 * a
        parts.append((low + offset, np.where(distance <= 1, near, far)))
    if not context.attribute_int("exclude_outside", 0):
        return _matrix(length, parts)
    inside = [(where, np.where((where >= 0) & (where < length), weight, 0)) for where, weight in parts]
    total = np.sum([weight for _, weight in inside], axis=0)
    return _matrix(length, [(where, weight / total) for where, weight in inside])


def _matrix(length: int, parts: list[tuple[Array, Array]]) -> Array:
    """Positions beyond the border are moved to the border."""
    matrix = np.zeros((len(parts[0][0]), length))
    for where, weight in parts:
        np.add.at(matrix, (np.arange(len(where)), np.clip(where, 0, length - 1).astype(np.int64)), weight)
    return matrix
