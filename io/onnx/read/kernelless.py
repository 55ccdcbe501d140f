"""Expand operators that onnxruntime has no CPU kernel for into the operators of their standard definition, before anything is counted.

onnxruntime does the same when it opens a model, but it puts the new nodes behind all others and gives them no names: order and memory
would be others than predicted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from onnx import ModelProto, NodeProto, ValueInfoProto, checker, defs, inliner, shape_inference

from ..proto.attributes import find
from ..proto.captures import subgraphs
from ..proto.model_file import opset_versions, plain_domain
from ..proto.naming import operation_names
from ..proto.tensor_types import tensor_type

WITHOUT_KERNEL = frozenset(
    {
        *("Bernoulli", "CastLike", "CausalConvWithState", "CenterCropPad", "GroupNormalization", "HardSwish", "LinearAttention", "Mish"),
        *("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss", "SwiGLU", "Swish"),
    }
)
"""Standard operators with a definition that onnxruntime 1.31 expands on CPU: all that its test cases in onnx 1.23 showed. SequenceMap is
one too, but its definition is a loop."""
_ROUNDS = 4
"""Definitions may use operators that have definitions themselves."""


def expand_functions(model: ModelProto) -> ModelProto:
    """The model itself, or a copy whose nodes without a kernel are replaced; the weights are not copied twice."""
    for _ in range(_ROUNDS):
        chosen = sorted({node.op_type for node in _all_nodes(model.graph.node) if is_expanded(node)})
        nodes = _inlined(model, chosen) if chosen else None
        if nodes is None:
            return model
        expanded = ModelProto()
        expanded.CopyFrom(model)
        del expanded.graph.node[:]
        expanded.graph.node.extend(nodes)
        model = expanded
    return model


def is_expanded(node: NodeProto) -> bool:
    return node.op_type in WITHOUT_KERNEL and not plain_domain(node.domain)


def _all_nodes(nodes: Sequence[NodeProto]) -> Iterator[NodeProto]:
    for node in nodes:
        yield node
        for graph in subgraphs(node):
            yield from _all_nodes(graph.node)


def _inlined(model: ModelProto, operators: Sequence[str]) -> list[NodeProto] | None:
    """The nodes of the model with these operators expanded; None if that is not possible. Works on a copy without the weights."""
    skeleton = ModelProto(ir_version=model.ir_version, functions=model.functions)
    skeleton.opset_import.extend(model.opset_import)
    graph = skeleton.graph
    graph.name = model.graph.name or "graph"
    graph.node.extend(model.graph.node)
    for node, name in zip(graph.node, operation_names(model.graph.node), strict=True):
        node.name = name
        _state_defaults(node, opset_versions(model.opset_import).get("", 0))
    listed = {info.name for info in model.graph.input}
    graph.input.extend(model.graph.input)
    graph.input.extend(
        ValueInfoProto(name=tensor.name, type=tensor_type(tensor.data_type, tensor.dims))
        for tensor in model.graph.initializer
        if tensor.name not in listed
    )
    graph.output.extend(model.graph.output)
    graph.value_info.extend(model.graph.value_info)
    try:
        made = inliner.inline_selected_functions(skeleton, [("", operator) for operator in operators], inline_schema_functions=True)
    except (shape_inference.InferenceError, checker.ValidationError, RuntimeError, ValueError, TypeError):
        return None
    unchanged = len(made.graph.node) == len(graph.node) and all(node.name for node in made.graph.node)
    return None if unchanged else _named(graph.node, made.graph.node)


def _state_defaults(node: NodeProto, opset: int) -> None:
    """The inliner does not set an attribute that is missing in the call, even if it has a default."""
    if not is_expanded(node):
        return
    try:
        schema = defs.get_schema(node.op_type, opset, "")
    except defs.SchemaError:
        return
    for name, attribute in schema.attributes.items():
        if attribute.default_value.type and find(node, name) is None:
            node.attribute.append(attribute.default_value)


def _named(calls: Sequence[NodeProto], nodes: Sequence[NodeProto]) -> list[NodeProto]:
    """The inliner gives expanded nodes no names: call them after the node they come from, as `name/Operator`.

    The nodes of a call take its place, and end when all its outputs are made.
    """
    taken = {call.name for call in calls}
    named: list[NodeProto] = []
    place = 0
    missing: set[str] = set()
    for node in nodes:
        copy = NodeProto()
        copy.CopyFrom(node)
        named.append(copy)
        if copy.name:
            place += 1
            continue
        call = calls[min(place, len(calls) - 1)]
        missing = missing or {name for name in call.output if name}
        copy.name = _unused(f"{call.name}/{node.op_type}", taken)
        missing.difference_update(node.output)
        place += not missing
    return named


def _unused(name: str, taken: set[str]) -> str:
    number, candidate = 1, name
    while candidate in taken:
        number += 1
        candidate = f"{name}_{number}"
    taken.add(candidate)
    return candidate
