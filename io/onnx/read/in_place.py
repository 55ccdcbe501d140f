"""What onnxruntime computes in place on CPU, measured with onnxruntime 1.31 for every operator that onnx has test cases for.

An output overwrites an input if nothing else needs the input and onnxruntime knows before the run that both have the same shape and
element size. Add, Mul, Sub, Exp, Where, ScatterND and all operators that are not listed have their own memory, though they could be
computed in place.
"""

from __future__ import annotations

from collections.abc import Callable, Container

from onnx import NodeProto, TypeProto

from ..proto.attributes import integer
from ..proto.elements import ELEMENT_BITS, FLOAT
from ..proto.model_file import plain_domain
from ..proto.tensor_types import Dimension, tensor_of

Pairs = tuple[tuple[str, str], ...]
TypeOf = Callable[[str], TypeProto | None]

_OVER_FIRST_INPUT = frozenset(
    {
        *("BitCast", "Cast", "CastLike", "Celu", "Clip", "Elu", "HardSigmoid", "LeakyRelu", "Relu", "Scatter", "ScatterElements", "Selu"),
        *("Shrink", "Sigmoid", "Softplus", "Softsign", "Tanh", "TensorScatter", "ThresholdedRelu", "Trilu"),
    }
)
_OVER_FIRST_INPUT_IF_FLOAT = frozenset({"LogSoftmax", "Softmax"})


def in_place_pairs(node: NodeProto, made: Container[str], type_of: TypeOf) -> Pairs:
    """Pairs of input and output, by name; `made` are the computed tensors, `type_of` is the type that onnxruntime knows before the run."""
    if plain_domain(node.domain) or not node.input or not node.output:
        return ()
    if updates_in_place(node):
        return tuple((node.input[position + 2], name) for position, name in _statistics(node) if node.input[position + 2] in made)
    source, target = node.input[0], node.output[0]
    if source not in made or not target or list(node.input).count(source) > 1:
        return ()
    before, after = type_of(source), type_of(target)
    if before is None or after is None or not _same_room(before, after):
        return ()
    if node.op_type in _OVER_FIRST_INPUT:
        return ((source, target),)
    if node.op_type in _OVER_FIRST_INPUT_IF_FLOAT and before.tensor_type.elem_type == FLOAT:
        return ((source, target),)
    return ()


def written_over_fixed_memory(node: NodeProto, made: Container[str], graph_outputs: Container[str]) -> frozenset[str]:
    """Outputs without memory of their own: a BatchNormalization in training mode overwrites its statistics inputs."""
    if plain_domain(node.domain) or not updates_in_place(node):
        return frozenset()
    return frozenset(name for position, name in _statistics(node) if node.input[position + 2] not in made and name not in graph_outputs)


def updates_in_place(node: NodeProto) -> bool:
    return node.op_type == "BatchNormalization" and integer(node, "training_mode", 0) == 1 and len(node.input) == 5


def _statistics(node: NodeProto) -> list[tuple[int, str]]:
    return [(position, name) for position, name in enumerate(node.output[1:3], start=1) if name]


def _same_room(before: TypeProto, after: TypeProto) -> bool:
    """Compare shapes as onnxruntime does: dimension by dimension, numbers with numbers and names with names."""
    one, other = tensor_of(before), tensor_of(after)
    if one is None or other is None or not one.HasField("shape") or not other.HasField("shape"):
        return False
    bits = ELEMENT_BITS.get(one.elem_type)
    if bits is None or bits != ELEMENT_BITS.get(other.elem_type) or len(one.shape.dim) != len(other.shape.dim):
        return False
    return all(_same_dimension(*pair) for pair in zip(one.shape.dim, other.shape.dim, strict=True))


def _same_dimension(one: Dimension, other: Dimension) -> bool:
    if one.HasField("dim_value") and other.HasField("dim_value"):
        return one.dim_value == other.dim_value
    return bool(one.dim_param) and one.dim_param == other.dim_param
