"""Sizes that depend on numbers which are known: what Compress selects by a stored condition, and tensors that are empty anyway.

The ordering barriers of compiled models rest on both (see `anchors`).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from onnx import NodeProto, TypeProto

from .attributes import find
from .elements import INT64
from .scope import Scope
from .stored import Array
from .tensor_types import is_settled, shape_of, tensor_of


def solve_selection(node: NodeProto, scope: Scope, type_: TypeProto) -> None:
    """How many elements Compress keeps."""
    if node.op_type != "Compress" or len(node.input) < 2:
        return
    condition = scope.numbers.get(node.input[1])
    tensor = tensor_of(type_)
    if condition is None or tensor is None:
        return
    if not tensor.HasField("shape") and find(node, "axis") is None:
        tensor.shape.dim.add()
    free = [dimension for dimension in tensor.shape.dim if not is_settled(dimension)]
    if len(free) == 1:
        free[0].dim_value = int(np.count_nonzero(condition))


def empty_numbers(types: Mapping[str, TypeProto]) -> dict[str, Array]:
    """Of an empty tensor of whole numbers all numbers are known."""
    shapes = {name: shape_of(type_) for name, type_ in types.items() if type_.tensor_type.elem_type == INT64}
    return {name: np.zeros(shape, np.int64) for name, shape in shapes.items() if shape is not None and 0 in shape}
