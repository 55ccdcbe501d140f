"""What a node reads: its inputs, and the outer values that its subgraphs use."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import AttributeProto, GraphProto, NodeProto


def reads(node: NodeProto) -> list[str]:
    """Every tensor that a node reads, without duplicates: inputs in order, then captured ones."""
    names = dict.fromkeys(name for name in node.input if name)
    for graph in subgraphs(node):
        names.update(dict.fromkeys(captured(graph)))
    return list(names)


def subgraphs(node: NodeProto) -> Iterator[GraphProto]:
    """The subgraphs of a node, which are attributes: branches of If, bodies of Loop and Scan."""
    for attribute in node.attribute:
        if attribute.type == AttributeProto.GRAPH:
            yield attribute.g
        elif attribute.type == AttributeProto.GRAPHS:
            yield from attribute.graphs


def captured(graph: GraphProto) -> list[str]:
    """Names that a subgraph uses but does not define, including those in its own subgraphs."""
    own = {value.name for value in graph.input}
    own.update(tensor.name for tensor in graph.initializer)
    own.update(sparse.values.name for sparse in graph.sparse_initializer)
    own.update(name for node in graph.node for name in node.output)
    used = dict.fromkeys(name for node in graph.node for name in reads(node))
    used.update(dict.fromkeys(value.name for value in graph.output))
    return [name for name in used if name and name not in own]
