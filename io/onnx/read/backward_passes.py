"""The backward pass of training graphs that other programs made, whose names do not say which nodes belong to it.

A graph is taken for one if it has an output that can be a loss, a single floating-point number, and outputs that can be the gradients of at
least half of its parameters: of their shapes, or transposed, and not needed for the loss. What is not needed for the loss is then the
backward pass, together with the update of the parameters, if there is one.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import replace

from onnx import TypeProto

from ....core.model.graph import OperationSpec
from ..proto.elements import DOUBLE, FLOAT, FLOAT16
from ..proto.tensor_types import Shape, shape_of, tensor_of

_FLOATS = frozenset({FLOAT, FLOAT16, DOUBLE, 16})
"""The last one is bfloat16."""


def with_backward_pass(
    specs: list[OperationSpec], inputs: Container[str], outputs: Sequence[str], types: Mapping[str, TypeProto]
) -> list[OperationSpec]:
    """The operations, those of the backward pass marked. Names that say so have priority. Without stored tensors, inputs are parameters."""
    if any(spec.backward for spec in specs):
        return specs
    made = {value.name for spec in specs for value in spec.outputs}
    losses = [name for name in outputs if name in made and _size(types, name) == 1]
    if not losses:
        return specs
    forward = _needed_for(specs, losses[0])
    later = {value.name for spec in specs if spec.name not in forward for value in spec.outputs}
    fixed = [name for name in types if name not in made and _size(types, name) > 1]
    parameters = Counter(_shape(types, name) for name in [name for name in fixed if name not in inputs] or fixed)
    gradients = Counter(_shape(types, name) for name in outputs if name in later and _size(types, name) > 1)
    matched = (gradients & parameters).total()
    if not matched or 2 * matched < parameters.total():
        return specs
    return [spec if spec.name in forward else replace(spec, backward=True) for spec in specs]


def _needed_for(specs: Iterable[OperationSpec], output: str) -> set[str]:
    """The operations that a value depends on. `specs` are in topological order."""
    wanted, found = {output}, set()
    for spec in reversed(list(specs)):
        if any(value.name in wanted for value in spec.outputs):
            found.add(spec.name)
            wanted.update(spec.inputs)
    return found


def _shape(types: Mapping[str, TypeProto], name: str) -> Shape:
    """Sorted, since exporters store weights transposed."""
    return tuple(sorted(shape_of(types[name]) or ()))


def _size(types: Mapping[str, TypeProto], name: str) -> int:
    """The number of elements of a floating-point tensor, else 0."""
    type_ = types.get(name)
    tensor, shape = None if type_ is None else tensor_of(type_), shape_of(type_)
    if tensor is None or shape is None or tensor.elem_type not in _FLOATS:
        return 0
    return math.prod(shape)
