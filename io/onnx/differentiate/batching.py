"""Change the batch size of a model in which it is a fixed number.

Exporters write the size into the inputs and into constant shapes: `Reshape(x, [1, 16, 4])`, `Expand(mask, [1, 1, 8, 8])`. Types are
inferred with the new size, node by node, and compared with those at the old size. A Reshape gets the new size where the axes of its data
have it. Elsewhere, where the old size stands in the way of the new one, the constant that it comes from is corrected, and everything is
inferred again. If it comes from something that is no constant, the model is refused.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from onnx import NodeProto, TensorProto, numpy_helper

from ....core.errors import InputError
from ..build.known_tensors import Tensors
from ..build.sampling import Samples
from ..proto.attributes import integer, integers
from ..proto.model_file import plain_domain
from ..proto.stored import Array, array_of
from ..proto.tensor_types import tensor_of
from .forward_model import Forward

_MOST_CORRECTIONS = 200
"""Corrections after which types must be inferred again from an earlier node on; real models need one or two."""
_SAME_AXES = frozenset(
    {
        *("Abs", "Add", "And", "Cast", "CastLike", "Clip", "Cos", "CumSum", "Div", "Equal", "Erf", "Exp", "Greater", "GreaterOrEqual"),
        *("Identity", "IsNaN", "Less", "LessOrEqual", "Log", "Max", "Min", "Mod", "Mul", "Neg", "Not", "Or", "Pow", "Reciprocal", "Sin"),
        *("Slice", "Softmax", "Sqrt", "Sub", "Tanh", "Trilu", "Where", "Xor"),
    }
)
"""Operators whose inputs have the axes of the output, or fewer, aligned at the end."""
_RECURRENT = ("GRU", "LSTM", "RNN")


def rebatch(forward: Forward, size: int) -> None:
    """Change inputs, nodes and initializers in place."""
    batched = [value for value in forward.inputs if (tensor := tensor_of(value.type)) is not None and tensor.shape.dim]
    if not batched:
        raise InputError(f"--batch-size {size}: the model has no input with dimensions")
    old = batched[0].type.tensor_type.shape.dim[0].dim_value
    if size == old:
        return
    before = forward.tensors()
    for value in batched:
        first = value.type.tensor_type.shape.dim[0]
        if first.dim_value == old:
            first.dim_value = size
    forward.forget_declared_types()
    _Correcting(forward, before, old, size).run()


def _set_shape(forward: Forward, node: NodeProto, index: int, shape: Array) -> None:
    """A constant shape of its own for a node, since others may read the same constant."""
    name = f"{node.name}/shape_for_batch"
    while name in forward.initializers and name != node.input[index]:
        name += "_"
    forward.initializers[name] = numpy_helper.from_array(shape, name)
    node.input[index] = name


class _Correcting:
    """One pass over the nodes after the other, until nothing has to be corrected."""

    def __init__(self, forward: Forward, before: Tensors, old: int, size: int) -> None:
        self._forward = forward
        self._before = before
        self._old, self._size = old, size
        self._makers = {name: node for node in forward.nodes for name in node.output}
        self._tensors = self._begin()

    def _begin(self) -> Tensors:
        forward = self._forward
        tensors = Tensors(Samples(()), forward.opsets, forward.ir_version)
        tensors.add_stored(list(forward.initializers.values()))
        tensors.add_inputs(forward.inputs)
        return tensors

    def run(self) -> None:
        for _ in range(_MOST_CORRECTIONS):
            self._tensors = self._begin()
            if all(self._added(node) for node in self._forward.nodes):
                return
        raise self._refusal("too many places depend on it")

    def _added(self, node: NodeProto) -> bool:
        """Add the types of a node. False if a node before it was corrected, so that all must be added again."""
        if node.op_type in _RECURRENT and self._begins_with_old_batch(node):
            return False
        if node.op_type == "Reshape" and not plain_domain(node.domain) and len(node.input) > 1:
            self._correct_reshape(node)
        try:
            self._tensors.add_nodes([node])
        except InputError as error:
            if self._correct_expansion(node):
                return self._added(node)
            if self._correct_inputs(node):
                return False
            raise self._refusal(str(error).partition("; correct the model")[0]) from None
        return True

    def _refusal(self, why: str) -> InputError:
        return InputError(
            f"--batch-size {self._size}: the model is made for a batch of {self._old} and cannot be changed to another ({why}); export it "
            "with a free batch dimension, or leave out --batch-size"
        )

    def _correct_reshape(self, node: NodeProto) -> None:
        """Where the data has the new size, the constant shape gets it, too."""
        data, numbers = self._sizes(node.input[0]), self._tensors.numbers(node.input[1])
        data_before, made_before = (_sizes(self._before, name) for name in (node.input[0], node.output[0]))
        if data is None or numbers is None or data_before is None or made_before is None or len(numbers) != len(made_before):
            return
        stated = [int(number) for number in numbers]
        kept = [data[axis] if number == 0 and axis < len(data) else number for axis, number in enumerate(stated)]
        for inside, outside in _axis_groups(data_before, made_before):
            whole, made = math.prod(data[axis] for axis in inside), math.prod(kept[axis] for axis in outside)
            if made > 0 and made * self._size == whole * self._old:
                axis = next((axis for axis in outside if stated[axis] and stated[axis] % self._old == 0), None)
                if axis is not None:
                    stated[axis] = stated[axis] // self._old * self._size
        if stated != numbers.tolist():
            self._state(node, np.asarray(stated, np.int64))

    def _state(self, node: NodeProto, shape: Array) -> None:
        _set_shape(self._forward, node, 1, shape)
        self._tensors.add_stored([self._forward.initializers[node.input[1]]])

    def _correct_expansion(self, node: NodeProto) -> bool:
        """The constant shape of an Expand does not fit the data any more."""
        shape, numbers = self._sizes(node.input[0]), self._tensors.numbers(node.input[1]) if len(node.input) > 1 else None
        if node.op_type != "Expand" or plain_domain(node.domain) or shape is None or numbers is None or numbers.ndim != 1:
            return False
        axis = self._expanded_axis(shape, numbers)
        if axis is None:
            return False
        changed = numbers.astype(np.int64)
        changed[axis] = self._size
        self._state(node, changed)
        return True

    def _expanded_axis(self, shape: Sequence[int], numbers: Array) -> int | None:
        for back in range(1, min(len(shape), len(numbers)) + 1):
            if shape[-back] == self._size and numbers[-back] == self._old:
                return len(numbers) - back
        return None

    def _correct_inputs(self, node: NodeProto) -> bool:
        """One input has the old size where another one has the new size."""
        shapes = {name: self._sizes(name) for name in node.input if name}
        longest = max((len(shape) for shape in shapes.values() if shape is not None), default=0)
        for back in range(1, longest + 1):
            sizes = {name: shape[-back] for name, shape in shapes.items() if shape is not None and len(shape) >= back}
            if self._size not in sizes.values():
                continue
            late = [name for name, found in sizes.items() if found == self._old]
            if self._correct_all((name, self._rank(name) - back) for name in late):
                return True
        return False

    def _begins_with_old_batch(self, node: NodeProto) -> bool:
        """Correct the first states of a recurrent cell, whose sizes onnx does not check."""
        axis, data = 1 - integer(node, "layout", 0), self._sizes(node.input[0])
        states = dict.fromkeys(name for name in node.input[5:7] if name)
        return data is not None and data[axis] == self._size and self._correct_all((name, axis) for name in states)

    def _correct_all(self, places: Iterable[tuple[str, int]]) -> bool:
        """True if any was corrected."""
        return sum(self._correct(name, axis) for name, axis in places) > 0

    def _correct(self, name: str, axis: int) -> bool:
        """Change one size of a tensor, at the constants that it comes from."""
        shape = self._sizes(name)
        if shape is None or not 0 <= axis < len(shape) or shape[axis] != self._old:
            return False
        if name in self._forward.initializers:
            return self._repeat(name, axis)
        node = self._makers.get(name)
        if node is None or plain_domain(node.domain):
            return False
        match node.op_type:
            case "Expand" | "Reshape" | "ConstantOfShape":
                index = 0 if node.op_type == "ConstantOfShape" else 1
                numbers = self._tensors.numbers(node.input[index])
                if node.op_type == "Expand":
                    self._correct(node.input[0], axis - len(shape) + self._rank(node.input[0]))
                if numbers is None or numbers.ndim != 1 or len(numbers) != len(shape) or numbers[axis] != self._old:
                    return False
                changed = numbers.astype(np.int64)
                changed[axis] = self._size
                _set_shape(self._forward, node, index, changed)
                return True
            case "Transpose":
                order = integers(node, "perm") or tuple(reversed(range(len(shape))))
                return self._correct(node.input[0], order[axis])
            case "Unsqueeze" | "Squeeze":
                return self._correct(node.input[0], self._axis_before(node, axis))
            case "Concat" if integer(node, "axis", 0) % len(shape) != axis:
                return self._correct_all((part, axis) for part in node.input)
            case "Split" | "LayerNormalization":
                return self._correct(node.input[0], axis)
            case "Gemm" if axis == 0:
                return self._correct(node.input[0], integer(node, "transA", 0))
            case "MatMul" if axis < len(shape) - 1:
                return self._correct(node.input[0], axis - len(shape) + self._rank(node.input[0]))
            case "Gather":
                return self._correct_gathered(node, axis)
            case "GatherND":
                indices, batches = self._rank(node.input[1]), integer(node, "batch_dims", 0)
                return axis < indices - 1 and self._correct_all([(node.input[1], axis), (node.input[0], axis if axis < batches else 0)])
            case "Range":
                return self._correct_range(node)
            case operator if operator in _SAME_AXES:
                return self._correct_all((part, axis - len(shape) + self._rank(part)) for part in node.input if part)
        return False

    def _correct_gathered(self, node: NodeProto, axis: int) -> bool:
        """The axes of the indices stand where the axis of the data was."""
        place, inserted = integer(node, "axis", 0) % max(self._rank(node.input[0]), 1), self._rank(node.input[1])
        if place <= axis < place + inserted:
            return self._correct(node.input[1], axis - place)
        return self._correct(node.input[0], axis if axis < place else axis - inserted + 1)

    def _correct_range(self, node: NodeProto) -> bool:
        """Numbers that count the elements of the batch."""
        start, _, step = (self._tensors.numbers(name) for name in node.input)
        if start is None or step is None:
            return False
        _set_shape(self._forward, node, 1, np.asarray(start + step * self._size, start.dtype))
        return True

    def _rank(self, name: str) -> int:
        return len(self._sizes(name) or ())

    def _axis_before(self, node: NodeProto, axis: int) -> int:
        """The axis before Unsqueeze or Squeeze; -1 if it is a new one."""
        numbers = self._tensors.numbers(node.input[1]) if len(node.input) > 1 else None
        stated = integers(node, "axes") or ([] if numbers is None else [int(number) for number in numbers.reshape(-1)])
        if node.op_type == "Unsqueeze":
            rank = len(self._tensors.shape(node.output[0]))
            added = {place % rank for place in stated}
            return -1 if axis in added else axis - sum(place < axis for place in added)
        rank = len(self._tensors.shape(node.input[0]))
        removed = {place % rank for place in stated}
        return [place for place in range(rank) if place not in removed][axis]

    def _repeat(self, name: str, axis: int) -> bool:
        """A stored tensor that is the same for every element of the batch."""
        tensor = self._forward.initializers[name]
        if tensor.data_location == TensorProto.EXTERNAL:
            return False
        numbers = array_of(tensor)
        first = np.take(numbers, [0], axis)
        if not np.array_equal(numbers, np.repeat(first, self._old, axis)):
            return False
        self._forward.initializers[name] = numpy_helper.from_array(np.repeat(first, self._size, axis), name)
        return True

    def _sizes(self, name: str) -> tuple[int, ...] | None:
        return _sizes(self._tensors, name)


def _sizes(tensors: Tensors, name: str) -> tuple[int, ...] | None:
    if name not in tensors or not tensors.element(name):
        return None
    return tuple(dim for dim in tensors.shape(name) if isinstance(dim, int))


def _axis_groups(first: Sequence[int], second: Sequence[int]) -> Iterator[tuple[list[int], list[int]]]:
    """The axes of two shapes with equally many elements, in the smallest groups that correspond: 2x3x4 and 6x4 give 01, 0 and 2, 1."""
    if 0 in first or 0 in second:
        return
    here, there = 0, 0
    while here < len(first) and there < len(second):
        inside, outside = [here], [there]
        left, right = first[here], second[there]
        here, there = here + 1, there + 1
        while left != right:
            if left < right and here < len(first):
                left *= first[here]
                inside.append(here)
                here += 1
            elif right < left and there < len(second):
                right *= second[there]
                outside.append(there)
                there += 1
            else:
                return
        yield inside, outside
