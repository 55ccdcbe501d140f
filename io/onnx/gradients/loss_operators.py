"""Loss operators. The classes are along axis 1."""

from __future__ import annotations

from ..build.gradient_context import GradientContext, Gradients


def softmax_cross_entropy_loss(context: GradientContext) -> Gradients:
    """Softmax minus one-hot, scaled: computed from the log probabilities, which are added as an output of the node."""
    if len(context.gradients) > 1 and context.gradients[1] is not None:
        raise context.refusal("its log probabilities are used elsewhere too")

    def by_scores() -> str:
        logarithms = context.extra_output(1)
        probabilities = context.add("Exp", logarithms)
        amount = _amounts(context)
        spread = context.add("Mul", probabilities, amount)
        return _scattered(context, spread, amount)

    return context.only_first(by_scores)


def negative_log_likelihood_loss(context: GradientContext) -> Gradients:
    return context.only_first(lambda: _scattered(context, context.zeros_like(context.inputs[0]), _amounts(context)))


def _scattered(context: GradientContext, onto: str, amount: str) -> str:
    """Subtract each example's amount at its label."""
    labels = _column(context, _safe_labels(context))
    return context.add("ScatterElements", onto, labels, context.add("Neg", amount), axis=1, reduction="add")


def _column(context: GradientContext, value: str) -> str:
    return context.add("Unsqueeze", value, context.integers([1]))


def _ignored(context: GradientContext) -> int | None:
    return context.attribute_int("ignore_index", 0) if any(a.name == "ignore_index" for a in context.node.attribute) else None


def _safe_labels(context: GradientContext) -> str:
    """Ignored labels may be outside the classes: their amount is 0, so replace them by any class."""
    labels, ignored = context.inputs[1], _ignored(context)
    if ignored is None:
        return labels
    zero = context.builder.cast(context.builder.integer(0), context.element(labels))
    return context.add("Where", _is_ignored(context), zero, labels)


def _is_ignored(context: GradientContext) -> str:
    labels, ignored = context.inputs[1], _ignored(context)
    assert ignored is not None
    return context.add("Equal", labels, context.builder.cast(context.builder.integer(ignored), context.element(labels)))


def _amounts(context: GradientContext) -> str:
    """The weight of each example in the result times the gradient, with an axis of size 1 for the classes."""
    scores, labels = context.inputs[:2]
    dy, reduction = context.gradient, context.attribute_text("reduction", "mean")
    if context.has_input(2):
        weights = context.add("Gather", context.inputs[2], _safe_labels(context), axis=0)
    else:
        weights = context.builder.expand(context.scalar(1.0, scores), context.shape(labels), labels)
    if _ignored(context) is not None:
        kept = context.as_float(context.add("Not", _is_ignored(context)), scores)
        weights = context.add("Mul", weights, kept)
    if reduction == "mean":
        dy = context.add("Div", dy, context.add("ReduceSum", weights, keepdims=0))
    return _column(context, context.add("Mul", weights, dy))
