"""The nodes of a file as onnxruntime numbers them, and which operation of the original each node of a compiled model computes again."""

from __future__ import annotations

import re
from collections.abc import Container, Sequence
from dataclasses import dataclass

from onnx import ModelProto

from ..onnx.files import plain_domain
from ..onnx.naming import operation_names

_COPY = re.compile(r"(.+)__recompute[0-9]+_*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class FileNode:
    """A node that runs."""

    name: str
    """Of the operation, which is unique."""
    kind: str
    own_name: str
    """As in the file, where it may be empty."""


def file_nodes(proto: ModelProto) -> list[FileNode]:
    """In the order of the file; position is what the profiler calls node_index. Constants are no nodes once a model is loaded."""
    nodes = proto.graph.node
    return [
        FileNode(name, node.op_type, node.name)
        for name, node in zip(operation_names(nodes), nodes, strict=True)
        if node.op_type != "Constant" or plain_domain(node.domain)
    ]


def is_from_file(index: int, kind: str, nodes: Sequence[FileNode]) -> bool:
    """Is what ran under this number a node of the file, not one that onnxruntime inserted or fused?"""
    return 0 <= index < len(nodes) and nodes[index].kind == kind


def origin(name: str, originals: Container[str]) -> str | None:
    """The operation of the original that a node of the compiled model computes; None for what compiling added."""
    if name in originals:
        return name
    match = _COPY.fullmatch(name)
    return match.group(1) if match and match.group(1) in originals else None
