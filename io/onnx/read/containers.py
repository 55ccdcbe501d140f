"""Sizes of sequences and optionals. Their types do not say how many tensors they contain, but the node that makes one often does.

Where the elements of a sequence are known one by one (`torch.chunk` and `torch.split` become SplitToSequence and SequenceAt), so is the
type of what SequenceAt takes out of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping

from onnx import NodeProto, TypeProto

from ..proto.attributes import integer
from ..proto.elements import ELEMENT_BITS
from ..proto.stored import Array
from ..proto.tensor_types import is_settled, shape_of, tensor_of, tensor_type, type_bytes
from .scope import Scope

_MOST_PARTS = 4096
"""Sequences with more elements are not followed one by one."""
_Rule = Callable[[NodeProto, Scope], int | None]


def _sum_of_inputs(node: NodeProto, scope: Scope) -> int | None:
    return _sum(node.input, scope)


def _first_input(node: NodeProto, scope: Scope) -> int | None:
    return _sum(node.input[:1], scope)


def _sequence_and_tensor(node: NodeProto, scope: Scope) -> int | None:
    return _sum(node.input[:2], scope)


def _one_element_less(node: NodeProto, scope: Scope) -> int | None:
    whole, type_ = _first_input(node, scope), scope.types.get(node.input[0]) if node.input else None
    element = None if type_ is None else type_bytes(type_.sequence_type.elem_type)
    return None if whole is None or element is None else max(0, whole - element)


def _sum(names: Iterable[str], scope: Scope) -> int | None:
    sizes = [scope.sizes.get(name) for name in names if name]
    return None if None in sizes else sum(size for size in sizes if size is not None)


_RULES: Mapping[str, _Rule] = {
    "Identity": _first_input,
    "Optional": _first_input,
    "OptionalGetElement": _first_input,
    "SequenceConstruct": _sum_of_inputs,
    "SequenceEmpty": lambda node, scope: 0,
    "SequenceErase": _one_element_less,
    "SequenceInsert": _sequence_and_tensor,
    "SplitToSequence": _first_input,
}


def container_bytes(node: NodeProto, scope: Scope) -> int | None:
    """Bytes of the sequence or optional a standard node makes."""
    rule = _RULES.get(node.op_type)
    return None if rule is None else rule(node, scope)


def split_sizes(node: NodeProto, shape: tuple[int, ...], stated: Array | None) -> list[int] | None:
    """How SplitToSequence divides its axis. `stated` is its second input; without that input, every part has size 1."""
    axis = integer(node, "axis", 0)
    if not -len(shape) <= axis < len(shape):
        return None
    whole = shape[axis]
    if len(node.input) < 2 or not node.input[1]:
        return [1] * whole if whole <= _MOST_PARTS else None
    if stated is None:
        return None
    if stated.ndim:
        sizes = [int(size) for size in stated]
        return sizes if sum(sizes) == whole and min(sizes, default=0) >= 0 else None
    each = int(stated)
    if each < 1 or whole > each * _MOST_PARTS:
        return None
    return [min(each, whole - start) for start in range(0, whole, each)]


def solve_sequence(node: NodeProto, scope: Scope, types: dict[str, TypeProto]) -> None:
    """Remember the elements of a sequence that is made, and state the type of an element that is taken out."""
    if not node.input or not node.output:
        return
    source = scope.types.get(node.input[0])
    match node.op_type:
        case "SequenceConstruct":
            if all(name in scope.types for name in node.input):
                scope.elements[node.output[0]] = [scope.types[name] for name in node.input]
        case "Identity" if node.input[0] in scope.elements:
            scope.elements[node.output[0]] = scope.elements[node.input[0]]
        case "SplitToSequence" if source is not None:
            scope.elements[node.output[0]] = _parts(node, source, scope.numbers.get(node.input[1]) if len(node.input) > 1 else None)
        case "SequenceAt" if len(node.input) > 1:
            place, elements = scope.numbers.get(node.input[1]), scope.elements.get(node.input[0], [])
            if place is not None and place.size == 1 and -len(elements) <= int(place.reshape(-1)[0]) < len(elements):
                types[node.output[0]] = elements[int(place.reshape(-1)[0])]


def _parts(node: NodeProto, source: TypeProto, stated: Array | None) -> list[TypeProto]:
    tensor, shape = tensor_of(source), shape_of(source)
    sizes = None if shape is None else split_sizes(node, shape, stated)
    if tensor is None or shape is None or sizes is None:
        return []
    axis = integer(node, "axis", 0) % len(shape)
    squeezed = (len(node.input) < 2 or not node.input[1]) and integer(node, "keepdims", 1) == 0
    return [tensor_type(tensor.elem_type, (*shape[:axis], *(() if squeezed else (size,)), *shape[axis + 1 :])) for size in sizes]


def solve_concatenation(node: NodeProto, scope: Scope, type_: TypeProto) -> None:
    """The output of ConcatFromSequence has as many bytes as its sequence: this determines the one dimension that inference cannot know."""
    if node.op_type != "ConcatFromSequence" or not node.input:
        return
    size = scope.sizes.get(node.input[0])
    tensor = type_.tensor_type
    free = [dimension for dimension in tensor.shape.dim if not is_settled(dimension)]
    rest = math.prod(dimension.dim_value for dimension in tensor.shape.dim if is_settled(dimension))
    bits = ELEMENT_BITS.get(tensor.elem_type, 0) * rest
    if size is not None and len(free) == 1 and bits and size * 8 % bits == 0:
        free[0].dim_value = size * 8 // bits
