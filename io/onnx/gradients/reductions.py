"""Reductions: the gradient is broadcast back to the elements."""

from __future__ import annotations

from collections.abc import Sequence

from ..build.gradient_context import GradientContext, Gradients


def _axes(context: GradientContext) -> Sequence[int]:
    rank = context.rank(context.inputs[0])
    if context.has_input(1):
        axes = [int(axis) % rank for axis in context.known(1, "list of axes").reshape(-1)]
        if axes:
            return axes
    return [] if context.attribute_int("noop_with_empty_axes", 0) else list(range(rank))


def _kept(context: GradientContext, value: str, axes: Sequence[int]) -> str:
    """The tensor with the reduced axes as axes of size 1."""
    shape = tuple(1 if axis in axes else dim for axis, dim in enumerate(context.shape(context.inputs[0])))
    return context.builder.reshape(value, shape)


def reduce_sum(context: GradientContext) -> Gradients:
    x, axes = context.inputs[0], _axes(context)
    return context.only_first(lambda: context.builder.expand(_kept(context, context.gradient, axes), context.shape(x), x))


def reduce_mean(context: GradientContext) -> Gradients:
    x, axes, dy = context.inputs[0], _axes(context), context.gradient
    share = context.add("Div", dy, context.builder.count(context.shape(x), axes, dy))
    return reduce_sum(context.replace_gradient(share))


def reduce_extremum(context: GradientContext) -> Gradients:
    """The gradient is split equally among all elements that are equal to the extremum."""
    x, axes, dy = context.inputs[0], _axes(context), context.gradient
    reached = context.as_float(context.add("Equal", x, _kept(context, context.outputs[0], axes)), dy)
    share = context.add("Div", _kept(context, dy, axes), context.builder.sum_over(reached, axes, keepdims=True))
    return context.only_first(lambda: context.add("Mul", reached, share))


def reduce_sum_square(context: GradientContext) -> Gradients:
    x, axes, dy = context.inputs[0], _axes(context), context.gradient
    double = _kept(context, context.add("Mul", dy, context.scalar(2.0, dy)), axes)
    return context.only_first(lambda: context.add("Mul", x, double))


def reduce_log_sum_exp(context: GradientContext) -> Gradients:
    x, axes = context.inputs[0], _axes(context)
    share = context.add("Exp", context.add("Sub", x, _kept(context, context.outputs[0], axes)))
    return context.only_first(lambda: context.add("Mul", share, _kept(context, context.gradient, axes)))


def reduce_l2(context: GradientContext) -> Gradients:
    x, axes = context.inputs[0], _axes(context)
    share = _kept(context, context.add("Div", context.gradient, context.outputs[0]), axes)
    return context.only_first(lambda: context.add("Mul", x, share))
