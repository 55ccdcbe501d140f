"""Sizes of sequences and optionals. Their types do not say how many tensors they contain, but the node that makes one often does."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping

from onnx import NodeProto, TypeProto

from ..proto.elements import ELEMENT_BITS
from ..proto.tensor_types import is_settled, type_bytes
from .scope import Scope

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
