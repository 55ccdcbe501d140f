"""Sizes that depend on known values: the output of Compress with a stored condition, and empty tensors.

The barriers of compiled models depend on both (see `anchors`).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from onnx import NodeProto, TypeProto

from ..proto.attributes import find
from ..proto.elements import INT64
from ..proto.stored import Array
from ..proto.tensor_types import is_settled, shape_of, tensor_of
from .scope import Scope


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
    """The contents of an empty integer tensor are known."""
    shapes = {name: shape_of(type_) for name, type_ in types.items() if type_.tensor_type.elem_type == INT64}
    return {name: np.zeros(shape, np.int64) for name, shape in shapes.items() if shape is not None and 0 in shape}
