"""Einsum: the gradient with respect to one operand is an Einsum of the output's gradient and the other operands."""

from __future__ import annotations

from functools import partial

from ..build.gradient_context import GradientContext, Gradients


def einsum(context: GradientContext) -> Gradients:
    equation = context.attribute_text("equation", "").replace(" ", "")
    if "..." in equation:
        raise context.refusal("an equation with '...' is not supported; write its axes out")
    left, arrow, right = equation.partition("->")
    operands = left.split(",")
    if not arrow:
        letters = "".join(operands)
        right = "".join(sorted(letter for letter in set(letters) if letters.count(letter) == 1))
    if any(len(set(operand)) != len(operand) for operand in operands):
        raise context.refusal(f"the diagonal in {equation!r} is not supported")
    return context.each(*(partial(_by_operand, context, operands, right, index) for index in range(len(operands))))


def _by_operand(context: GradientContext, operands: list[str], result: str, index: int) -> str:
    """Axes that occur only in this operand were summed: the gradient is constant along them."""
    own, name = operands[index], context.inputs[index]
    others = [(letters, value) for place, (letters, value) in enumerate(zip(operands, context.inputs, strict=True)) if place != index]
    elsewhere = set(result).union(*(letters for letters, _ in others))
    found = "".join(letter for letter in own if letter in elsewhere)
    equation = ",".join([result, *(letters for letters, _ in others)]) + "->" + found
    gradient = context.add("Einsum", context.gradient, *(value for _, value in others), equation=equation)
    if found == own:
        return gradient
    shape = tuple(dim if letter in elsewhere else 1 for letter, dim in zip(own, context.shape(name), strict=True))
    return context.builder.expand(context.builder.reshape(gradient, shape), context.shape(name), name)
