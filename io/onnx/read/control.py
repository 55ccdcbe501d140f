"""Nodes that contain other nodes: calls of model-local functions, If, Loop and Scan.

Each is one operation. The inner nodes are read too: to know the shapes of the outputs, to count the work of a function, and to count the
memory of the inner nodes as workspace of the operation.
"""

from __future__ import annotations

from onnx import FunctionProto, NodeProto

from ..proto.attributes import bound, find
from ..proto.functions import function_key
from ..proto.model_file import opset_versions, plain_domain
from .bodies import Body, Describe, Inside, agree, by_name, read_body, read_subgraph, subgraph_scope
from .loops import loop, scan
from .scope import Model, Scope


def look_inside(model: Model, scope: Scope, node: NodeProto, describe: Describe) -> Inside | None:
    """None for a node without inner nodes, or with inner nodes that cannot be read."""
    function = model.functions.get(function_key(node))
    if function is not None:
        return _call(model, scope, node, function, describe)
    if plain_domain(node.domain):
        return None
    match node.op_type:
        case "If":
            return _if(model, scope, node, describe)
        case "Loop":
            return loop(model, scope, node, describe)
        case "Scan":
            return scan(model, scope, node, describe)
    return None


def _call(model: Model, scope: Scope, node: NodeProto, function: FunctionProto, describe: Describe) -> Inside:
    """A function sees only its parameters."""
    own = Scope(opset_versions(function.opset_import), troubles=[])
    own.declare(function.value_info)
    actual = dict(zip(function.input, node.input, strict=False))
    for formal, name in actual.items():
        if name in scope.types:
            own.define(formal, scope.types[name], scope.sizes.get(name, 0))
        if name in scope.numbers:
            own.numbers[formal] = scope.numbers[name]
    given = {attribute.name: attribute for attribute in (*function.attribute_proto, *node.attribute)}
    absent = frozenset(formal for formal in function.input if not actual.get(formal))
    nodes = [bound(inner, given, absent) for inner in function.node]
    body = read_body(model, own, nodes, list(function.output), describe)
    scope.fixed.update(own.fixed)
    return Inside(by_name(node.output, body.outputs), body.flops, body.workspace, own.troubles or ())


def _if(model: Model, scope: Scope, node: NodeProto, describe: Describe) -> Inside:
    """Both branches must make the same shapes, unless it is known which one runs; one whose sizes contradict each other cannot run."""
    branches: list[Body] = []
    impossible: list[bool] = []
    troubles: list[str] = []
    for branch in ("then_branch", "else_branch"):
        attribute = find(node, branch)
        if attribute is None:
            return Inside(troubles=[f"it has no {branch}"])
        inner = subgraph_scope(model, scope, attribute.g)
        branches.append(read_subgraph(model, inner, scope, attribute.g, describe))
        troubles += inner.troubles or ()
        impossible.append(inner.impossible)
    then, other = branches
    condition = scope.truth(node.input[0]) if node.input else None
    if condition is None and impossible[0] != impossible[1]:
        condition = impossible[1]
    if condition is None:
        outputs = [first if agree(first, second) else None for first, second in zip(then.outputs, other.outputs, strict=False)]
        troubles.append("its branches make different shapes")
    else:
        outputs = then.outputs if condition else other.outputs
    return Inside(by_name(node.output, outputs), None, max(then.workspace, other.workspace), troubles, all(impossible))
