"""A digest of a graph, so that a schedule can say which graph it belongs to.

It covers what a schedule depends on: operations, values, outputs and fixed memory. It does not cover the display name, the work (the same
graph can be priced in several ways; a schedule has its own costs) and the pins (a user may pin more operations for one run).
"""

from __future__ import annotations

import hashlib
import json

from .graph import Graph
from .problem import Problem


def graph_digest(graph: Graph) -> str:
    """`sha256:` and 64 hexadecimal digits, equal for equal content on every machine and version of Python."""
    content: dict[str, object] = {
        "operations": [
            [operation.name, operation.kind, operation.inputs, operation.outputs, operation.workspace, operation.view, operation.backward]
            for operation in graph.operations
        ],
        "values": [[value.name, value.bytes, value.alias_of] for value in graph.values],
        "outputs": graph.outputs,
        "fixed": dict(sorted(graph.fixed.items())),
    }
    in_place = {operation.name: operation.in_place for operation in graph.operations if operation.in_place}
    if in_place:
        content["in_place"] = in_place
    text = json.dumps(content, separators=(",", ":"), ensure_ascii=True)
    return f"sha256:{hashlib.sha256(text.encode('ascii')).hexdigest()}"


def problem_digest(problem: Problem) -> str:
    """Covers everything that a result depends on except the budget: the graph, its costs, pins, reserve and memory model."""
    content = [
        graph_digest(problem.graph),
        problem.costs.amounts,
        [operation.pinned for operation in problem.graph.operations],
        problem.base,
        problem.memory_model.value,
    ]
    return f"sha256:{hashlib.sha256(json.dumps(content, separators=(',', ':')).encode('ascii')).hexdigest()}"
