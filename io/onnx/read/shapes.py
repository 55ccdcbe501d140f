"""Types of the outputs of a node, by onnx's own inference, one node at a time.

One node at a time and not the whole model at once, because nodes may be in any order, a model may be too large to serialize, shapes
computed inside the graph need our `folding`, and an error can name its node.
"""

from __future__ import annotations

import math
from functools import cache

from onnx import NodeProto, OperatorSetIdProto, TypeProto, checker, defs, helper, numpy_helper, shape_inference

from ..proto.attributes import find
from ..proto.captures import reads
from ..proto.elements import BOOL
from ..proto.model_file import one_line, plain_domain
from ..proto.tensor_types import shape_of, tensor_of, tensor_type
from .scope import Scope

_POSITIONS = frozenset({"axis", "num_outputs", "num_scan_inputs"})
_LARGEST_POSITION = 2**20
_ORDINARY_ERRORS = (RuntimeError, ValueError, TypeError, LookupError, MemoryError)


class ContradictionError(Exception):
    """The inputs of a node do not fit together."""


def inferred_types(node: NodeProto, scope: Scope, ir_version: int) -> dict[str, TypeProto]:
    """Types by output name; incomplete where onnx cannot infer them, empty for operators that it does not know."""
    domain = plain_domain(node.domain)
    version = scope.opset(domain)
    schema = None if version is None else _schema(domain, node.op_type, version)
    if schema is None:
        return {}
    _check_attributes(node)
    if node.op_type == "STFT" and not domain:
        node = _with_default(node, "onesided", 1)
    types = {name: scope.types[name] for name in reads(node) if name in scope.types}
    numbers = {name: numpy_helper.from_array(scope.numbers[name], name) for name in node.input if name and name in scope.numbers}
    try:
        found = shape_inference.infer_node_outputs(schema, node, types, numbers, None, _imports(tuple(scope.opsets.items())), ir_version)
    except (shape_inference.InferenceError, checker.ValidationError, *_ORDINARY_ERRORS) as error:
        reason = one_line(error).removeprefix("[ShapeInferenceError] ").removeprefix("[TypeInferenceError] ")
        raise ContradictionError(reason) from None
    if not domain:
        _supplement(node, types, found)
    return found


def _check_attributes(node: NodeProto) -> None:
    """Refuse nodes for which onnx's inference would crash the process instead of raising an error."""
    for attribute in node.attribute:
        if attribute.name in _POSITIONS and abs(attribute.i) > _LARGEST_POSITION:
            raise ContradictionError(f"its attribute {attribute.name} is {attribute.i}")
        if attribute.name == "num_outputs" and node.op_type == "Split" and attribute.i != len(node.output):
            raise ContradictionError(f"its attribute num_outputs is {attribute.i}, but it has {len(node.output)} outputs")


def _with_default(node: NodeProto, name: str, value: int) -> NodeProto:
    """With an attribute stated whose default onnx's inference (1.23) takes for 0; for onnxruntime it is what the standard says."""
    if find(node, name) is not None:
        return node
    copy = NodeProto()
    copy.CopyFrom(node)
    copy.attribute.append(helper.make_attribute(name, value))
    return copy


@cache
def _schema(domain: str, operator: str, version: int) -> defs.OpSchema | None:
    """The schema of the operator in this opset; for a deprecated operator, the last version."""
    try:
        schema = defs.get_schema(operator, version, domain)
        while schema.deprecated:
            schema = defs.get_schema(operator, schema.since_version - 1, domain)
    except defs.SchemaError:
        return None
    return schema


@cache
def _imports(opsets: tuple[tuple[str, int], ...]) -> list[OperatorSetIdProto]:
    return [helper.make_opsetid(domain, version) for domain, version in opsets]


def _supplement(node: NodeProto, types: dict[str, TypeProto], found: dict[str, TypeProto]) -> None:
    """Infer what some versions of onnx do not, and check what they do not check."""
    inputs = [types.get(name) for name in node.input]
    if not inputs or inputs[0] is None or not node.output:
        return
    made, first = node.output[0], shape_of(inputs[0])
    match node.op_type:
        case "GroupNormalization" | "MeanVarianceNormalization":
            found[made] = inputs[0]
        case "GreaterOrEqual" | "LessOrEqual" if len(inputs) == 2 and shape_of(found.get(made)) is None:
            shape = _broadcast(first, shape_of(inputs[1]))
            if shape is not None:
                found[made] = tensor_type(BOOL, shape)
        case "Dropout" if len(node.output) == 2 and shape_of(found.get(node.output[1])) is None and first is not None:
            stated = tensor_of(found[node.output[1]]) if node.output[1] in found else None
            found[node.output[1]] = tensor_type(BOOL if stated is None else stated.elem_type or BOOL, first)
        case "Reshape":
            after = shape_of(found.get(made))
            if first is not None and after is not None and math.prod(first) != math.prod(after):
                raise ContradictionError(f"a tensor of {_text(first)} cannot be reshaped to {_text(after)}")


def _broadcast(first: tuple[int, ...] | None, second: tuple[int, ...] | None) -> tuple[int, ...] | None:
    if first is None or second is None:
        return None
    longest = max(len(first), len(second))
    pairs = zip((1,) * (longest - len(first)) + first, (1,) * (longest - len(second)) + second, strict=True)
    return tuple(b if a == 1 else a for a, b in pairs)


def _text(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape)) or "a scalar"
