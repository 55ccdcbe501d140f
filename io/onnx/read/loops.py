"""Loop and Scan: a state that is carried between iterations has a constant shape if one iteration does not change it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import GraphProto, NodeProto, TypeProto

from ..proto.attributes import find, integer, integers
from ..proto.elements import BOOL, INT64
from ..proto.tensor_types import Shape, shape_of, tensor_of, tensor_type, type_bytes
from .bodies import Body, Describe, Inside, agree, by_name, read_subgraph, subgraph_scope
from .scope import Model, Scope

_FIRST_OPSET_WITHOUT_BATCHES = 9


def loop(model: Model, scope: Scope, node: NodeProto, describe: Describe) -> Inside:
    """The size of scan outputs is known only if the number of iterations is: it is constant, and the condition stays true."""
    body = _body(node)
    if body is None or len(node.input) < 2 or len(body.input) != len(node.input):
        return Inside(troubles=["its body does not have the inputs it needs"])
    inner = subgraph_scope(model, scope, body)
    counter, proceed, *carried = (value.name for value in body.input)
    inner.define(counter, tensor_type(INT64, ()), 8)
    inner.define(proceed, tensor_type(BOOL, ()), 1)
    inner.numbers[proceed] = np.asarray(True)
    initial = node.input[2:]
    _carry(scope, initial, inner, carried)
    read = read_subgraph(model, inner, scope, body, describe)
    runs_on = bool(body.output) and inner.truth(body.output[0].name) is True
    started = not node.input[1] or scope.truth(node.input[1]) is True
    trips = scope.numbers.get(node.input[0]) if runs_on and started else None
    count = None if trips is None or trips.size != 1 else max(0, int(trips.reshape(-1)[0]))
    return _result(scope, node, initial, read, read.outputs[1:], count, [], inner.troubles or [])


def scan(model: Model, scope: Scope, node: NodeProto, describe: Describe) -> Inside | None:
    """The first version of Scan, with a batch axis, is not read here."""
    body = _body(node)
    sliced = integer(node, "num_scan_inputs", 0)
    if (scope.opset("") or 0) < _FIRST_OPSET_WITHOUT_BATCHES or body is None:
        return None
    if not 0 < sliced <= len(node.input) or len(body.input) != len(node.input):
        return Inside(troubles=["its body does not have the inputs it needs"])
    first = len(node.input) - sliced
    inner = subgraph_scope(model, scope, body)
    names = [value.name for value in body.input]
    _carry(scope, node.input[:first], inner, names[:first])
    axes = integers(node, "scan_input_axes") or (0,) * sliced
    count: int | None = None
    for name, formal, axis in zip(node.input[first:], names[first:], axes, strict=False):
        type_, shape = scope.types.get(name), shape_of(scope.types.get(name))
        tensor = None if type_ is None else tensor_of(type_)
        if tensor is None or shape is None or not -len(shape) <= axis < len(shape):
            return Inside(troubles=[f"its input {name!r} cannot be cut along axis {axis}"])
        count = shape[axis]
        part = tensor_type(tensor.elem_type, (size for position, size in enumerate(shape) if position != axis % len(shape)))
        inner.define(formal, part, type_bytes(part) or 0)
    read = read_subgraph(model, inner, scope, body, describe)
    return _result(
        scope, node, node.input[:first], read, read.outputs, count, integers(node, "scan_output_axes") or [], inner.troubles or []
    )


def _body(node: NodeProto) -> GraphProto | None:
    attribute = find(node, "body")
    return None if attribute is None else attribute.g


def _carry(scope: Scope, names: Sequence[str], inner: Scope, formals: Sequence[str]) -> None:
    for formal, name in zip(formals, names, strict=True):
        if name in scope.types:
            inner.define(formal, scope.types[name], scope.sizes.get(name, 0))


def _result(
    scope: Scope,
    node: NodeProto,
    initial: Sequence[str],
    read: Body,
    made: Sequence[TypeProto | None],
    count: int | None,
    axes: Sequence[int],
    troubles: Sequence[str],
) -> Inside:
    """The old state stays in memory while an iteration computes the new one."""
    workspace = read.workspace + sum(scope.sizes.get(name, 0) for name in initial)
    states, collected = made[: len(initial)], made[len(initial) :]
    if len(states) < len(initial) or not all(agree(state, scope.types.get(name)) for state, name in zip(states, initial, strict=True)):
        return Inside(workspace=workspace, troubles=[*troubles, "the shape of its state changes between iterations"])
    stacked = [_stacked(type_, count, axes[position] if position < len(axes) else 0) for position, type_ in enumerate(collected)]
    return Inside(by_name(node.output, [*states, *stacked]), None, workspace, [*troubles, "its number of iterations is not known"])


def _stacked(type_: TypeProto | None, count: int | None, axis: int) -> TypeProto | None:
    tensor = None if type_ is None else tensor_of(type_)
    shape = shape_of(type_)
    if tensor is None or shape is None or count is None or not -len(shape) - 1 <= axis <= len(shape):
        return None
    return tensor_type(tensor.elem_type, _inserted(shape, axis % (len(shape) + 1), count))


def _inserted(shape: Shape, axis: int, count: int) -> Shape:
    return (*shape[:axis], count, *shape[axis:])
