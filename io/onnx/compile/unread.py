"""What nothing reads: recomputations, which are left out, and outputs of a node, which onnxruntime would keep to the end of the run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Sequence
from functools import cache

from onnx import NodeProto, defs

from ....core.model.graph import Graph
from ..proto.model_file import plain_domain
from ..proto.view_operators import is_view
from ..read.in_place import updates_in_place

_OPTIONAL_AND_TESTED = frozenset({"Dropout", "GRU", "LSTM", "LayerNormalization", "MaxPool", "RNN"})
"""Operators whose kernels in onnxruntime accept that outputs which are optional in the standard are omitted."""


def without_unread(graph: Graph, computations: Sequence[int]) -> list[int]:
    """Leave out recomputations that nothing reads: they would take time, and memory until a sink frees them.

    An operation that nothing reads at all runs once, as in the original, where it was computed first.
    """
    awaited = [False] * len(graph.values)
    for value in graph.outputs:
        awaited[value] = True
    left = Counter(computations)
    runs: set[int] = set()
    chosen: list[int] = []
    for operation in reversed(computations):
        left[operation] -= 1
        outputs = graph.operations[operation].outputs
        if not any(awaited[value] for value in outputs) and (operation in runs or left[operation]):
            continue
        runs.add(operation)
        chosen.append(operation)
        for value in outputs:
            awaited[value] = False
        for value in graph.operations[operation].inputs:
            awaited[value] = True
    return chosen[::-1]


def blanked(node: NodeProto, read: Container[str]) -> None:
    """Remove the unread outputs that may be omitted."""
    if plain_domain(node.domain) or node.op_type not in _OPTIONAL_AND_TESTED:
        return
    if all(name not in read for name in node.output):
        return
    for position, name in enumerate(node.output):
        if name and name not in read and _is_optional(node.op_type, position):
            node.output[position] = ""
    while not node.output[-1]:
        del node.output[-1]


def unread_outputs(node: NodeProto, read: Container[str]) -> list[str]:
    """Unread outputs that have their own memory; views have none, nor have statistics that a BatchNormalization writes over its inputs."""
    names = [name for name in node.output if name and name not in read]
    if is_view(node, read):
        return []
    if not plain_domain(node.domain) and updates_in_place(node):
        return [name for name in names if name == node.output[0]]
    return names


@cache
def _is_optional(operator: str, position: int) -> bool:
    outputs = defs.get_schema(operator).outputs
    return position < len(outputs) and outputs[position].option == defs.OpSchema.FormalParameterOption.Optional
