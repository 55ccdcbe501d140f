"""Indexing: the gradient is added at the source of each element with ScatterElements, which handles repeated indices correctly."""

from __future__ import annotations

from math import prod

import numpy as np

from ..build.gradient_context import GradientContext, Gradients


def gather(context: GradientContext) -> Gradients:
    data, indices = context.inputs
    axis, dy, builder = context.axis(), context.gradient, context.builder
    shape = context.shape(data)
    known = context.numbers(indices)
    if known is not None and known.size == 1 and isinstance(shape[axis], int):
        return context.only_first(lambda: _one_place(context, int(known.reshape(-1)[0]), axis))

    def scattered() -> str:
        rows = builder.reshape(dy, (*shape[:axis], _count(context, indices), *shape[axis + 1 :]), None)
        places = [1] * len(shape)
        places[axis] = -1
        picked = context.add("Reshape", indices, builder.integers(places))
        where = context.add("Expand", picked, context.add("Shape", rows))
        return context.add("ScatterElements", context.zeros_like(data), where, rows, axis=axis, reduction="add")

    return context.only_first(scattered)


def _count(context: GradientContext, indices: str) -> int | str:
    dims = context.shape(indices)
    numbers = [dim for dim in dims if isinstance(dim, int)]
    return prod(numbers) if len(numbers) == len(dims) else "*".join(map(str, dims))


def _one_place(context: GradientContext, index: int, axis: int) -> str:
    """One slice is selected: the gradient is zero before and after it."""
    data = context.inputs[0]
    shape, size = context.shape(data), context.size(data, axis)
    kept = context.builder.reshape(context.gradient, (*shape[:axis], 1, *shape[axis + 1 :]), None)
    pads = [0] * (2 * len(shape))
    pads[axis] = index % size
    pads[len(shape) + axis] = size - 1 - index % size
    return context.builder.pad(kept, pads)


def gather_elements(context: GradientContext) -> Gradients:
    data, indices = context.inputs
    return context.only_first(
        lambda: context.add("ScatterElements", context.zeros_like(data), indices, context.gradient, axis=context.axis(), reduction="add")
    )


def gather_nd(context: GradientContext) -> Gradients:
    """Index tuples as positions in the flattened leading axes."""
    data, indices = context.inputs
    builder, dy = context.builder, context.gradient
    if context.attribute_int("batch_dims", 0):
        raise context.refusal("batch_dims other than 0 is not supported")
    depth = context.size(indices, -1)
    front = [context.size(data, axis) for axis in range(depth)]
    rest = context.shape(data)[depth:]

    def scattered() -> str:
        steps = [prod(front[axis + 1 :]) for axis in range(depth)]
        positive = context.add("Mod", indices, builder.array(np.asarray(front, np.int64), "integers"))
        flat = context.add("ReduceSum", context.add("Mul", positive, builder.integers(steps)), builder.integers([-1]), keepdims=0)
        column = context.add("Reshape", flat, builder.integers([-1, 1]))
        rows = context.add("Reshape", dy, builder.integers([-1, prod(context.fixed(dim, data) for dim in rest)]))
        where = context.add("Expand", column, context.add("Shape", rows))
        zeros = builder.zeros((prod(front), prod(context.fixed(dim, data) for dim in rest)), context.element(data))
        total = context.add("ScatterElements", zeros, where, rows, axis=0, reduction="add")
        return context.reshape_like(total, data)

    return context.only_first(scattered)


def scatter_elements(context: GradientContext) -> Gradients:
    """Overwritten elements have zero gradient; written ones have the gradient of their position."""
    _, indices, updates = context.inputs
    dy, axis, reduction = context.gradient, context.axis(), context.attribute_text("reduction", "none")
    if reduction not in ("none", "add"):
        raise context.refusal(f"reduction {reduction!r} is not supported")

    def by_data() -> str:
        return dy if reduction == "add" else context.add("ScatterElements", dy, indices, context.zeros_like(updates), axis=axis)

    return context.each(by_data, context.never, lambda: context.add("GatherElements", dy, indices, axis=axis))


def scatter_nd(context: GradientContext) -> Gradients:
    _, indices, updates = context.inputs
    dy, reduction = context.gradient, context.attribute_text("reduction", "none")
    if reduction not in ("none", "add"):
        raise context.refusal(f"reduction {reduction!r} is not supported")

    def by_data() -> str:
        return dy if reduction == "add" else context.add("ScatterND", dy, indices, context.zeros_like(updates))

    return context.each(by_data, context.never, lambda: context.add("GatherND", dy, indices))


def top_k(context: GradientContext) -> Gradients:
    x = context.inputs[0]
    axis = context.axis(-1)
    return context.only_first(
        lambda: context.add("ScatterElements", context.zeros_like(x), context.outputs[1], context.gradient, axis=axis, reduction="add")
    )
