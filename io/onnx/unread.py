"""Outputs of a node that nobody reads: onnxruntime would hold them to the end of the run."""

from __future__ import annotations

from collections.abc import Container
from functools import cache

from onnx import NodeProto, defs

from .files import plain_domain
from .in_place import updates_in_place
from .views import is_view

_OPTIONAL_AND_TESTED = frozenset({"Dropout", "GRU", "LSTM", "LayerNormalization", "MaxPool", "RNN"})
"""Operators whose kernels in onnxruntime do without those of their outputs that the standard calls optional."""


def blanked(node: NodeProto, read: Container[str]) -> None:
    """Leave out the unread outputs that may be left out."""
    if plain_domain(node.domain) or node.op_type not in _OPTIONAL_AND_TESTED:
        return
    if all(name not in read for name in node.output):
        return
    for position, name in enumerate(node.output):
        if name and name not in read and _is_optional(node.op_type, position):
            node.output[position] = ""
    while len(node.output) > 1 and not node.output[-1]:
        del node.output[-1]


def unread_outputs(node: NodeProto, read: Container[str]) -> list[str]:
    """What is still unread and takes memory: views do not, nor do statistics that a BatchNormalization writes over its inputs."""
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
