"""Operators that move elements and do not change them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce

import numpy as np
import numpy.typing as npt

from ..build.gradient_context import GradientContext, Gradients
from ..build.sampling import Dim

_END = np.iinfo(np.int64).max


def reshape(context: GradientContext) -> Gradients:
    """Reshape, Flatten, Squeeze and Unsqueeze."""
    return context.only_first(lambda: context.reshape_like(context.gradient, context.inputs[0]))


def transpose(context: GradientContext) -> Gradients:
    order = context.attribute_ints("perm") or list(reversed(range(context.rank(context.inputs[0]))))
    back = [int(axis) for axis in np.argsort(order)]
    return [context.builder.transpose(context.gradient, back)]


def cast(context: GradientContext) -> Gradients:
    return context.only_first(lambda: context.builder.cast(context.gradient, context.element(context.inputs[0])))


def expand(context: GradientContext) -> Gradients:
    return context.only_first(lambda: context.sum_to(context.gradient, 0))


def tile(context: GradientContext) -> Gradients:
    """Split each axis into repeats and size, and sum over the repeats."""
    x = context.inputs[0]
    repeats = [int(count) for count in context.known(1, "number of repeats")]
    pairs: list[Dim] = []
    for count, dim in zip(repeats, context.shape(x), strict=True):
        pairs += [count, dim]
    spread = context.builder.reshape(context.gradient, tuple(pairs), None)
    return context.only_first(lambda: context.builder.sum_over(spread, range(0, len(pairs), 2)))


def concat(context: GradientContext) -> Gradients:
    axis, dy = context.axis(), context.gradient
    if sum(context.wants(index) for index in range(len(context.inputs))) == 0:
        return []
    made: list[str | None] = []
    start = 0
    for index, name in enumerate(context.inputs):
        end = start + context.size(name, axis)
        made.append(context.builder.slice(dy, [start], [end], [axis]) if context.wants(index) else None)
        start = end
    return made


def split(context: GradientContext) -> Gradients:
    pieces = [context.gradient_of_output(index) for index in range(len(context.outputs))]
    return context.only_first(lambda: context.add("Concat", *pieces, axis=context.axis()))


def slice_(context: GradientContext) -> Gradients:
    """Pad with zeros; reverse if the step is negative, insert zeros between elements if it is not 1."""
    x = context.inputs[0]
    shape = context.shape(x)
    starts, ends = (list(context.known(index, "range").reshape(-1)) for index in (1, 2))
    axes = [int(axis) % len(shape) for axis in context.known(3, "list of axes")] if context.has_input(3) else list(range(len(starts)))
    steps = [int(step) for step in context.known(4, "list of steps")] if context.has_input(4) else [1] * len(starts)
    gradient = context.gradient
    before, after = [0] * len(shape), [0] * len(shape)
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        if step == 1 and isinstance(shape[axis], str) and start == 0 and end >= np.iinfo(np.int32).max:
            continue
        positions = range(*slice(_bound(start, step), _bound(end, step), step).indices(context.size(x, axis)))
        if not positions:
            return context.only_first(lambda: context.zeros_like(x))
        if step < 0:
            gradient = context.builder.slice(gradient, [-1], [-_END], [axis], [-1])
            positions = positions[::-1]
        if abs(step) > 1 and len(positions) > 1:
            gradient = _spread(context, gradient, axis, abs(step))
        before[axis] = positions[0]
        after[axis] = context.size(x, axis) - positions[-1] - 1
    return context.only_first(lambda: context.builder.pad(gradient, [*before, *after]))


def _bound(value: int, step: int) -> int | None:
    """Numbers larger than any size mean the end, also negative ones."""
    number = int(value)
    return None if step < 0 and number <= -(2**31) + 1 else number


def _spread(context: GradientContext, value: str, axis: int, step: int) -> str:
    """Insert `step - 1` zeros between any two elements along an axis."""
    builder, shape = context.builder, context.shape(value)
    size = context.fixed(shape[axis], value)
    apart = builder.add("Unsqueeze", value, builder.integers([axis + 1]))
    ends = [0] * (len(shape) + 1)
    ends[axis + 1] = step - 1
    padded = builder.pad(apart, [0] * len(ends) + ends)
    joined = builder.reshape(padded, (*shape[:axis], size * step, *shape[axis + 1 :]), None)
    return builder.slice(joined, [0], [(size - 1) * step + 1], [axis])


def pad(context: GradientContext) -> Gradients:
    """The inner part; for reflected and repeated borders, the gradient of copied elements is added to their sources."""
    x = context.inputs[0]
    rank = context.rank(x)
    given = [int(count) for count in context.known(1, "padding").reshape(-1)]
    axes = [int(axis) % rank for axis in context.known(3, "list of axes")] if context.has_input(3) else list(range(rank))
    begins, ends = given[: len(axes)], given[len(axes) :]
    mode = context.attribute_text("mode", "constant")
    gradient = context.gradient
    if mode == "constant":
        gradient = _inner(context, gradient, axes, begins, ends)
    else:
        for axis, begin, end in zip(axes, begins, ends, strict=True):
            if begin or end:
                gradient = _folded_back(context, gradient, axis, begin, end, mode)
    return context.only_first(lambda: gradient)


def _inner(context: GradientContext, value: str, axes: Sequence[int], begins: Sequence[int], ends: Sequence[int]) -> str:
    """Remove what was padded, and add zeros for what was cropped."""
    cut = [(axis, begin, end) for axis, begin, end in zip(axes, begins, ends, strict=True) if begin > 0 or end > 0]
    if cut:
        starts = [max(begin, 0) for _, begin, _ in cut]
        stops = [-end if end > 0 else _END for _, _, end in cut]
        value = context.builder.slice(value, starts, stops, [axis for axis, _, _ in cut])
    rank = context.rank(value)
    missing = [0] * (2 * rank)
    for axis, begin, end in zip(axes, begins, ends, strict=True):
        missing[axis], missing[rank + axis] = max(-begin, 0), max(-end, 0)
    return context.builder.pad(value, missing)


def _folded_back(context: GradientContext, value: str, axis: int, begin: int, end: int, mode: str) -> str:
    """Cut the padded axis into runs whose sources are consecutive, in either direction or all the same, and add them up at their sources.

    No matrix: for an axis of a signal it would have billions of elements.
    """
    size = context.size(context.inputs[0], axis)
    places = np.arange(-begin, size + end)
    match mode:
        case "edge":
            origin = np.clip(places, 0, size - 1)
        case "wrap":
            origin = places % size
        case "reflect":
            period = max(2 * (size - 1), 1)
            origin = np.abs((places + (size - 1)) % period - (size - 1)) if size > 1 else np.zeros_like(places)
        case _:
            raise context.refusal(f"padding mode {mode!r} is unknown")
    parts = [_placed(context, value, axis, start, origin[start:stop], size) for start, stop in _runs(origin)]
    return reduce(lambda total, part: context.add("Add", total, part), parts)


def _runs(origin: npt.NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Maximal runs in which each source is next to the one before, always on the same side, or the same."""
    steps = np.diff(origin)
    start = 0
    while start < len(origin):
        stop = start + 1
        while stop < len(origin) and abs(steps[start]) <= 1 and steps[stop - 1] == steps[start]:
            stop += 1
        yield start, stop
        start = stop


