"""Attributes of nodes; in a function body, an attribute may refer to an attribute of the call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from onnx import AttributeProto, GraphProto, NodeProto


def find(node: NodeProto, name: str) -> AttributeProto | None:
    return next((attribute for attribute in node.attribute if attribute.name == name), None)


def integer(node: NodeProto, name: str, default: int) -> int:
    attribute = find(node, name)
    return default if attribute is None else attribute.i


def integers(node: NodeProto, name: str) -> Sequence[int] | None:
    attribute = find(node, name)
    return None if attribute is None else tuple(attribute.ints)


def text(node: NodeProto, name: str, default: str) -> str:
    attribute = find(node, name)
    return default if attribute is None else attribute.s.decode("utf-8", "replace")


def bound(node: NodeProto, given: Mapping[str, AttributeProto], absent: frozenset[str]) -> NodeProto:
    """A node of a function body for one call: references to attributes are resolved, inputs that the call omits are blank."""
    if not _needs_binding(node, absent):
        return node
    copy = NodeProto()
    copy.CopyFrom(node)
    _bind(copy, given, absent)
    return copy


def _needs_binding(node: NodeProto, absent: frozenset[str]) -> bool:
    return (bool(absent) and any(name in absent for name in node.input)) or any(
        attribute.ref_attr_name or attribute.HasField("g") or attribute.graphs for attribute in node.attribute
    )


def _bind(node: NodeProto, given: Mapping[str, AttributeProto], absent: frozenset[str]) -> None:
    for position, name in enumerate(node.input):
        if name in absent:
            node.input[position] = ""
    kept: list[AttributeProto] = []
    for attribute in node.attribute:
        if not attribute.ref_attr_name:
            kept.append(attribute)
        elif attribute.ref_attr_name in given:
            copy = AttributeProto()
            copy.CopyFrom(given[attribute.ref_attr_name])
            copy.name = attribute.name
            kept.append(copy)
    graphs: list[GraphProto] = [attribute.g for attribute in kept if attribute.HasField("g")]
    graphs += [graph for attribute in kept for graph in attribute.graphs]
    for graph in graphs:
        for inner in graph.node:
            _bind(inner, given, absent)
    if len(kept) != len(node.attribute) or any(attribute.ref_attr_name for attribute in node.attribute):
        replacement = NodeProto()
        replacement.attribute.extend(kept)
        node.ClearField("attribute")
        node.attribute.extend(replacement.attribute)
