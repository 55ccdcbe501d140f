"""Operators whose output is their first input with another shape or name: onnxruntime gives it the same buffer."""

from __future__ import annotations

from collections.abc import Container

from onnx import NodeProto

from .model_file import plain_domain

_VIEWS = frozenset({"Flatten", "Identity", "Optional", "OptionalGetElement", "Reshape", "Squeeze", "Unsqueeze"})


def is_view(node: NodeProto, graph_outputs: Container[str]) -> bool:
    """Graph outputs share no buffer, so a view that makes a graph output copies. Dropout copies too, even at inference."""
    if node.op_type not in _VIEWS or plain_domain(node.domain) or not node.input or not node.input[0]:
        return False
    return not any(name in graph_outputs for name in node.output)
