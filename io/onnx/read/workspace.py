"""The workspace of operators in onnxruntime: formulas for its CPU kernels, found by measurement.

`session.collect_node_memory_stats_to_file` of onnxruntime 1.31 reports these figures, and `checkmate profile` measures them for a model.
Operators without a formula are assumed to need no workspace, which is true for MatMul, reductions, normalizations and element-wise
operators.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from ..proto import attributes
from .work import Call

_CONV_SEGMENT = 64 * 1024
"""Bytes that a convolution needs for each thread; one thread is counted, because the number of threads is not known."""
_FIRST_OPSET_OF_ANY_AXIS = 13

Formula = Callable[[Call, int, int], int]
"""A function of a node with shapes, the bytes of one element and the opset, which returns bytes."""


def _where(call: Call, element: int, opset: int) -> int:
    """Both branches are computed completely and then merged."""
    return 2 * call.made * element


def _softmax(call: Call, element: int, opset: int) -> int:
    """Along any axis except the last, input and output are transposed."""
    axis = attributes.integer(call.node, "axis", -1)
    if opset < _FIRST_OPSET_OF_ANY_AXIS or axis in (-1, len(call.input(0)) - 1):
        return 0
    return 2 * call.made * element


def _variadic(call: Call, element: int, opset: int) -> int:
    """Two inputs at a time; each intermediate result is made while the previous one is still in memory."""
    return min(2, max(0, len(call.inputs) - 2)) * call.made * element


def _conv(call: Call, element: int, opset: int) -> int:
    """Patches of the input are laid out as a matrix, segment by segment, or at once where the image is small."""
    image, weight, made = call.input(0), call.input(1), call.outputs[0]
    strides = attributes.integers(call.node, "strides") or (1,)
    if made is None or (math.prod(weight[2:]) == 1 and set(strides) == {1} and made[2:] == image[2:]):
        return 0
    positions, patch = math.prod(made[2:]), math.prod(weight[1:])
    groups = max(1, attributes.integer(call.node, "group", 1))
    return positions * patch * element if weight[0] // groups > positions else _CONV_SEGMENT


def _conv_transpose(call: Call, element: int, opset: int) -> int:
    """All patches of one image as a matrix."""
    return math.prod(call.input(1)[1:]) * math.prod(call.input(0)[2:]) * element


def _attention(call: Call, element: int, opset: int) -> int:
    """The scores."""
    query, key = call.input(0), call.input(1)
    if len(query) != 4:
        raise LookupError
    return math.prod(query[:3]) * key[2] * element


FORMULAS: Mapping[str, Formula] = {
    "Attention": _attention,
    "Conv": _conv,
    "ConvTranspose": _conv_transpose,
    "LogSoftmax": _softmax,
    "Softmax": _softmax,
    "Where": _where,
    **dict.fromkeys(("Max", "Mean", "Min", "Sum"), _variadic),
}


def workspace_bytes(kind: str, call: Call, element: int, opset: int) -> int:
    """Bytes needed only while the node runs; 0 if unknown."""
    formula = FORMULAS.get(kind)
    if formula is None:
        return 0
    try:
        return formula(call, element, opset)
    except (LookupError, ValueError, ArithmeticError, StopIteration):
        return 0
