"""Convolutions, pools and resizing against differences, over strides, padding, dilations, groups and rounding."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from differences import check_node
from hypothesis import assume, given, settings
from hypothesis import strategies as st

RANDOM = np.random.default_rng(5)


def normal(*shape: int) -> np.ndarray[Any, Any]:
    return RANDOM.normal(size=shape)


def distinct(*shape: int) -> np.ndarray[Any, Any]:
    """No two numbers near each other, so that a maximum stays where it is."""
    return RANDOM.permutation(int(np.prod(shape))).reshape(shape) * 0.1


@st.composite
def convolutions(draw: st.DrawFn) -> dict[str, Any]:
    axes = draw(st.integers(1, 2))
    several = lambda least, most: tuple(draw(st.integers(least, most)) for _ in range(axes))  # noqa: E731
    group = draw(st.sampled_from([1, 2, 3]))
    return {
        "group": group,
        "channels": group * draw(st.integers(1, 2)),
        "filters": group * draw(st.integers(1, 2)),
        "kernel": several(1, 4 if axes == 2 else 11),
        "strides": several(1, 3),
        "dilations": several(1, 2),
        "begins": several(0, 2),
        "ends": several(0, 2),
        "extra": several(0, 3),
        "bias": draw(st.booleans()),
    }


@settings(max_examples=40, deadline=None, derandomize=True)
@given(convolutions())
def test_convolution(case: dict[str, Any]) -> None:
    reach = [dilation * (kernel - 1) + 1 for kernel, dilation in zip(case["kernel"], case["dilations"], strict=True)]
    sizes = [
        max(length - begin - end, 1) + extra
        for length, begin, end, extra in zip(reach, case["begins"], case["ends"], case["extra"], strict=True)
    ]
    x = normal(2, case["channels"], *sizes)
    weight = normal(case["filters"], case["channels"] // case["group"], *case["kernel"])
    check_node(
        "Conv",
        [x, weight, *([normal(case["filters"])] if case["bias"] else [])],
        strides=case["strides"],
        dilations=case["dilations"],
        pads=[*case["begins"], *case["ends"]],
        group=case["group"],
        exact=case["group"] == 1,
    )


@pytest.mark.parametrize("mode", ["SAME_UPPER", "SAME_LOWER", "VALID"])
def test_convolution_that_pads_itself(mode: str) -> None:
    check_node("Conv", [normal(1, 2, 5, 4), normal(3, 2, 2, 3)], auto_pad=mode, strides=[2, 1])


def test_depthwise_convolution_with_several_filters_each() -> None:
    check_node("Conv", [normal(2, 3, 5, 5), normal(6, 1, 3, 3), normal(6)], group=3, pads=[1, 1, 1, 1], strides=[2, 2], exact=False)


@pytest.mark.parametrize(
    ("x", "weight", "attributes"),
    [
        ((2, 4, 1, 1), (5, 4, 1, 1), {}),
        ((2, 12, 2, 2), (12, 12, 3, 3), {"pads": [1, 1, 1, 1]}),
        ((3, 4, 5), (6, 4, 3), {"strides": [3], "dilations": [2]}),
    ],
)
def test_convolution_with_more_weights_than_places(x: tuple[int, ...], weight: tuple[int, ...], attributes: dict[str, Any]) -> None:
    graph = check_node("Conv", [normal(*x), normal(*weight)], **attributes)
    assert "Gemm" in {node.op_type for node in graph.model.graph.node}


def test_convolution_in_three_dimensions() -> None:
    check_node("Conv", [normal(2, 2, 3, 3, 3), normal(2, 2, 2, 2, 2)], strides=[2, 1, 1], pads=[0, 1, 0, 1, 0, 0])


@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {"strides": [2, 2]},
        {"strides": [2, 2], "output_padding": [1, 1]},
        {"pads": [1, 0, 1, 1]},
        {"strides": [2, 1], "dilations": [1, 2], "pads": [0, 1, 1, 0]},
    ],
)
@pytest.mark.parametrize("kernel", [(2, 2), (3, 4)])
def test_transposed_convolution(attributes: dict[str, Any], kernel: tuple[int, int]) -> None:
    check_node("ConvTranspose", [normal(2, 2, 3, 3), normal(2, 3, *kernel), normal(3)], **attributes)


@st.composite
def pools(draw: st.DrawFn) -> dict[str, Any]:
    several = lambda least, most: [draw(st.integers(least, most)) for _ in range(2)]  # noqa: E731
    kernel = several(1, 3)
    pads = [draw(st.integers(0, size - 1)) for size in kernel] * 2
    return {"kernel_shape": kernel, "strides": several(1, 3), "pads": pads, "ceil_mode": draw(st.integers(0, 1))}


@settings(max_examples=30, deadline=None, derandomize=True)
@given(pools(), st.integers(3, 6), st.integers(3, 6))
def test_max_pool(case: dict[str, Any], height: int, width: int) -> None:
    assume(_windows_begin_inside(case, (height, width)))
    check_node("MaxPool", [distinct(2, 2, height, width)], exact=False, **case)


@settings(max_examples=30, deadline=None, derandomize=True)
@given(pools(), st.integers(3, 6), st.integers(3, 6), st.integers(0, 1))
def test_average_pool(case: dict[str, Any], height: int, width: int, count_include_pad: int) -> None:
    assume(_windows_begin_inside(case, (height, width)))
    assume(not (case["ceil_mode"] and count_include_pad))
    check_node("AveragePool", [normal(2, 2, height, width)], count_include_pad=count_include_pad, **case)


def _windows_begin_inside(case: dict[str, Any], sizes: tuple[int, int]) -> bool:
    """Rounding up may give a window that sees only padding, on which implementations differ."""
    if not case["ceil_mode"]:
        return True
    for axis, size in enumerate(sizes):
        begin, end = case["pads"][axis], case["pads"][axis + 2]
        stops = -(-(size + begin + end - case["kernel_shape"][axis]) // case["strides"][axis]) + 1
        if (stops - 1) * case["strides"][axis] - begin >= size:
            return False
    return True


def test_global_pools() -> None:
    check_node("GlobalAveragePool", [normal(2, 3, 4, 2)])
    check_node("GlobalMaxPool", [distinct(2, 3, 4, 2)])


@pytest.mark.parametrize("size", [1, 3, 5])
def test_local_response_normalization(size: int) -> None:
    check_node("LRN", [normal(2, 4, 2, 3)], exact=False, size=size, alpha=0.3, beta=0.6, bias=1.2)


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("coordinates", ["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"])
@pytest.mark.parametrize("scales", [(2.0, 1.5), (0.5, 1.0)])
def test_resize(mode: str, coordinates: str, scales: tuple[float, float]) -> None:
    given_scales = np.asarray([1, 1, *scales], np.float32)
    check_node("Resize", [normal(1, 2, 4, 4), None, given_scales], trained=[0], mode=mode, coordinate_transformation_mode=coordinates)


@pytest.mark.parametrize("nearest", ["floor", "ceil", "round_prefer_floor", "round_prefer_ceil"])
def test_resize_to_sizes(nearest: str) -> None:
    sizes = np.asarray([1, 2, 3, 7], np.int64)
    check_node("Resize", [normal(1, 2, 4, 4), None, None, sizes], trained=[0], mode="nearest", nearest_mode=nearest)


@pytest.mark.parametrize("mode", ["DCR", "CRD"])
def test_depth_to_space(mode: str) -> None:
    check_node("DepthToSpace", [normal(1, 8, 2, 3)], blocksize=2, mode=mode)


def test_space_to_depth() -> None:
    check_node("SpaceToDepth", [normal(1, 2, 4, 6)], blocksize=2)
