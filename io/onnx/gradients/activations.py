"""Activations. Gradients are computed from their outputs where possible, so that their inputs can be freed or overwritten."""

from __future__ import annotations

from math import pi, sqrt

from ..build.gradient_context import GradientContext, Gradients

SELU_ALPHA = 1.67326319217681884765625
SELU_GAMMA = 1.05070102214813232421875


def _times(context: GradientContext, slope: str) -> Gradients:
    return [context.add("Mul", context.gradient, slope)]


def _one_minus(context: GradientContext, value: str) -> str:
    return context.add("Sub", context.scalar(1.0, value), value)


def _positive(context: GradientContext, value: str) -> str:
    """1 where a value is above 0, else 0. Faster than Where, which needs twice its output as workspace."""
    return context.as_float(context.add("Greater", value, context.scalar(0.0, value)), value)


def _between(context: GradientContext, value: str, low: str, high: str) -> str:
    inside = context.add("And", context.add("Greater", value, low), context.add("Less", value, high))
    return context.as_float(inside, value)


def relu(context: GradientContext) -> Gradients:
    return _times(context, _positive(context, context.outputs[0]))


def leaky_relu(context: GradientContext) -> Gradients:
    """The slope is 1 where x is above 0, else alpha: alpha + (1 - alpha) * [x > 0]."""
    x, alpha = context.inputs[0], context.attribute_float("alpha", 0.01)
    rise = context.add("Mul", _positive(context, x), context.scalar(1 - alpha, x))
    return _times(context, context.add("Add", rise, context.scalar(alpha, x)))


def prelu(context: GradientContext) -> Gradients:
    x, slope = context.inputs
    dy = context.gradient
    above = _positive(context, x)

    def of_slope() -> str:
        below = context.add("Mul", x, _one_minus(context, above))
        return context.sum_to(context.add("Mul", dy, below), 1)

    def of_data() -> str:
        rise = context.add("Mul", above, _one_minus(context, slope))
        return context.sum_to(context.add("Mul", dy, context.add("Add", rise, slope)), 0)

    return context.each(of_data, of_slope)


def elu(context: GradientContext) -> Gradients:
    """Above 0 the slope is 1, below it is y + alpha."""
    return _times(context, _exponential_slope(context, context.attribute_float("alpha", 1.0), 1.0))


def selu(context: GradientContext) -> Gradients:
    gamma = context.attribute_float("gamma", SELU_GAMMA)
    return _times(context, _exponential_slope(context, context.attribute_float("alpha", SELU_ALPHA) * gamma, gamma))


def _exponential_slope(context: GradientContext, alpha: float, above: float) -> str:
    x, y = context.inputs[0], context.outputs[0]
    positive = _positive(context, x)
    below = context.add("Mul", context.add("Add", y, context.scalar(alpha, y)), _one_minus(context, positive))
    return context.add("Add", below, context.add("Mul", positive, context.scalar(above, y)))


def sigmoid(context: GradientContext) -> Gradients:
    y = context.outputs[0]
    return _times(context, context.add("Mul", y, _one_minus(context, y)))


def tanh(context: GradientContext) -> Gradients:
    y = context.outputs[0]
    return _times(context, _one_minus(context, context.add("Mul", y, y)))


def softplus(context: GradientContext) -> Gradients:
    return _times(context, context.add("Sigmoid", context.inputs[0]))


def softsign(context: GradientContext) -> Gradients:
    x = context.inputs[0]
    width = context.add("Add", context.add("Abs", x), context.scalar(1.0, x))
    return [context.add("Div", context.gradient, context.add("Mul", width, width))]


def hard_sigmoid(context: GradientContext) -> Gradients:
    y, alpha = context.outputs[0], context.attribute_float("alpha", 0.2)
    inside = _between(context, y, context.scalar(0.0, y), context.scalar(1.0, y))
    return _times(context, context.add("Mul", inside, context.scalar(alpha, y)))


def hard_swish(context: GradientContext) -> Gradients:
    """0 below -3, 1 above 3, x / 3 + 1 / 2 between."""
    x = context.inputs[0]
    inside = _between(context, x, context.scalar(-3.0, x), context.scalar(3.0, x))
    above = context.as_float(context.add("GreaterOrEqual", x, context.scalar(3.0, x)), x)
    ramp = context.add("Add", context.add("Mul", x, context.scalar(1 / 3, x)), context.scalar(0.5, x))
    return _times(context, context.add("Add", context.add("Mul", ramp, inside), above))


