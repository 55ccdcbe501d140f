"""Sliding windows of convolutions and pools: strides, dilations and padding as numbers, however the node specifies them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..build.gradient_context import GradientContext
from ..build.sampling import Dim


@dataclass(frozen=True, slots=True)
class Window:
    """One number per spatial axis."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    begins: tuple[int, ...]
    ends: tuple[int, ...]

    @property
    def pads(self) -> list[int]:
        return [*self.begins, *self.ends]

    @property
    def reach(self) -> tuple[int, ...]:
        """The size of the window, dilation included."""
        return tuple(dilation * (size - 1) for size, dilation in zip(self.kernel, self.dilations, strict=True))


def window_of(context: GradientContext, kernel: Sequence[int], large: Sequence[Dim], small: Sequence[Dim]) -> Window:
    """`large` are the sizes the window slides over, `small` the numbers of its positions; for ConvTranspose these are output and input."""
    count = len(kernel)
    strides = tuple(context.attribute_ints("strides") or [1] * count)
    dilations = tuple(context.attribute_ints("dilations") or [1] * count)
    mode = context.attribute_text("auto_pad", "NOTSET")
    if mode in ("NOTSET", ""):
        pads = list(context.attribute_ints("pads") or [0] * (2 * count))
    elif mode == "VALID":
        pads = [0] * (2 * count)
    else:
        totals = []
        for axis in range(count):
            length, stops = (context.fixed(sizes[axis], context.inputs[0]) for sizes in (large, small))
            totals.append(max((stops - 1) * strides[axis] + dilations[axis] * (kernel[axis] - 1) + 1 - length, 0))
        less, more = [total // 2 for total in totals], [total - total // 2 for total in totals]
        pads = [*less, *more] if mode == "SAME_UPPER" else [*more, *less]
    return Window(tuple(kernel), strides, dilations, tuple(pads[:count]), tuple(pads[count:]))
