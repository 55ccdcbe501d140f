"""Products, reductions, moving, picking and normalizing against differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from differences import check_node, check_nodes
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper

RANDOM = np.random.default_rng(11)


def normal(*shape: int) -> np.ndarray[Any, Any]:
    return RANDOM.normal(size=shape)


def whole(*values: int) -> np.ndarray[Any, Any]:
    return np.asarray(values, np.int64)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((2, 3), (3, 4)),
        ((5, 2, 3), (3, 4)),
        ((5, 2, 3), (5, 3, 4)),
        ((2, 3), (5, 3, 4)),
        ((2, 1, 2, 3), (4, 3, 2)),
        ((3,), (3, 4)),
        ((2, 3), (3,)),
        ((3,), (3,)),
        ((5, 2, 3), (3,)),
        ((3,), (5, 3, 2)),
    ],
)
def test_matmul(first: tuple[int, ...], second: tuple[int, ...]) -> None:
    check_node("MatMul", [normal(*first), normal(*second)])


@pytest.mark.parametrize("flip_a", [0, 1])
@pytest.mark.parametrize("flip_b", [0, 1])
@pytest.mark.parametrize("bias", [None, (4,), (2, 1), (2, 4), (1,)])
def test_gemm(flip_a: int, flip_b: int, bias: tuple[int, ...] | None) -> None:
    a, b = normal(*((3, 2) if flip_a else (2, 3))), normal(*((4, 3) if flip_b else (3, 4)))
    check_node("Gemm", [a, b, *([] if bias is None else [normal(*bias)])], transA=flip_a, transB=flip_b, alpha=0.7, beta=1.3)


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ij,jk->ik", [(2, 3), (3, 4)]),
        ("bij,bkj->bik", [(2, 3, 4), (2, 5, 4)]),
        ("ij,jk", [(2, 3), (3, 4)]),
        ("ijk->ki", [(2, 3, 4)]),
        ("bhid,bhjd->bhij", [(1, 2, 3, 2), (1, 2, 4, 2)]),
        ("i,j,k->ikj", [(2,), (3,), (2,)]),
    ],
)
def test_einsum(equation: str, shapes: list[tuple[int, ...]]) -> None:
    check_node("Einsum", [normal(*shape) for shape in shapes], equation=equation)


@pytest.mark.parametrize(
    "operator",
    ["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSumExp"],
)
@pytest.mark.parametrize("axes", [None, (1,), (-1, 0), (0, 1, 2)])
@pytest.mark.parametrize("keepdims", [0, 1])
def test_reduction(operator: str, axes: tuple[int, ...] | None, keepdims: int) -> None:
    x = (RANDOM.permutation(12).reshape(2, 3, 2) - 5.5) / 4
    check_node(operator, [x, *([] if axes is None else [whole(*axes)])], trained=[0], keepdims=keepdims)


def test_reduction_over_no_axes_does_nothing() -> None:
    check_node("ReduceSum", [normal(2, 3), whole()], trained=[0], noop_with_empty_axes=1)


def test_reductions_as_opset_13_writes_them() -> None:
    check_node("ReduceMean", [normal(2, 3)], axes=[1], keepdims=0, opset=13)
    check_node("ReduceMax", [RANDOM.permutation(6).reshape(2, 3) / 3], axes=[0], opset=11)


def test_reshaping() -> None:
    check_node("Reshape", [normal(2, 6), whole(3, -1)])
    check_node("Reshape", [normal(2, 6), whole(0, 2, 3)])
    check_node("Flatten", [normal(2, 3, 2)], axis=2)
    check_node("Squeeze", [normal(2, 1, 3, 1), whole(1)])
    check_node("Squeeze", [normal(2, 1, 3, 1)])
    check_node("Unsqueeze", [normal(2, 3), whole(0, -1)])
    check_node("Transpose", [normal(2, 3, 4)])
    check_node("Transpose", [normal(2, 3, 4)], perm=[1, 2, 0])
    check_node("Expand", [normal(2, 1, 3), whole(4, 2, 5, 3)])
    check_node("Tile", [normal(2, 3), whole(2, 3)])
    check_node("Trilu", [normal(3, 3)], upper=0)
    check_node("Concat", [normal(2, 1), normal(2, 3), normal(2, 2)], axis=-1)


def test_split() -> None:
    check_node("Split", [normal(2, 6)], outputs=3, axis=1, num_outputs=3)
    check_node("Split", [normal(2, 6), whole(1, 2, 3)], outputs=3, axis=-1)
    nodes = [helper.make_node("Split", ["x", "sizes"], ["a", "b"], axis=0), helper.make_node("Exp", ["b"], ["y"])]
    check_nodes(nodes, {"x": normal(5), "sizes": whole(2, 3)}, ["y"], ["x"])


@st.composite
def slices(draw: st.DrawFn) -> tuple[list[int], list[list[int]]]:
    sizes = draw(st.lists(st.integers(1, 6), min_size=1, max_size=3))
    axes = draw(st.permutations(range(len(sizes))))[: draw(st.integers(1, len(sizes)))]
    ranges = []
    for axis in axes:
        step = draw(st.sampled_from([1, 2, 3, -1, -2]))
        bound = st.one_of(st.integers(-7, 7), st.sampled_from([2**31 - 1, 2**63 - 1, -(2**31), -(2**63) + 1]))
        ranges.append([draw(bound), draw(bound), axis - draw(st.sampled_from([0, len(sizes)])), step])
    return sizes, ranges


@settings(max_examples=80, deadline=None, derandomize=True)
@given(slices())
def test_slice(case: tuple[list[int], list[list[int]]]) -> None:
    sizes, ranges = case
    x = normal(*sizes)
    picked = x[tuple(_numpy_slice(ranges, axis, len(sizes)) for axis in range(len(sizes)))]
    if picked.size == 0:
        return
    check_node("Slice", [x, *(whole(*column) for column in zip(*ranges, strict=True))], trained=[0])


def _numpy_slice(ranges: list[list[int]], axis: int, rank: int) -> slice:
    for start, end, given_axis, step in ranges:
        if given_axis % rank == axis:
            return slice(start, None if step < 0 and end <= -(2**31) else end, step)
    return slice(None)


@pytest.mark.parametrize("mode", ["constant", "reflect", "edge", "wrap"])
def test_pad(mode: str) -> None:
    check_node("Pad", [normal(3, 4), whole(1, 2, 0, 1)], trained=[0], mode=mode)
    check_node("Pad", [normal(2, 5), whole(0, 3, 1, 4)], trained=[0], mode=mode)
    check_node("Pad", [normal(2, 5), whole(0, 0, 0, 1)], trained=[0], mode=mode)


def test_pad_along_some_axes_and_cutting() -> None:
    check_node("Pad", [normal(2, 3, 4), whole(1, 2), None, whole(-1)], trained=[0])
    check_node("Pad", [normal(4, 5), whole(-1, 1, 0, -2)], trained=[0], exact=False)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_gather(axis: int) -> None:
    check_node("Gather", [normal(3, 4, 3), np.asarray([[0, 2, 2], [-1, 1, 0]])], axis=axis)
    check_node("Gather", [normal(3, 4, 3), np.asarray(-2)], axis=axis)
    check_node("Gather", [normal(3, 4, 3), np.asarray([1])], axis=axis)


def test_gather_and_scatter_elements() -> None:
    places = np.asarray([[0, 1, 1], [2, 0, 0]])
    check_node("GatherElements", [normal(3, 3), places], axis=0)
    check_node("ScatterElements", [normal(3, 3), np.asarray([[0, 1, 2], [2, 0, 1]]), normal(2, 3)], axis=0)
    check_node("ScatterElements", [normal(3, 3), places, normal(2, 3)], axis=0, reduction="add")


def test_gather_and_scatter_nd() -> None:
    check_node("GatherND", [normal(3, 4), np.asarray([[0, 1], [2, 3], [0, 1], [-1, -1]])])
    check_node("GatherND", [normal(3, 4, 2), np.asarray([[[0], [2]], [[2], [1]]])])
    check_node("ScatterND", [normal(4, 3), np.asarray([[0], [2]]), normal(2, 3)])


def test_top_k() -> None:
    check_nodes(
        [helper.make_node("TopK", ["x", "k"], ["values", "places"], axis=1)],
        {"x": RANDOM.permutation(10).reshape(2, 5) / 2, "k": whole(2)},
        ["values"],
        ["x"],
    )


@pytest.mark.parametrize("reverse", [0, 1])
@pytest.mark.parametrize("exclusive", [0, 1])
def test_cumulative_sum(reverse: int, exclusive: int) -> None:
    check_node("CumSum", [normal(2, 4), np.asarray(1)], reverse=reverse, exclusive=exclusive)


@pytest.mark.parametrize("mode", ["train", "eval"])
@pytest.mark.parametrize("shape", [(3, 2, 2, 2), (4, 2), (3, 2, 4)])
def test_batch_normalization(mode: str, shape: tuple[int, ...]) -> None:
    stored = {"x": normal(*shape), "scale": normal(2), "shift": normal(2), "mean": normal(2), "variance": RANDOM.uniform(0.5, 2, 2)}
    node = helper.make_node("BatchNormalization", list(stored), ["y"], epsilon=1e-3)
    check_nodes([node], stored, ["y"], ["x", "scale", "shift"], options={"batch_norm": mode})


@pytest.mark.parametrize("axis", [-1, 1])
@pytest.mark.parametrize("bias", [True, False])
def test_layer_normalization(axis: int, bias: bool) -> None:
    shape = (3, 4)[axis % 3 - 1 :]
    inputs = [normal(2, 3, 4), normal(*shape), *([normal(*shape)] if bias else [])]
    check_node("LayerNormalization", inputs, axis=axis, epsilon=1e-3)
    check_node("LayerNormalization", inputs, axis=axis, epsilon=1e-3, exact=False)


def test_instance_normalization() -> None:
    check_node("InstanceNormalization", [normal(2, 3, 4), normal(3), normal(3)], epsilon=1e-3)


def test_group_normalization_by_its_body() -> None:
    check_node("GroupNormalization", [normal(2, 4, 3), normal(4), normal(4)], num_groups=2, epsilon=1e-3, exact=False)


def test_rms_normalization_by_its_body() -> None:
    check_node("RMSNormalization", [normal(2, 3, 4), normal(4)], opset=23, epsilon=1e-3, exact=False)


@pytest.mark.parametrize(
    ("query", "key", "more", "attributes"),
    [
        ((1, 2, 3, 4), (1, 2, 5, 4), [], {}),
        ((1, 2, 3, 4), (1, 2, 3, 4), [], {"is_causal": 1}),
        ((1, 3, 8), (1, 5, 8), [], {"q_num_heads": 2, "kv_num_heads": 2}),
        ((1, 4, 3, 4), (1, 2, 5, 4), [normal(3, 5)], {}),
        ((1, 2, 3, 4), (1, 2, 5, 4), [np.asarray([[True] * 4 + [False]] * 3)], {"scale": 0.3}),
    ],
)
def test_attention_by_its_body(query: tuple[int, ...], key: tuple[int, ...], more: list[Any], attributes: dict[str, Any]) -> None:
    check_node("Attention", [normal(*query), normal(*key), normal(*key), *more], opset=23, **attributes)


def test_other_operators_by_their_bodies() -> None:
    check_node("Celu", [normal(2, 3)], alpha=0.7, exact=False)
    check_node("Shrink", [normal(2, 3)], lambd=0.1)
    check_node("ReduceLogSum", [RANDOM.uniform(0.5, 2, (2, 3)), whole(1)], trained=[0])
    check_node("GroupNormalization", [normal(2, 4, 3), normal(4), normal(4)], num_groups=2, exact=False)
    check_node("MeanVarianceNormalization", [normal(2, 3, 2, 2)], exact=False)


def test_swish() -> None:
    check_node("Swish", [normal(2, 3)], opset=24, alpha=0.7)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("shape", [(4, 3), (2, 3, 2)])
@pytest.mark.parametrize("operator", ["SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss"])
def test_loss_operators(operator: str, reduction: str, shape: tuple[int, ...]) -> None:
    labels = RANDOM.integers(0, 3, (shape[0], *shape[2:]))
    check_node(operator, [normal(*shape), labels], reduction=reduction)
    check_node(operator, [normal(*shape), labels, RANDOM.uniform(0.5, 2, 3)], trained=[0], reduction=reduction, ignore_index=1)
