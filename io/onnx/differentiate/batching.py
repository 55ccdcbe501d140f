"""Give a model whose batch is a fixed number another one.

Files exported at batch 1 say so in the inputs and in the constants their Reshapes use. Where such a constant no longer fits what flows
into it, its first entry is the batch: it becomes the new one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import GraphProto, NodeProto, TensorProto, ValueInfoProto, numpy_helper

from ....core.errors import InputError
from ..files import plain_domain
from ..tensor_types import dimensions_of, is_settled, tensor_of


def rebatch(
    graph: GraphProto, inputs: Sequence[ValueInfoProto], nodes: Sequence[NodeProto], initializers: dict[str, TensorProto], size: int | None
) -> bool:
    """Change the batch if every dimension of the inputs is a number; False if there is a free one, which `bind` settles."""
    if size is None or any(not is_settled(dimension) for value in inputs for dimension in dimensions_of(value.type)):
        return False
    batched = [value for value in inputs if (tensor := tensor_of(value.type)) is not None and tensor.shape.dim]
    if not batched:
        raise InputError(f"--batch-size {size}: the model has no input with dimensions")
    old = batched[0].type.tensor_type.shape.dim[0].dim_value
    for value in batched:
        first = value.type.tensor_type.shape.dim[0]
        if first.dim_value == old:
            first.dim_value = size
    if size != old:
        _rewrite_reshapes(nodes, initializers, old, size)
    return True


def _rewrite_reshapes(nodes: Sequence[NodeProto], initializers: dict[str, TensorProto], old: int, size: int) -> None:
    """Targets of Reshape that begin with the old batch and leave nothing to be inferred. A weight's own shape is left alone."""
    stored = set(initializers)
    weights = stored | {node.output[0] for node in nodes if node.op_type in ("Constant", "ConstantOfShape") and node.output}
    for node in nodes:
        if node.op_type != "Reshape" or plain_domain(node.domain) or len(node.input) < 2 or node.input[0] in weights:
            continue
        target = initializers.get(node.input[1])
        if target is None or not target.dims:
            continue
        numbers = numpy_helper.to_array(target).copy()
        if numbers.size and numbers[0] == old:
            numbers[0] = size if -1 in numbers else -1
            changed = numpy_helper.from_array(np.asarray(numbers, np.int64), target.name)
            initializers[target.name] = changed
