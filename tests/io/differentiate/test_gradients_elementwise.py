"""Arithmetic and activations: each against differences, over broadcasting and attributes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from differences import check_node

RANDOM = np.random.default_rng(3)
SHAPES = [((2, 3), (2, 3)), ((2, 3), (3,)), ((3,), (2, 3)), ((2, 1, 3), (4, 1)), ((), (2, 2)), ((2, 3), (1, 1))]


def apart(*shape: int, away: float = 0.3) -> np.ndarray[Any, Any]:
    """Numbers of both signs, none near 0, where some slopes jump."""
    return RANDOM.choice([-1.0, 1.0], shape) * RANDOM.uniform(away, 2.0, shape)


def above(*shape: int) -> np.ndarray[Any, Any]:
    return RANDOM.uniform(0.4, 2.0, shape)


@pytest.mark.parametrize("operator", ["Add", "Sub", "Mul", "Div", "Max", "Min", "Pow", "Sum", "Mean"])
@pytest.mark.parametrize(("first", "second"), SHAPES)
def test_broadcasting_is_undone(operator: str, first: tuple[int, ...], second: tuple[int, ...]) -> None:
    exact = operator != "Mean"
    check_node(operator, [above(*first), above(*second)], exact=exact)


@pytest.mark.parametrize("operator", ["Neg", "Abs", "Exp", "Reciprocal", "Sin", "Cos", "Identity"])
def test_one_argument(operator: str) -> None:
    check_node(operator, [apart(2, 3)])


@pytest.mark.parametrize("operator", ["Log", "Sqrt"])
def test_positive_argument(operator: str) -> None:
    check_node(operator, [above(2, 3)])


@pytest.mark.parametrize("exponent", [1.0, 2.0, 3.0, -1.5])
def test_constant_power(exponent: float) -> None:
    check_node("Pow", [above(2, 3), np.asarray(exponent)], trained=[0])


def test_whole_power_of_another_type() -> None:
    check_node("Pow", [apart(2, 3), np.asarray([2, 3, 1])], trained=[0])


def test_the_same_input_twice() -> None:
    from differences import check_nodes
    from onnx import helper

    for operator in ("Mul", "Add", "Sub", "Div"):
        check_nodes([helper.make_node(operator, ["x", "x"], ["y"])], {"x": above(3)}, ["y"], ["x"])


def test_three_summands_and_ties() -> None:
    check_node("Sum", [apart(2, 3), apart(3), apart(2, 1)])
    check_node("Max", [apart(2, 3), apart(3), apart(2, 1)])


def test_where() -> None:
    check_node("Where", [np.asarray([True, False, True]), apart(2, 3), apart(2, 1)])


@pytest.mark.parametrize(
    ("operator", "attributes"),
    [
        ("Relu", {}),
        ("LeakyRelu", {"alpha": 0.2}),
        ("Elu", {"alpha": 0.7}),
        ("Selu", {}),
        ("Sigmoid", {}),
        ("Tanh", {}),
        ("Softplus", {}),
        ("Softsign", {}),
        ("HardSigmoid", {"alpha": 0.3, "beta": 0.4}),
        ("HardSwish", {}),
        ("ThresholdedRelu", {"alpha": 0.2}),
        ("Gelu", {"approximate": "tanh"}),
        ("Mish", {}),
        ("Softmax", {"axis": 0}),
        ("Softmax", {}),
        ("LogSoftmax", {"axis": 1}),
        ("LogSoftmax", {}),
    ],
)
def test_activation(operator: str, attributes: dict[str, Any]) -> None:
    check_node(operator, [apart(2, 3, 2)], **attributes)


@pytest.mark.parametrize("operator", ["Erf", "Gelu"])
def test_error_function(operator: str) -> None:
    check_node(operator, [apart(2, 3)], exact=False)


def test_hard_swish_beyond_its_ramp() -> None:
    check_node("HardSwish", [np.asarray([-5.0, -2.0, 0.5, 2.5, 4.0])])


@pytest.mark.parametrize("slope", [(2, 3), (3,), (1,), (2, 1)])
def test_prelu(slope: tuple[int, ...]) -> None:
    check_node("PRelu", [apart(2, 3), apart(*slope)])


@pytest.mark.parametrize("bounds", [(None, None), (-0.8, None), (None, 0.9), (-0.8, 0.9)])
def test_clip(bounds: tuple[float | None, float | None]) -> None:
    low, high = (None if bound is None else np.asarray(bound) for bound in bounds)
    check_node("Clip", [apart(3, 3), low, high], trained=[0])
