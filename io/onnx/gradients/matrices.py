"""Products with constant matrices along one axis: gradients of operators that are linear along an axis."""

from __future__ import annotations

import numpy as np
from onnx import helper

from ..build.gradient_context import GradientContext
from ..proto.stored import Array


def along_axis(context: GradientContext, value: str, axis: int, matrix: Array) -> str:
    """Multiply the row vectors along an axis by the matrix: the axis has size `rows` before and `columns` after."""
    if matrix.shape[0] == matrix.shape[1] and np.array_equal(matrix, np.eye(matrix.shape[0])):
        return value
    dtype = helper.tensor_dtype_to_np_dtype(context.element(value))
    rank = context.rank(value)
    if axis == rank - 2:
        return context.add("MatMul", context.builder.array(np.ascontiguousarray(matrix.T).astype(dtype), "matrix"), value)
    constant = context.builder.array(matrix.astype(dtype), "matrix")
    if axis == rank - 1:
        return context.add("MatMul", value, constant)
    order = [*(other for other in range(rank) if other != axis), axis]
    product = context.add("MatMul", context.builder.transpose(value, order), constant)
    return context.builder.transpose(product, [int(place) for place in np.argsort(order)])
