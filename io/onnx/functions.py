"""Model-local functions, by what a node calls them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from onnx import FunctionProto, ModelProto, NodeProto

from ...core.errors import InputError
from .captures import subgraphs
from .files import plain_domain

FunctionKey = tuple[str, str, str]

_DEEPEST_CALLS = 32


def function_key(node: NodeProto) -> FunctionKey:
    return plain_domain(node.domain), node.op_type, node.overload


def local_functions(model: ModelProto) -> dict[FunctionKey, FunctionProto]:
    """Every function of the model, none of which calls itself, directly or by way of others."""
    functions: dict[FunctionKey, FunctionProto] = {}
    for function in model.functions:
        key = (plain_domain(function.domain), function.name, function.overload)
        if key in functions:
            raise InputError(f"function {function.name!r} is defined twice in domain {function.domain!r}")
        functions[key] = function
    _check_calls(functions)
    return functions


def _check_calls(functions: Mapping[FunctionKey, FunctionProto]) -> None:
    """Depth-first without recursion, so that a hostile chain of calls cannot exhaust the stack."""
    calls = {key: {callee for callee in _called(function.node) if callee in functions} for key, function in functions.items()}
    depth: dict[FunctionKey, int] = {}
    active: set[FunctionKey] = set()
    stack = list(functions)
    while stack:
        key = stack[-1]
        waiting = [] if key in depth else [callee for callee in calls[key] if callee not in depth]
        if waiting:
            active.add(key)
            if not active.isdisjoint(waiting):
                raise InputError(f"function {functions[key].name!r} calls itself: ONNX functions cannot be recursive")
            stack.extend(waiting)
        else:
            depth.setdefault(key, 1 + max((depth[callee] for callee in calls[key]), default=0))
            active.discard(key)
            stack.pop()
    if max(depth.values(), default=0) > _DEEPEST_CALLS:
        raise InputError(f"functions call one another more than {_DEEPEST_CALLS} deep: inline them with onnx.inliner")


def _called(nodes: Iterable[NodeProto]) -> Iterator[FunctionKey]:
    for node in nodes:
        yield function_key(node)
        for graph in subgraphs(node):
            yield from _called(graph.node)
