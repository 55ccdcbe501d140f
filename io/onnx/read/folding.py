"""Shape arithmetic: exporters compute shapes inside the graph (Shape, Gather, Concat, ..., Reshape), so these values must be computed here.

Only for small tensors and operators that occur in shape arithmetic, with onnx's own reference implementation.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping

import numpy as np
from onnx import NodeProto, TypeProto, ValueInfoProto, helper
from onnx.reference import ReferenceEvaluator

from ..proto.attributes import find, integer
from ..proto.stored import Array, may_say_shape
from ..proto.tensor_types import shape_of, tensor_of

_MOST_ELEMENTS = 1024

_FOLDABLE = frozenset(
    {
        *("Abs", "Add", "And", "ArgMax", "ArgMin", "Cast", "Ceil", "Clip", "Compress", "Concat", "ConstantOfShape", "CumSum", "Div"),
        *("Equal", "Expand", "Flatten", "Floor", "Gather", "GatherElements", "GatherND", "Greater", "GreaterOrEqual", "Identity"),
        *("Less", "LessOrEqual", "Max", "Min", "Mod", "Mul", "Neg", "NonZero", "Not", "Or", "Pad", "Pow", "Range", "Reciprocal"),
        *("ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum", "Reshape", "Round", "ScatterElements", "ScatterND"),
        *("Sign", "Slice", "Split", "Sqrt", "Squeeze", "Sub", "Sum", "Tile", "TopK", "Transpose", "Trilu", "Unsqueeze", "Where", "Xor"),
    }
)
_NO_LARGER_THAN_INPUT = frozenset({"Compress", "NonZero"})
"""The shape of their output depends on the values, but is at most a small multiple of the input's."""


def folded(
    node: NodeProto, opset: int, types: Mapping[str, TypeProto], numbers: Mapping[str, Array], made: Mapping[str, TypeProto]
) -> dict[str, Array]:
    """The values that a standard node makes, if they can be computed; `made` are the known types of its outputs."""
    if node.op_type in ("Shape", "Size"):
        return _folded_shape(node, types)
    if node.op_type == "CastLike":
        node = _as_cast(node, made)
    if node.op_type not in _FOLDABLE or not all(name in numbers for name in node.input if name) or not any(node.input):
        return {}
    if not all(_is_small(node, made.get(name)) for name in node.output if name):
        return {}
    return _evaluated(node, opset, {name: numbers[name] for name in node.input if name})


def _as_cast(node: NodeProto, made: Mapping[str, TypeProto]) -> NodeProto:
    """CastLike as Cast: of its second input, which may be computed when the model runs, only the type matters."""
    type_ = made.get(node.output[0]) if node.output else None
    tensor = None if type_ is None else tensor_of(type_)
    if tensor is None:
        return node
    return helper.make_node("Cast", node.input[:1], node.output, to=tensor.elem_type)


def _is_small(node: NodeProto, type_: TypeProto | None) -> bool:
    tensor = None if type_ is None else tensor_of(type_)
    if tensor is None:
        return False
    shape = shape_of(type_)
    if shape is None:
        return node.op_type in _NO_LARGER_THAN_INPUT
    return may_say_shape(tensor.elem_type, shape)


def _folded_shape(node: NodeProto, types: Mapping[str, TypeProto]) -> dict[str, Array]:
    shape = shape_of(types.get(node.input[0])) if node.input else None
    if shape is None or not node.output:
        return {}
    if node.op_type == "Size":
        size = math.prod(shape)
        return {} if size >= 2**63 else {node.output[0]: np.asarray(size, np.int64)}
    start = integer(node, "start", 0)
    end = find(node, "end")
    return {node.output[0]: np.asarray(shape[start : len(shape) if end is None else end.i], np.int64)}


def _without_private_attributes(node: NodeProto) -> NodeProto:
    """Recomputed nodes have one (see `writer`); the reference implementation refuses attributes that it does not know."""
    if not any(attribute.name.startswith("__") for attribute in node.attribute):
        return node
    kept = NodeProto()
    kept.CopyFrom(node)
    del kept.attribute[:]
    kept.attribute.extend(attribute for attribute in node.attribute if not attribute.name.startswith("__"))
    return kept


def _evaluated(node: NodeProto, opset: int, inputs: dict[str, Array]) -> dict[str, Array]:
    names = [name for name in node.output if name]
    node = _without_private_attributes(node)
    graph = helper.make_graph(
        [node], "shape arithmetic", [ValueInfoProto(name=name) for name in inputs], [ValueInfoProto(name=name) for name in names]
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            results = ReferenceEvaluator(model).run(None, inputs)
    except Exception:  # the reference implementation raises any error of numpy; an unknown value is not an error here
        return {}
    arrays = {name: np.asarray(result) for name, result in zip(names, results, strict=True)}
    return {name: array for name, array in arrays.items() if array.dtype != object and array.size <= _MOST_ELEMENTS}
