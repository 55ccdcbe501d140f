"""The workspace of operators in onnxruntime: formulas for its CPU kernels, found by measurement.

`session.collect_node_memory_stats_to_file` of onnxruntime 1.31 reports these figures, and `checkmate profile` measures them for a model.
Operators without a formula are assumed to need no workspace, which is true for MatMul, reductions, normalizations and element-wise
operators.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ..proto import attributes
from ..proto.tensor_types import Shape
from .work import Call

_CONV_SEGMENT = 64 * 1024
"""Bytes that a convolution needs for each thread."""
_CONV_THREADS, _CONV_WORK_PER_THREAD, _CONV_COLUMNS = 16, 64 * 1024, 16
"""A convolution of one image uses at most so many threads; each gets so many multiplications, and a multiple of so many positions."""
_FIRST_OPSET_OF_ANY_AXIS = 13


@dataclass(frozen=True, slots=True)
class Runtime:
    """What the workspace depends on besides the shapes."""

    element: int
    """Bytes of one element of the output."""
    opset: int
    threads: int
    """Threads of the session."""


Formula = Callable[[Call, Runtime], int]
"""A function of a node with shapes that returns bytes."""


def _where(call: Call, runtime: Runtime) -> int:
    """Both branches are computed completely and then merged."""
    return 2 * call.made * runtime.element


def _softmax(call: Call, runtime: Runtime) -> int:
    """Along any axis except the last, input and output are transposed."""
    axis = attributes.integer(call.node, "axis", -1)
    if runtime.opset < _FIRST_OPSET_OF_ANY_AXIS or axis in (-1, len(call.input(0)) - 1):
        return 0
    return 2 * call.made * runtime.element


def _variadic(call: Call, runtime: Runtime) -> int:
    """Two inputs at a time; each intermediate result is made while the previous one is still in memory."""
    return min(2, max(0, len(call.inputs) - 2)) * call.made * runtime.element


def _conv(call: Call, runtime: Runtime) -> int:
    """Patches of the input are laid out as a matrix: at once where the image is small, else segment by segment in each thread."""
    image, weight, made = call.input(0), call.input(1), call.outputs[0]
    if made is None or 0 in made:
        return 0
    groups = max(1, attributes.integer(call.node, "group", 1))
    positions, patch, filters = math.prod(made[2:]), math.prod(weight[1:]), weight[0] // groups
    if _needs_no_patches(call, image, weight):
        return 0
    if filters > positions:
        return positions * patch * runtime.element
    parts = image[0] * groups
    threads = min(runtime.threads, parts) if parts > 1 else _conv_threads(filters * positions * patch, positions, runtime.threads)
    return threads * _CONV_SEGMENT


def _needs_no_patches(call: Call, image: Shape, weight: Shape) -> bool:
    """With steps of 1 and no padding: kernels of one point and, in images of one channel, kernels of the whole width or height."""
    if set(attributes.integers(call.node, "strides") or (1,)) != {1} or _is_padded(call, weight):
        return False
    kernel, sizes = weight[2:], image[2:]
    if math.prod(kernel) == 1:
        return True
    if weight[1] != 1 or len(kernel) > 2 or set(attributes.integers(call.node, "dilations") or (1,)) != {1}:
        return False
    return kernel[-1] == sizes[-1] or (kernel[-1] == 1 and (len(kernel) == 1 or kernel[0] == sizes[0]))


def _is_padded(call: Call, weight: Shape) -> bool:
    automatic = attributes.text(call.node, "auto_pad", "NOTSET")
    if automatic != "NOTSET":
        return automatic != "VALID" and math.prod(weight[2:]) > 1
    return any(attributes.integers(call.node, "pads") or ())


def _conv_threads(work: int, positions: int, threads: int) -> int:
    """How many threads share the convolution of one image (`MlasConvPrepare`)."""
    chosen = min(work // _CONV_WORK_PER_THREAD + 1, _CONV_THREADS, threads)
    stride = -(-positions // chosen)
    stride = -(-stride // _CONV_COLUMNS) * _CONV_COLUMNS
    if stride >= positions:
        return 1
    return chosen - (stride * (chosen - 1) >= positions)


def _conv_transpose(call: Call, runtime: Runtime) -> int:
    """All patches of one image as a matrix."""
    return math.prod(call.input(1)[1:]) * math.prod(call.input(0)[2:]) * runtime.element


def _batch_normalization(call: Call, runtime: Runtime) -> int:
    """In training mode, mean and variance of the batch."""
    training = attributes.integer(call.node, "training_mode", 0) == 1
    return 2 * call.input(0)[1] * runtime.element if training else 0


def _attention(call: Call, runtime: Runtime) -> int:
    """The scores."""
    query, key = call.input(0), call.input(1)
    if len(query) != 4:
        raise LookupError
    return math.prod(query[:3]) * key[2] * runtime.element


FORMULAS: Mapping[str, Formula] = {
    "Attention": _attention,
    "BatchNormalization": _batch_normalization,
    "Conv": _conv,
    "ConvTranspose": _conv_transpose,
    "LogSoftmax": _softmax,
    "Softmax": _softmax,
    "Where": _where,
    **dict.fromkeys(("Max", "Mean", "Min", "Sum"), _variadic),
}


def workspace_bytes(kind: str, call: Call, runtime: Runtime) -> int:
    """Bytes needed only while the node runs; 0 if unknown."""
    formula = FORMULAS.get(kind)
    if formula is None:
        return 0
    try:
        return formula(call, runtime)
    except (LookupError, ValueError, ArithmeticError, StopIteration):
        return 0
