"""Model-local functions, by the domain and name that a node uses to call them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping

from onnx import FunctionProto, ModelProto, NodeProto

from ....core.errors import InputError
from .captures import subgraphs
from .model_file import plain_domain

FunctionKey = tuple[str, str, str]

_DEEPEST_CALLS = 32
_MOST_INNER_NODES = 200_000
"""Functions that call functions can expand to exponentially many nodes."""


def function_key(node: NodeProto) -> FunctionKey:
    return plain_domain(node.domain), node.op_type, node.overload


def local_functions(model: ModelProto) -> dict[FunctionKey, FunctionProto]:
    """All functions of the model. Checks that none is recursive, and that all calls together expand to a limited number of nodes."""
    functions: dict[FunctionKey, FunctionProto] = {}
    for function in model.functions:
        key = (plain_domain(function.domain), function.name, function.overload)
        if key in functions:
            raise InputError(f"function {function.name!r} is defined twice in domain {function.domain!r}")
        functions[key] = function
    weights = _weights(functions)
    if sum(weights.get(key, 0) for key in _called(model.graph.node)) > _MOST_INNER_NODES:
        raise InputError(f"the calls of functions expand to more than {_MOST_INNER_NODES} nodes, which is too many")
    return functions


def _weights(functions: Mapping[FunctionKey, FunctionProto]) -> dict[FunctionKey, int]:
    """How many nodes a call of each function expands to. Without recursion, because a long chain of calls would exhaust the stack."""
    calls = {key: Counter(_called(function.node)) for key, function in functions.items()}
    called = {key: [callee for callee in counts if callee in functions] for key, counts in calls.items()}
    depth: dict[FunctionKey, int] = {}
    weight: dict[FunctionKey, int] = {}
    active: set[FunctionKey] = set()
    stack = list(functions)
    while stack:
        key = stack[-1]
        waiting = [] if key in depth else [callee for callee in called[key] if callee not in depth]
        if waiting:
            active.add(key)
            if not active.isdisjoint(waiting):
                raise InputError(f"function {functions[key].name!r} calls itself: ONNX functions cannot be recursive")
            stack.extend(waiting)
        else:
            depth[key] = 1 + max((depth[callee] for callee in called[key]), default=0)
            weight[key] = calls[key].total() + sum(calls[key][callee] * weight[callee] for callee in called[key])
            active.discard(key)
            stack.pop()
    if max(depth.values(), default=0) > _DEEPEST_CALLS:
        raise InputError(f"functions call one another more than {_DEEPEST_CALLS} deep: inline them with onnx.inliner")
    return weight


def calls_any(nodes: Iterable[NodeProto], functions: Container[FunctionKey]) -> bool:
    """True if a node, or a node in its subgraphs, calls one of the functions."""
    return any(key in functions for key in _called(nodes))


def _called(nodes: Iterable[NodeProto]) -> Iterator[FunctionKey]:
    """The key of the function that each node would call, including nodes in subgraphs."""
    for node in nodes:
        yield function_key(node)
        for graph in subgraphs(node):
            yield from _called(graph.node)
