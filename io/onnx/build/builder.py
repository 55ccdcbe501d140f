"""A graph under construction: nodes are added one by one, each with a descriptive name and known types."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any

import numpy as np
from onnx import NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

from ....core.errors import InputError
from ..proto.stored import Array
from .known_tensors import Tensors
from .sampling import Dim, Shape

FREE = "fix it with --batch-size or --dim"


class GraphBuilder:
    """Adds nodes to a list. `prefix` is the prefix of new names; it is changed for every part of the graph."""

    def __init__(self, tensors: Tensors, opset: int, inputs: Sequence[ValueInfoProto], nodes: Sequence[NodeProto]) -> None:
        self.tensors = tensors
        self.opset = opset
        self.nodes: list[NodeProto] = list(nodes)
        self.constants: dict[str, TensorProto] = {}
        self.prefix = "grad"
        self._by_content: dict[tuple[str, tuple[int, ...], bytes], str] = {}
        self._taken = {name for node in nodes for name in (node.name, *node.output)} | set(tensors.names())
        self._numbers: dict[str, int] = {}
        self._symbol_sources: dict[str, tuple[str, int]] = {}
        self._symbol_values: dict[Dim, str] = {}
        self._computed_shapes: dict[Shape, str] = {}
        for value in inputs:
            for axis, dim in enumerate(tensors.shape(value.name)):
                if isinstance(dim, str):
                    self._symbol_sources.setdefault(dim, (value.name, axis))

    def unused(self, name: str) -> str:
        """The name, with a number if it is taken."""
        if name in self._taken:
            start = self._numbers.get(name, 2)
            number = next(number for number in count(start) if f"{name}_{number}" not in self._taken)
            self._numbers[name] = number + 1
            name = f"{name}_{number}"
        self._taken.add(name)
        return name

    def add(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """Add a node with one output; blank inputs at the end are left out."""
        return self.add_several(operator, 1, *inputs, **attributes)[0]

    def add_several(self, operator: str, outputs: int, *inputs: str, **attributes: Any) -> tuple[str, ...]:
        given = list(inputs)
        while given and not given[-1]:
            given.pop()
        stem = f"{self.prefix}/{operator}"
        names = [self.unused(stem) for _ in range(outputs)]
        node = helper.make_node(operator, given, names, name=names[0], **attributes)
        self.nodes.append(node)
        self.tensors.add_nodes([node])
        return tuple(names)

    def array(self, numbers: Array, label: str = "constant") -> str:
        """A constant, stored once however often it is used."""
        numbers = np.ascontiguousarray(numbers).reshape(np.shape(numbers))
        key = (str(numbers.dtype), numbers.shape, numbers.tobytes())
        if key not in self._by_content:
            name = self.unused(f"grad/{label}")
            tensor = numpy_helper.from_array(numbers, name)
            self.constants[name] = tensor
            self.tensors.add_stored([tensor])
            self._by_content[key] = name
        return self._by_content[key]

    def integers(self, values: Sequence[int]) -> str:
        return self.array(np.asarray(values, np.int64).reshape(-1), "integers")

    def integer(self, value: int) -> str:
        return self.array(np.asarray(value, np.int64), "integer")

    def scalar(self, value: float, like: str) -> str:
        """A number of the element type of another tensor."""
        dtype = helper.tensor_dtype_to_np_dtype(self.tensors.element(like))
        return self.array(np.asarray(value).astype(dtype), "number")

    def shape_tensor(self, shape: Shape, like: str | None = None) -> str:
        """A shape as an int64 tensor: a constant, or computed at run time from the sizes of the graph's inputs (or of `like`)."""
        if all(isinstance(dim, int) for dim in shape):
            return self.integers([dim for dim in shape if isinstance(dim, int)])
        if shape not in self._computed_shapes:
            parts: list[str] = []
            run: list[int] = []
            for axis, dim in enumerate(shape):
                if isinstance(dim, int):
                    run.append(dim)
                    continue
                if run:
                    parts.append(self.integers(run))
                    run = []
                parts.append(self._size_tensor(dim, like, axis))
            if run:
                parts.append(self.integers(run))
            self._computed_shapes[shape] = parts[0] if len(parts) == 1 else self.add("Concat", *parts, axis=0)
        return self._computed_shapes[shape]

    def _size_tensor(self, dim: str, like: str | None, axis: int) -> str:
        """One free size as a tensor of one element."""
        if dim in self._symbol_values:
            return self._symbol_values[dim]
        if dim in self._symbol_sources:
            source, source_axis = self._symbol_sources[dim]
            made = self.add("Shape", source, start=source_axis, end=source_axis + 1)
        elif all(factor.isdigit() or factor in self._symbol_sources for factor in dim.split("*")):
            factors = [self.integers([int(part)]) if part.isdigit() else self._size_tensor(part, None, 0) for part in dim.split("*")]
            made = factors[0]
            for factor in factors[1:]:
                made = self.add("Mul", made, factor)
        elif like is not None and self.tensors.shape(like)[axis] == dim:
            return self.add("Shape", like, start=axis, end=axis + 1)
        else:
            raise InputError(f"the backward pass needs a size that depends on free dimensions in a way that cannot be computed: {FREE}")
        self._symbol_values[dim] = made
        return made

    def reshape(self, value: str, shape: Shape, like: str | None = None) -> str:
        """Reshape to a shape; one free size is left to Reshape (-1). No node is added if the tensor already has this shape."""
        if self.tensors.shape(value) == shape:
            return value
        free = [axis for axis, dim in enumerate(shape) if isinstance(dim, str)]
        if len(free) == 1 and 0 not in shape:
            return self.add("Reshape", value, self.integers([dim if isinstance(dim, int) else -1 for dim in shape]))
        return self.add("Reshape", value, self.shape_tensor(shape, like))

    def sum_over(self, value: str, axes: Sequence[int], *, keepdims: bool = False) -> str:
        if not axes:
            return value
        return self.add("ReduceSum", value, self.integers(axes), keepdims=int(keepdims))

    def sum_to(self, value: str, shape: Shape) -> str:
        """Undo broadcasting: sum over the axes along which a tensor of `shape` was repeated."""
        found = self.tensors.shape(value)
        if found == shape:
            return value
        lead = len(found) - len(shape)
        repeated = [lead + axis for axis, dim in enumerate(shape) if dim == 1 and found[lead + axis] != 1]
        if any(dim != 1 and dim != found[lead + axis] for axis, dim in enumerate(shape)):
            raise InputError(f"a gradient of shape {list(found)} does not fit a tensor of shape {list(shape)}: {FREE}")
        return self.reshape(self.sum_over(value, [*range(lead), *repeated], keepdims=not lead), shape)

    def expand(self, value: str, shape: Shape, like: str | None = None) -> str:
        """Repeat a tensor along axes of size 1."""
        return value if self.tensors.shape(value) == shape else self.add("Expand", value, self.shape_tensor(shape, like))

    def zeros(self, shape: Shape, element: int, like: str | None = None) -> str:
        zero = helper.make_tensor("zero", element, [1], [0])
        return self.add("ConstantOfShape", self.shape_tensor(shape, like), value=zero)

    def count(self, shape: Shape, axes: Sequence[int], like: str) -> str:
        """How many elements there are along some axes, as a scalar of the element type of `like`."""
        dims = tuple(shape[axis] for axis in axes)
        if all(isinstance(dim, int) for dim in dims):
            return self.scalar(float(np.prod([dim for dim in dims if isinstance(dim, int)], dtype=np.float64)), like)
        product = self.add("ReduceProd", self.shape_tensor(dims), keepdims=0)
        return self.add("Cast", product, to=self.tensors.element(like))

    def cast(self, value: str, element: int) -> str:
        return value if self.tensors.element(value) == element else self.add("Cast", value, to=element)

    def transpose(self, value: str, permutation: Sequence[int]) -> str:
        order = list(permutation)
        return value if order == sorted(order) else self.add("Transpose", value, perm=order)

    def slice(self, value: str, starts: Sequence[int], ends: Sequence[int], axes: Sequence[int], steps: Sequence[int] | None = None) -> str:
        inputs = [self.integers(starts), self.integers(ends), self.integers(axes)]
        return self.add("Slice", value, *inputs, *([self.integers(steps)] if steps is not None else []))

    def pad(self, value: str, pads: Sequence[int]) -> str:
        """Add zeros; `pads` as in ONNX, all begins and then all ends."""
        return self.add("Pad", value, self.integers(pads)) if any(pads) else value
