"""Elementwise arithmetic with broadcasting."""

from __future__ import annotations

from functools import partial

from ..build.gradient_context import GradientContext, Gradients


def identity(context: GradientContext) -> Gradients:
    return [context.gradient]


def add(context: GradientContext) -> Gradients:
    return context.each(lambda: context.sum_to(context.gradient, 0), lambda: context.sum_to(context.gradient, 1))


def sub(context: GradientContext) -> Gradients:
    return context.each(lambda: context.sum_to(context.gradient, 0), lambda: context.add("Neg", context.sum_to(context.gradient, 1)))


def mul(context: GradientContext) -> Gradients:
    a, b = context.inputs
    if a == b:
        double = context.add("Add", a, a)
        return [context.add("Mul", context.gradient, double)]
    return context.each(
        lambda: context.sum_to(context.add("Mul", context.gradient, b), 0),
        lambda: context.sum_to(context.add("Mul", context.gradient, a), 1),
    )


def div(context: GradientContext) -> Gradients:
    _, b = context.inputs

    def divisor() -> str:
        share = context.add("Mul", context.gradient, context.add("Div", context.outputs[0], b))
        return context.add("Neg", context.sum_to(share, 1))

    return context.each(lambda: context.sum_to(context.add("Div", context.gradient, b), 0), divisor)


def sum_(context: GradientContext) -> Gradients:
    return context.each(*(partial(context.sum_to, context.gradient, index) for index in range(len(context.inputs))))


def mean(context: GradientContext) -> Gradients:
    share = context.add("Mul", context.gradient, context.scalar(1 / len(context.inputs), context.gradient))
    return sum_(context.replace_gradient(share))


def extremum(context: GradientContext) -> Gradients:
    """Max and Min: the gradient is split equally among all inputs that are equal to the result."""
    y, dy = context.outputs[0], context.gradient
    if len(context.inputs) == 1:
        return [dy]
    reached = [context.as_float(context.add("Equal", name, y), dy) for name in context.inputs]
    ties = reached[0]
    for other in reached[1:]:
        ties = context.add("Add", ties, other)
    share = context.add("Div", dy, ties)
    return context.each(*(partial(_masked, context, share, mask, index) for index, mask in enumerate(reached)))


def _masked(context: GradientContext, share: str, mask: str, index: int) -> str:
    return context.sum_to(context.add("Mul", share, mask), index)


def where(context: GradientContext) -> Gradients:
    condition, dy = context.inputs[0], context.gradient

    def chosen(index: int) -> str:
        truth = condition if index == 1 else context.add("Not", condition)
        return context.sum_to(context.add("Mul", dy, context.as_float(truth, dy)), index)

    return context.each(context.never, lambda: chosen(1), lambda: chosen(2))


def neg(context: GradientContext) -> Gradients:
    return [context.add("Neg", context.gradient)]


def absolute(context: GradientContext) -> Gradients:
    return [context.add("Mul", context.gradient, context.add("Sign", context.inputs[0]))]


def exp(context: GradientContext) -> Gradients:
    return [context.add("Mul", context.gradient, context.outputs[0])]


def log(context: GradientContext) -> Gradients:
    return [context.add("Div", context.gradient, context.inputs[0])]


def sqrt(context: GradientContext) -> Gradients:
    half = context.add("Mul", context.gradient, context.scalar(0.5, context.gradient))
    return [context.add("Div", half, context.outputs[0])]


def reciprocal(context: GradientContext) -> Gradients:
    y = context.outputs[0]
    return [context.add("Neg", context.add("Mul", context.gradient, context.add("Mul", y, y)))]


def sin(context: GradientContext) -> Gradients:
    return [context.add("Mul", context.gradient, context.add("Cos", context.inputs[0]))]


def cos(context: GradientContext) -> Gradients:
    return [context.add("Neg", context.add("Mul", context.gradient, context.add("Sin", context.inputs[0])))]


def power(context: GradientContext) -> Gradients:
    """x^p: p x^(p-1) for the base, x^p log x for the exponent. The exponent may be of another type than the base."""
    x, p = context.inputs
    y, dy = context.outputs[0], context.gradient

    def base() -> str:
        known = context.numbers(p)
        if known is not None and known.size == 1:
            exponent = float(known.reshape(-1)[0])
            slope = context.scalar(exponent, x)
            if exponent == 2:
                slope = context.add("Mul", x, slope)
            elif exponent != 1:
                slope = context.add("Mul", context.add("Pow", x, context.scalar(exponent - 1, x)), slope)
        else:
            exponent_ = context.builder.cast(p, context.element(x))
            less = context.add("Sub", exponent_, context.scalar(1.0, x))
            slope = context.add("Mul", context.add("Pow", x, less), exponent_)
        return context.sum_to(context.add("Mul", dy, slope), 0)

    def exponent() -> str:
        """If the base is 0, the power does not depend on the exponent."""
        safe = context.add("Where", context.add("Greater", x, context.scalar(0.0, x)), x, context.scalar(1.0, x))
        slope = context.add("Mul", y, context.add("Log", safe))
        return context.sum_to(context.builder.cast(context.add("Mul", dy, slope), context.element(p)), 1)

    return context.each(base, exponent)
