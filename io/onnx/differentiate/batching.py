"""Change the batch size of a model in which it is a fixed number.

Models exported with batch 1 have it in their inputs and in the constant shapes of Reshapes. In a constant shape that starts with the old
batch size, the first axis becomes -1, so that Reshape computes it, unless another axis is already -1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from onnx import NodeProto, TensorProto, ValueInfoProto, numpy_helper

from ....core.errors import InputError
from ..build.sampling import Shape
from ..proto.attributes import find
from ..proto.model_file import plain_domain
from ..proto.stored import Array, array_of
from ..proto.tensor_types import dimensions_of, is_settled, tensor_of


def is_fixed(inputs: Sequence[ValueInfoProto]) -> bool:
    """True if every dimension of the inputs is a number."""
    return all(is_settled(dimension) for value in inputs for dimension in dimensions_of(value.type))


def rebatch(
    inputs: Sequence[ValueInfoProto],
    nodes: Sequence[NodeProto],
    initializers: dict[str, TensorProto],
    size: int,
    shapes: Callable[[], Mapping[str, Shape]],
) -> None:
    """Change inputs, nodes and initializers in place. `shapes` returns the shapes at the old batch size, if they are needed."""
    batched = [value for value in inputs if (tensor := tensor_of(value.type)) is not None and tensor.shape.dim]
    if not batched:
        raise InputError(f"--batch-size {size}: the model has no input with dimensions")
    old = batched[0].type.tensor_type.shape.dim[0].dim_value
    if size != old:
        _rewrite_reshapes(_Targets(nodes, initializers), _flowing(inputs, nodes), old, size, shapes)
        for value in batched:
            first = value.type.tensor_type.shape.dim[0]
            if first.dim_value == old:
                first.dim_value = size


class _Targets:
    """The constants that are shapes: initializers and Constant nodes."""

    def __init__(self, nodes: Sequence[NodeProto], initializers: dict[str, TensorProto]) -> None:
        self.nodes = nodes
        self._initializers = initializers
        self._constants = {node.output[0]: node for node in nodes if node.op_type == "Constant" and not plain_domain(node.domain)}

    def read(self, name: str) -> Array | None:
        value = find(self._constants[name], "value") if name in self._constants else None
        tensor = self._initializers.get(name) if value is None else value.t
        if tensor is None or len(tensor.dims) != 1 or tensor.data_location == TensorProto.EXTERNAL:
            return None
        return array_of(tensor)

    def write(self, name: str, numbers: Array) -> None:
        value = find(self._constants[name], "value") if name in self._constants else None
        if value is None:
            self._initializers[name] = numpy_helper.from_array(numbers, name)
        else:
            value.t.CopyFrom(numpy_helper.from_array(numbers, value.t.name))


def _flowing(inputs: Sequence[ValueInfoProto], nodes: Sequence[NodeProto]) -> set[str]:
    """All tensors that are computed from the inputs, except shapes."""
    found = {value.name for value in inputs}
    for node in nodes:
        if node.op_type not in ("Shape", "Size") and not found.isdisjoint(node.input):
            found.update(node.output)
    return found


def _rewrite_reshapes(targets: _Targets, flowing: set[str], old: int, size: int, shapes: Callable[[], Mapping[str, Shape]]) -> None:
    known: Mapping[str, Shape] | None = None
    for node in targets.nodes:
        if node.op_type != "Reshape" or plain_domain(node.domain) or len(node.input) < 2 or node.input[0] not in flowing:
            continue
        numbers = targets.read(node.input[1])
        if numbers is None or not numbers.size or numbers[0] != old:
            continue
        if -1 in numbers:
            known = shapes() if known is None else known
            if known[node.input[0]][:1] != (old,):
                continue
        changed = numbers.astype(np.int64)
        changed[0] = size if -1 in numbers else -1
        targets.write(node.input[1], changed)
