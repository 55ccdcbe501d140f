"""The tensors of a graph under construction: element type, shape, and the values of small constants."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from onnx import NodeProto, TensorProto, TypeProto, ValueInfoProto, helper

from ....core.errors import InputError
from ..proto.dimensions import described
from ..proto.elements import DOUBLE, FLOAT, FLOAT16
from ..proto.randomness import Randomness
from ..proto.stored import Array, shape_numbers, stored_bytes
from ..proto.tensor_types import shape_of, tensor_of, tensor_type, type_bytes
from ..read.scope import Model, Scope
from ..read.translate import describe
from .sampling import Samples, Shape

BFLOAT16 = 16
FLOATS = frozenset({FLOAT, FLOAT16, DOUBLE, BFLOAT16})

_LIKE_INPUTS = frozenset({"Add", "Sub", "Mul", "Div", "Neg", "Exp", "Sqrt", "Reciprocal", "Identity"})
"""Operators whose output has the type of their inputs if these are all equal, so that thousands of calls of onnx's inference are saved."""


class Tensors:
    """Types at each sample point, combined into one shape with symbolic sizes."""

    def __init__(self, samples: Samples, opsets: dict[str, int], ir_version: int) -> None:
        self._samples = samples
        self._points = [(Model({}, dims, None, ir_version, Randomness({})), Scope(opsets)) for dims in samples.points]
        self._shapes: dict[str, Shape] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._points[0][1].types

    def names(self) -> list[str]:
        return list(self._points[0][1].types)

    def add_inputs(self, values: Iterable[ValueInfoProto]) -> None:
        for value in values:
            for model, scope in self._points:
                settled = model.dimensions.settled(value.type, value.name)
                size = type_bytes(settled)
                if size is None:
                    raise InputError(f"graph input {value.name!r} is not a tensor of a known shape ({described(value.type)})")
                scope.define_new(value.name, settled, size, "inputs")

    def add_stored(self, tensors: Iterable[TensorProto]) -> None:
        for _, scope in self._points:
            for tensor in tensors:
                scope.define_new(tensor.name, tensor_type(tensor.data_type, tensor.dims), stored_bytes(tensor), "parameters")
                numbers = shape_numbers(tensor, None)
                if numbers is not None:
                    scope.numbers[tensor.name] = numbers

    def declare(self, values: Sequence[ValueInfoProto]) -> None:
        for _, scope in self._points:
            scope.declare(values)

    def add_nodes(self, nodes: Sequence[NodeProto], outputs: Sequence[str] = ()) -> None:
        for model, scope in self._points:
            if len(nodes) == 1 and _define_like_inputs(scope, nodes[0]):
                continue
            describe(model, scope, nodes, outputs)

    def define_outputs(self, node: NodeProto, names: Sequence[str]) -> None:
        """Infer the types of outputs that were added to a known node."""
        copy = NodeProto()
        copy.CopyFrom(node)
        places = {}
        for index, name in enumerate(node.output):
            if name:
                copy.output[index] = f"{name}/typed_again"
                places[name] = copy.output[index]
        for model, scope in self._points:
            describe(model, scope, [copy], [])
            for name, place in places.items():
                type_, size = scope.types.pop(place), scope.sizes.pop(place)
                scope.numbers.pop(place, None)
                if name in names:
                    scope.define(name, type_, size)

    def rename(self, old: str, new: str) -> None:
        for _, scope in self._points:
            scope.types[new] = scope.types.pop(old)
            scope.sizes[new] = scope.sizes.pop(old)
            if old in scope.numbers:
                scope.numbers[new] = scope.numbers.pop(old)
        self._shapes.pop(old, None)

    def shape(self, name: str) -> Shape:
        if name not in self._shapes:
            shapes = [shape_of(scope.types.get(name)) for _, scope in self._points]
            if any(shape is None for shape in shapes):
                raise InputError(f"the shape of tensor {name!r} is not known")
            first, last = shapes[0], shapes[-1]
            assert first is not None
            assert last is not None
            if len(first) != len(last):
                raise InputError(
                    f"the number of dimensions of tensor {name!r} depends on free dimensions: fix them with --dim or --batch-size"
                )
            self._shapes[name] = tuple(self._samples.dim(sizes) for sizes in zip(first, last, strict=True))
        return self._shapes[name]

    def element(self, name: str) -> int:
        tensor = tensor_of(self._points[0][1].types[name])
        return 0 if tensor is None else tensor.elem_type

    def is_float(self, name: str) -> bool:
        return name in self and self.element(name) in FLOATS

    def numbers(self, name: str) -> Array | None:
        """The values of a small constant, or of a tensor computed from shapes only, if they do not depend on free dimensions."""
        found = [scope.numbers.get(name) for _, scope in self._points]
        first, last = found[0], found[-1]
        return first if first is not None and last is not None and np.array_equal(first, last) else None

    def value_info(self, name: str) -> ValueInfoProto:
        type_ = self._points[0][1].types[name]
        if tensor_of(type_) is None:
            return ValueInfoProto(name=name, type=type_)
        return helper.make_tensor_value_info(name, self.element(name), list(self.shape(name)))


def _define_like_inputs(scope: Scope, node: NodeProto) -> bool:
    if node.op_type not in _LIKE_INPUTS or node.domain or len(node.output) != 1:
        return False
    first: TypeProto | None = scope.types.get(node.input[0])
    if first is None or node.output[0] in scope.types or any(scope.types.get(name) != first for name in node.input[1:]):
        return False
    if all(name in scope.numbers for name in node.input):
        return False
    scope.define(node.output[0], first, scope.sizes[node.input[0]])
    return True
