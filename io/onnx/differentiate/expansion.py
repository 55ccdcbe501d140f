"""Replace operators that onnx defines in terms of simpler ones, if we have no gradient for the operator itself."""

from __future__ import annotations

from onnx import ModelProto, NodeProto, ValueInfoProto, defs, helper, inliner

from ....core.errors import InputError
from ..gradients import GRADIENTS, WITHOUT_GRADIENT
from ..proto.attributes import find
from ..proto.model_file import plain_domain
from .forward_model import Forward, named_apart

_ROUNDS = 4
"""Function bodies may use operators that have bodies themselves."""


def expand_composites(forward: Forward) -> None:
    for _ in range(_ROUNDS):
        composites = [(node, schema) for node in forward.nodes if (schema := _composite(node, forward.opset)) is not None]
        if not composites:
            return
        for node, schema in composites:
            _state_defaults(node, schema)
        _inline(forward, sorted({node.op_type for node, _ in composites}))


def _composite(node: NodeProto, opset: int) -> defs.OpSchema | None:
    """The definition of an operator that has a function body and no gradient of its own."""
    if plain_domain(node.domain) or node.op_type in GRADIENTS or node.op_type in WITHOUT_GRADIENT:
        return None
    try:
        schema = defs.get_schema(node.op_type, opset, "")
    except defs.SchemaError:
        return None
    has_body = getattr(schema, "has_function", False) or getattr(schema, "has_context_dependent_function", False)
    return schema if has_body else None


def _state_defaults(node: NodeProto, schema: defs.OpSchema) -> None:
    """Fill in default values: the inliner does not set an attribute that is missing in the call, even if it has a default."""
    for name, attribute in schema.attributes.items():
        if attribute.default_value.type and find(node, name) is None:
            node.attribute.append(attribute.default_value)


def _inline(forward: Forward, operators: list[str]) -> None:
    """Inline with onnx's inliner, on the nodes only, with the types of their inputs, because bodies may depend on them."""
    tensors = forward.tensors()
    skeleton = ModelProto()
    skeleton.ir_version = forward.ir_version
    skeleton.opset_import.extend(helper.make_opsetid(domain, version) for domain, version in forward.opsets.items())
    skeleton.graph.name = forward.name
    skeleton.graph.node.extend(forward.nodes)
    skeleton.graph.input.extend(forward.inputs)
    skeleton.graph.input.extend(tensors.value_info(name) for name in forward.initializers)
    skeleton.graph.output.extend(ValueInfoProto(name=value.name) for value in forward.outputs)
    made = [name for node in forward.nodes for name in node.output if name]
    skeleton.graph.value_info.extend(tensors.value_info(name) for name in made)
    try:
        inlined = inliner.inline_selected_functions(skeleton, [("", operator) for operator in operators], inline_schema_functions=True)
    except (RuntimeError, ValueError, TypeError) as error:
        raise InputError(f"{', '.join(operators)} cannot be written in simpler operators: {' '.join(str(error).split())}") from None
    forward.nodes = named_apart(inlined.graph.node)
