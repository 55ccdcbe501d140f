"""Names in nested graphs: the body of an If, Loop or Scan may read any name of the graphs around it, unless it defines that name itself."""

from __future__ import annotations

from collections.abc import Mapping

import onnx

from .captures import subgraphs

NOTHING: frozenset[str] = frozenset()


def defined_names(graph: onnx.GraphProto) -> set[str]:
    """Names of tensors that a graph defines, without those of its subgraphs."""
    names = {info.name for info in graph.input}
    names.update(tensor.name for tensor in graph.initializer)
    names.update(tensor.values.name for tensor in graph.sparse_initializer)
    for node in graph.node:
        names.update(node.output)
    return names


def all_names(graph: onnx.GraphProto) -> set[str]:
    """All names of tensors and nodes in a graph and its subgraphs; a new name must differ from these."""
    names = defined_names(graph)
    names.update(info.name for info in (*graph.output, *graph.value_info))
    for node in graph.node:
        names.add(node.name)
        names.update(node.input)
        for subgraph in subgraphs(node):
            names |= all_names(subgraph)
    return names


def rename_reads(node: onnx.NodeProto, current: Mapping[str, str], hidden: frozenset[str] = NOTHING) -> None:
    """Rename what a node and its subgraphs read. `hidden` names are defined by an enclosing subgraph and stay."""
    for position, name in enumerate(node.input):
        if name in current and name not in hidden:
            node.input[position] = current[name]
    for subgraph in subgraphs(node):
        _rename_captures(subgraph, current, hidden | defined_names(subgraph))


def _rename_captures(subgraph: onnx.GraphProto, current: Mapping[str, str], hidden: frozenset[str]) -> None:
    for node in subgraph.node:
        rename_reads(node, current, hidden)
    for info in (*subgraph.output, *subgraph.value_info):
        if info.name in current and info.name not in hidden:
            info.name = current[info.name]
    for annotation in subgraph.quantization_annotation:
        if annotation.tensor_name in current and annotation.tensor_name not in hidden:
            annotation.tensor_name = current[annotation.tensor_name]
        for entry in annotation.quant_parameter_tensor_names:
            if entry.value in current and entry.value not in hidden:
                entry.value = current[entry.value]
