"""The activation functions of recurrent cells. The slope of each follows from its output, so that inputs need not be kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ..build.gradient_context import GradientContext
from ..proto.attributes import find


@dataclass(frozen=True, slots=True)
class Activation:
    """One function with its parameters."""

    kind: _Kind
    alpha: float
    beta: float

    def apply(self, context: GradientContext, value: str) -> str:
        return self.kind.apply(context, value, self.alpha, self.beta)

    def slope(self, context: GradientContext, output: str) -> str:
        """The derivative, computed from the output."""
        return self.kind.slope(context, output, self.alpha, self.beta)


_Function = Callable[[GradientContext, str, float, float], str]


@dataclass(frozen=True, slots=True)
class _Kind:
    apply: _Function
    slope: _Function
    alpha: float | None = None
    """The default, for functions that have this parameter."""
    beta: float | None = None


def cell_activations(context: GradientContext, defaults: Sequence[str], directions: int) -> list[list[Activation]]:
    """The functions of each direction. Parameters are consumed in order by the functions that have them."""
    attribute = find(context.node, "activations")
    names = [text.decode("utf-8", "replace") for text in attribute.strings] if attribute is not None else [*defaults] * directions
    if len(names) != len(defaults) * directions:
        raise context.refusal(f"it has {len(names)} activation functions instead of {len(defaults) * directions}")
    alphas, betas = (_floats(context, name) for name in ("activation_alpha", "activation_beta"))
    made: list[Activation] = []
    for name in names:
        kind = _KINDS.get(name.lower())
        if kind is None:
            raise context.refusal(f"its activation function {name} has no gradient; {', '.join(_NAMES)} have one")
        alpha = 0.0 if kind.alpha is None else alphas.pop(0) if alphas else kind.alpha
        beta = 0.0 if kind.beta is None else betas.pop(0) if betas else kind.beta
        made.append(Activation(kind, alpha, beta))
    return [made[start : start + len(defaults)] for start in range(0, len(made), len(defaults))]


def _floats(context: GradientContext, name: str) -> list[float]:
    attribute = find(context.node, name)
    return [] if attribute is None else list(attribute.floats)


def one_minus(context: GradientContext, value: str) -> str:
    return context.add("Sub", context.scalar(1.0, value), value)


def _standard(operator: str) -> _Function:
    return lambda context, value, alpha, beta: context.add(operator, value)


def _where_positive(context: GradientContext, output: str) -> str:
    return context.as_float(context.add("Greater", output, context.scalar(0.0, output)), output)


def _times(context: GradientContext, value: str, factor: float) -> str:
    return value if factor == 1.0 else context.add("Mul", value, context.scalar(factor, value))


def _plus(context: GradientContext, value: str, term: float) -> str:
    return value if term == 0.0 else context.add("Add", value, context.scalar(term, value))


def _affine_slope(context: GradientContext, output: str, alpha: float, beta: float) -> str:
    return context.builder.expand(context.scalar(alpha, output), context.shape(output), output)


def _elu_slope(context: GradientContext, output: str, alpha: float, beta: float) -> str:
    """1 above 0, and the output plus alpha below."""
    above = context.add("Greater", output, context.scalar(0.0, output))
    return context.add("Where", above, context.scalar(1.0, output), _plus(context, output, alpha))


def _hard_sigmoid_slope(context: GradientContext, output: str, alpha: float, beta: float) -> str:
    below_one = context.as_float(context.add("Less", output, context.scalar(1.0, output)), output)
    return _times(context, context.add("Mul", _where_positive(context, output), below_one), alpha)


def _leaky_slope(context: GradientContext, output: str, alpha: float, beta: float) -> str:
    """alpha below 0, 1 above."""
    return _plus(context, _times(context, _where_positive(context, output), 1.0 - alpha), alpha)


def _scaled_tanh(context: GradientContext, value: str, alpha: float, beta: float) -> str:
    return _times(context, context.add("Tanh", _times(context, value, beta)), alpha)


def _scaled_tanh_slope(context: GradientContext, output: str, alpha: float, beta: float) -> str:
    scaled = _times(context, output, 1.0 / alpha) if alpha else output
    return _times(context, one_minus(context, context.add("Mul", scaled, scaled)), alpha * beta)


def _softsign_slope(context: GradientContext, output: str, alpha: float, beta: float) -> str:
    rest = one_minus(context, context.add("Abs", output))
    return context.add("Mul", rest, rest)


_KINDS: Mapping[str, _Kind] = {
    "affine": _Kind(lambda context, value, alpha, beta: _plus(context, _times(context, value, alpha), beta), _affine_slope, 1.0, 0.0),
    "elu": _Kind(lambda context, value, alpha, beta: context.add("Elu", value, alpha=alpha), _elu_slope, 1.0),
    "hardsigmoid": _Kind(
        lambda context, value, alpha, beta: context.add("HardSigmoid", value, alpha=alpha, beta=beta), _hard_sigmoid_slope, 0.2, 0.5
    ),
    "leakyrelu": _Kind(lambda context, value, alpha, beta: context.add("LeakyRelu", value, alpha=alpha), _leaky_slope, 0.01),
    "relu": _Kind(_standard("Relu"), lambda context, output, alpha, beta: _where_positive(context, output)),
    "scaledtanh": _Kind(_scaled_tanh, _scaled_tanh_slope, 1.0, 1.0),
    "sigmoid": _Kind(_standard("Sigmoid"), lambda context, output, alpha, beta: context.add("Mul", output, one_minus(context, output))),
    "softplus": _Kind(
        _standard("Softplus"), lambda context, output, alpha, beta: one_minus(context, context.add("Exp", context.add("Neg", output)))
    ),
    "softsign": _Kind(_standard("Softsign"), _softsign_slope),
    "tanh": _Kind(_standard("Tanh"), lambda context, output, alpha, beta: one_minus(context, context.add("Mul", output, output))),
}
_NAMES = ("Affine", "Elu", "HardSigmoid", "LeakyRelu", "Relu", "ScaledTanh", "Sigmoid", "Softplus", "Softsign", "Tanh")