def thresholded_relu(context: GradientContext) -> Gradients:
    x = context.inputs[0]
    alpha = context.scalar(context.attribute_float("alpha", 1.0), x)
    return _times(context, context.as_float(context.add("Greater", x, alpha), x))


def clip(context: GradientContext) -> Gradients:
    """The slope is 1 between the bounds and on them, as in torch. The bounds are treated as constants."""
    x, dy = context.inputs[0], context.gradient
    inside = []
    if context.has_input(1):
        inside.append(context.add("GreaterOrEqual", x, context.inputs[1]))
    if context.has_input(2):
        inside.append(context.add("LessOrEqual", x, context.inputs[2]))
    if not inside:
        return [dy]
    both = inside[0] if len(inside) == 1 else context.add("And", *inside)
    return context.only_first(lambda: context.add("Mul", dy, context.as_float(both, dy)))


def erf(context: GradientContext) -> Gradients:
    x = context.inputs[0]
    bell = context.add("Exp", context.add("Neg", context.add("Mul", x, x)))
    return _times(context, context.add("Mul", bell, context.scalar(2 / sqrt(pi), x)))


def gelu(context: GradientContext) -> Gradients:
    x = context.inputs[0]
    if context.attribute_text("approximate", "none") == "tanh":
        return _times(context, _tanh_gelu_slope(context, x))
    half = context.scalar(0.5, x)
    area = context.add("Erf", context.add("Mul", x, context.scalar(sqrt(0.5), x)))
    area = context.add("Add", context.add("Mul", area, half), half)
    bell = context.add("Exp", context.add("Mul", context.add("Mul", x, x), context.scalar(-0.5, x)))
    bell = context.add("Mul", context.add("Mul", bell, x), context.scalar(1 / sqrt(2 * pi), x))
    return _times(context, context.add("Add", area, bell))


def _tanh_gelu_slope(context: GradientContext, x: str) -> str:
    """y = x/2 (1 + t) with t = tanh(u), u = k (x + c x^3): y' = (1 + t)/2 + x/2 (1 - t^2) u'."""
    k, c = sqrt(2 / pi), 0.044715
    square = context.add("Mul", x, x)
    curve = context.add("Add", context.add("Mul", square, context.scalar(k * c, x)), context.scalar(k, x))
    t = context.add("Tanh", context.add("Mul", x, curve))
    steep = context.add("Add", context.add("Mul", square, context.scalar(3 * k * c, x)), context.scalar(k, x))
    bend = context.add("Mul", context.add("Mul", _one_minus(context, context.add("Mul", t, t)), steep), x)
    total = context.add("Add", context.add("Add", bend, t), context.scalar(1.0, x))
    return context.add("Mul", total, context.scalar(0.5, x))


def swish(context: GradientContext) -> Gradients:
    """y = x s(ax): y' = s + a y (1 - s)."""
    x, y, alpha = context.inputs[0], context.outputs[0], context.attribute_float("alpha", 1.0)
    s = context.add("Sigmoid", context.add("Mul", x, context.scalar(alpha, x)))
    rest = context.add("Mul", context.add("Mul", y, context.scalar(alpha, x)), _one_minus(context, s))
    return _times(context, context.add("Add", s, rest))


def mish(context: GradientContext) -> Gradients:
    """y = x t with t = tanh(softplus(x)): y' = t + x (1 - t^2) s."""
    x = context.inputs[0]
    t = context.add("Tanh", context.add("Softplus", x))
    slope = context.add("Mul", _one_minus(context, context.add("Mul", t, t)), context.add("Sigmoid", x))
    return _times(context, context.add("Add", t, context.add("Mul", x, slope)))


def softmax(context: GradientContext) -> Gradients:
    """y (dy - sum(dy y))."""
    y, dy, axis = context.outputs[0], context.gradient, context.axis(-1)
    weighted = context.add("Mul", dy, y)
    total = context.builder.sum_over(weighted, [axis], keepdims=True)
    return [context.add("Sub", weighted, context.add("Mul", y, total))]


def log_softmax(context: GradientContext) -> Gradients:
    """dy - exp(y) sum(dy)."""
    y, dy, axis = context.outputs[0], context.gradient, context.axis(-1)
    total = context.builder.sum_over(dy, [axis], keepdims=True)
    return [context.add("Sub", dy, context.add("Mul", context.add("Exp", y), total))]