def _placed(context: GradientContext, value: str, axis: int, start: int, origin: npt.NDArray[np.int64], size: int) -> str:
    """One run at its sources, zeros elsewhere."""
    builder, stop = context.builder, start + len(origin)
    direction = int(origin[1] - origin[0]) if len(origin) > 1 else 1
    if direction < 0:
        part = builder.slice(value, [stop - 1], [start - 1 if start else -_END], [axis], [-1])
    else:
        part = builder.slice(value, [start], [stop], [axis])
    if not direction:
        part = builder.sum_over(part, [axis], keepdims=True)
    rank = context.rank(value)
    missing = [0] * (2 * rank)
    missing[axis], missing[rank + axis] = int(origin.min()), size - 1 - int(origin.max())
    return builder.pad(part, missing)


def trilu(context: GradientContext) -> Gradients:
    upper = context.attribute_int("upper", 1)
    return context.only_first(lambda: context.add("Trilu", context.gradient, *context.inputs[1:2], upper=upper))


def cum_sum(context: GradientContext) -> Gradients:
    """The cumulative sum from the other end."""
    reverse, exclusive = context.attribute_int("reverse", 0), context.attribute_int("exclusive", 0)
    return context.only_first(lambda: context.add("CumSum", context.gradient, context.inputs[1], reverse=1 - reverse, exclusive=exclusive))


def depth_to_space(context: GradientContext) -> Gradients:
    x, block = context.inputs[0], context.attribute_int("blocksize", 1)
    batch, depth, height, width = context.shape(x)
    if context.attribute_text("mode", "DCR") == "DCR":
        return [context.add("SpaceToDepth", context.gradient, blocksize=block)]
    channels = context.fixed(depth, x) // block**2
    apart = context.builder.reshape(context.gradient, (batch, channels, height, block, width, block), None)
    return [context.reshape_like(context.builder.transpose(apart, [0, 1, 3, 5, 2, 4]), x)]


def space_to_depth(context: GradientContext) -> Gradients:
    return [context.add("DepthToSpace", context.gradient, blocksize=context.attribute_int("blocksize", 1))]
