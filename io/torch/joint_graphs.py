"""The joint graphs that torch.compile makes of a model's forward and backward pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch.fx import GraphModule, Node

from .internals import gradient_of, is_backward_node, is_tangent, mutated_input, outputs_of
from .roles import BUFFERS, INPUTS, PARAMETERS, Roles
from .traced import TracedGraph, read_traced


def joint_roles(joint: GraphModule, forward_count: int, static: Sequence[int] = (), parameters: Sequence[int] = ()) -> Roles:
    """What the placeholders and outputs of a joint graph are.

    `forward_count` is the number of outputs of the forward pass. Placeholders with these numbers are parameters or static: parameters and
    buffers.
    """
    placeholders = joint.graph.find_nodes(op="placeholder")
    tangents = tuple(node for node in placeholders if is_tangent(node))
    outputs, described = outputs_of(joint.graph)
    by_description = {node.meta.get("desc"): node for node in placeholders}
    written: dict[Node, Node] = {}
    held: list[Node] = []
    for node, description in zip(outputs[:forward_count], described[:forward_count], strict=True):
        if not isinstance(node, Node):
            continue
        target = by_description.get(mutated_input(description)) if mutated_input(description) is not None else None
        if target is None:
            held.append(node)
        else:
            written[target] = node
    replaced = frozenset(written.values())
    """An output that is also the new value of an input: the caller gets the input itself."""
    known, kept = frozenset(parameters), frozenset(static)
    kinds = {
        node: PARAMETERS if number in known else BUFFERS if number in kept else INPUTS
        for number, node in enumerate(placeholders)
        if node not in tangents and isinstance(node.meta.get("val"), torch.Tensor)
    }
    returned = [(node, by_description.get(gradient_of(each))) for node, each in zip(outputs, described, strict=True)][forward_count:]
    return Roles(
        fixed=kinds,
        returned=tuple(node for node, _ in returned if isinstance(node, Node)),
        gradients=tuple(node for node, of in returned if isinstance(node, Node) and of is not None and kinds.get(of) == PARAMETERS),
        tangents=tangents,
        held=tuple(node for node in held if node not in replaced),
        written=written,
        forward_count=forward_count,
        backward=frozenset(node for node in joint.graph.nodes if is_backward_node(node)),
    )


def read_joint(joint: GraphModule, roles: Roles, name: str, **changes: Any) -> TracedGraph:
    return read_traced(joint.graph, replace(roles, **changes) if changes else roles, name)
