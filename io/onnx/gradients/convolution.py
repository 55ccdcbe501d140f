"""Convolutions. The gradient for data is a convolution; for weights, one matrix product per tap of small kernels, or one convolution."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import prod

from ..build.gradient_context import GradientContext, Gradients
from .windows import Window, window_of

_MOST_TAPS = 9
"""Up to 3 x 3, one product per tap is as fast as torch; for larger kernels, one convolution with the gradient as its kernel is faster."""


def conv(context: GradientContext) -> Gradients:
    x, weight = context.inputs[:2]
    dy, group = context.gradient, context.attribute_int("group", 1)
    window = window_of(context, context.sizes(weight)[2:], context.shape(x)[2:], context.shape(dy)[2:])
    return context.each(
        lambda: _by_data(context, dy, weight, window, group),
        lambda: _by_weight(context, x, dy, weight, window, group),
        *([lambda: _by_bias(context, dy)] if context.has_input(2) else []),
    )


def conv_transpose(context: GradientContext) -> Gradients:
    """ConvTranspose is the gradient of a convolution, so its gradients are those of a convolution with input and output exchanged."""
    x, weight = context.inputs[:2]
    dy, group = context.gradient, context.attribute_int("group", 1)
    window = _transposed_window(context, x, weight, dy)

    def by_data() -> str:
        return context.add(
            "Conv",
            dy,
            weight,
            strides=window.strides,
            dilations=window.dilations,
            pads=window.pads,
            group=group,
            kernel_shape=window.kernel,
        )

    return context.each(
        by_data,
        lambda: _by_weight(context, dy, x, weight, window, group),
        *([lambda: _by_bias(context, dy)] if context.has_input(2) else []),
    )


def _transposed_window(context: GradientContext, x: str, weight: str, dy: str) -> Window:
    """With `output_shape` the padding follows from the sizes."""
    large, small = context.shape(dy)[2:], context.shape(x)[2:]
    kernel = context.sizes(weight)[2:]
    if context.attribute_ints("output_shape") is None:
        return window_of(context, kernel, large, small)
    plain = window_of(context, kernel, large, small)
    extra = context.attribute_ints("output_padding") or [0] * len(kernel)
    totals = [
        plain.strides[axis] * (context.fixed(small[axis], x) - 1) + extra[axis] + plain.reach[axis] + 1 - context.fixed(large[axis], dy)
        for axis in range(len(kernel))
    ]
    less, more = tuple(total // 2 for total in totals), tuple(total - total // 2 for total in totals)
    begins, ends = (less, more) if context.attribute_text("auto_pad", "NOTSET") == "SAME_UPPER" else (more, less)
    return Window(plain.kernel, plain.strides, plain.dilations, begins, ends)


def _by_bias(context: GradientContext, dy: str) -> str:
    return context.builder.sum_over(dy, [axis for axis in range(context.rank(dy)) if axis != 1])


def _by_data(context: GradientContext, dy: str, weight: str, window: Window, group: int) -> str:
    inner = all(begin <= reach and end <= reach for begin, end, reach in zip(window.begins, window.ends, window.reach, strict=True))
    if inner and all(stride == 1 for stride in window.strides):
        return _by_data_with_flipped_weight(context, dy, weight, window, group)
    x = context.inputs[0]
    rest = []
    for axis, stride in enumerate(window.strides):
        full = 0
        if stride > 1:
            stops, length = context.size(dy, axis + 2), context.size(x, axis + 2)
            full = length + window.begins[axis] + window.ends[axis] - ((stops - 1) * stride + window.reach[axis] + 1)
        rest.append(full)
    return context.add(
        "ConvTranspose",
        dy,
        weight,
        strides=window.strides,
        dilations=window.dilations,
        pads=window.pads,
        output_padding=rest,
        group=group,
        kernel_shape=window.kernel,
    )


def _by_data_with_flipped_weight(context: GradientContext, dy: str, weight: str, window: Window, group: int) -> str:
    """At stride 1, a convolution with flipped weights, which is faster than ConvTranspose."""
    builder = context.builder
    outputs, inputs = context.sizes(weight)[:2]
    turned = weight
    long = [axis for axis, size in enumerate(window.kernel) if size > 1]
    if long:
        everything = [-(2**63) + 1] * len(long)
        turned = builder.slice(turned, [-1] * len(long), everything, [axis + 2 for axis in long], [-1] * len(long))
    count = len(window.kernel)
    if group == 1:
        turned = builder.transpose(turned, [1, 0, *range(2, 2 + count)])
    else:
        grouped = builder.reshape(turned, (group, outputs // group, inputs, *window.kernel))
        swapped = builder.transpose(grouped, [0, 2, 1, *range(3, 3 + count)])
        turned = builder.reshape(swapped, (group * inputs, outputs // group, *window.kernel))
    pads = [reach - pad for reach, pad in zip(window.reach * 2, window.pads, strict=True)]
    return context.add("Conv", dy, turned, dilations=window.dilations, pads=pads, group=group, kernel_shape=window.kernel)


def _by_weight(context: GradientContext, x: str, dy: str, weight: str, window: Window, group: int) -> str:
    """The window slides over `x`; `dy` has one element per position of the window."""
    if group == 1 and prod(window.kernel) > _MOST_TAPS:
        return _as_convolution(context, x, dy, window)
    return _tap_by_tap(context, x, dy, weight, window, group)


def _as_convolution(context: GradientContext, x: str, dy: str, window: Window) -> str:
    """A convolution with batch and channels exchanged and `dy` as the kernel; strides and dilations are exchanged too."""
    builder, count = context.builder, len(window.kernel)
    swap = [1, 0, *range(2, 2 + count)]
    found = context.add(
        "Conv",
        builder.transpose(x, swap),
        builder.transpose(dy, swap),
        strides=window.dilations,
        dilations=window.strides,
        pads=window.pads,
    )
    axes = [axis for axis, size in enumerate(window.kernel) if context.shape(found)[axis + 2] != size]
    if axes:
        found = builder.slice(found, [0] * len(axes), [window.kernel[axis] for axis in axes], [axis + 2 for axis in axes])
    return builder.transpose(found, swap)


def _tap_by_tap(context: GradientContext, x: str, dy: str, weight: str, window: Window, group: int) -> str:
    """For every tap, the product of its inputs and the gradient."""
    inputs, outputs = context.size(x, 1) // group, context.size(dy, 1) // group
    stops = context.sizes_of(dy, 2)
    if group == 1 and inputs * outputs > (inputs + outputs) * prod(stops):
        return _in_one_product(context, x, dy, weight, window)
    builder = context.builder
    rows = _grouped(context, dy, outputs, group, prod(stops))
    rank = context.rank(rows)
    if inputs > 1 or group == 1:
        rows = builder.transpose(rows, [*range(rank - 2), rank - 1, rank - 2])
    taps = []
    for seen in _seen(context, x, stops, window):
        found = _product(context, _grouped(context, seen, inputs, group, prod(stops)), rows, inputs)
        taps.append(builder.add("Unsqueeze", found, builder.integers([rank - 1])))
    joined = context.add("Concat", *taps, axis=-1) if len(taps) > 1 else taps[0]
    return builder.reshape(builder.transpose(joined, [*range(rank - 3), rank - 2, rank - 3, rank - 1]), context.shape(weight))


def _seen(context: GradientContext, x: str, stops: Sequence[int], window: Window) -> Iterator[str]:
    """The inputs of each tap of the kernel, in the order of the weights."""
    builder, count = context.builder, len(window.kernel)
    padded = builder.pad(x, [0, 0, *window.begins, 0, 0, *window.ends])
    for tap in product(*map(range, window.kernel)):
        starts = [place * dilation for place, dilation in zip(tap, window.dilations, strict=True)]
        ends = [start + (stop - 1) * stride + 1 for start, stop, stride in zip(starts, stops, window.strides, strict=True)]
        if any(start or end != size for start, end, size in zip(starts, ends, context.sizes_of(padded, 2), strict=True)):
            yield builder.slice(padded, starts, ends, list(range(2, 2 + count)), list(window.strides))
        else:
            yield padded


def _in_one_product(context: GradientContext, x: str, dy: str, weight: str, window: Window) -> str:
    """If the weights are larger than the data: channels first, batch and positions as one axis, so that nothing is summed afterwards."""
    builder, count = context.builder, len(window.kernel)
    swap = [1, 0, *range(2, 2 + count)]
    stops = context.sizes_of(dy, 2)
    rows = _flat(context, builder.transpose(dy, swap))
    taps = []
    for seen in _seen(context, builder.transpose(x, swap), stops, window):
        found = context.add("Gemm", rows, _flat(context, seen), transB=1)
        taps.append(builder.add("Unsqueeze", found, builder.integers([2])))
    joined = context.add("Concat", *taps, axis=-1) if len(taps) > 1 else taps[0]
    return builder.reshape(joined, context.shape(weight))


def _flat(context: GradientContext, value: str) -> str:
    return context.add("Reshape", value, context.integers([context.size(value, 0), -1]))


def _grouped(context: GradientContext, value: str, channels: int, group: int, places: int) -> str:
    batch = context.shape(value)[0]
    return context.builder.reshape(value, (batch, group, channels, places) if group > 1 else (batch, channels, places))


def _product(context: GradientContext, seen: str, rows: str, inputs: int) -> str:
    """Summed over batch and positions: one row per input channel, one column per output channel."""
    builder = context.builder
    if inputs == 1 and context.rank(rows) == 4:
        total = builder.sum_over(context.add("Mul", rows, seen), [0, 3])
        return builder.add("Unsqueeze", total, builder.integers([1]))
    return builder.sum_over(context.add("MatMul", seen, rows), [0])
