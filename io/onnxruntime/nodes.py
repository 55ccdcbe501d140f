"""The nodes of a file as onnxruntime numbers them, and the original operation of each node of a compiled model."""

from __future__ import annotations

import re
from collections.abc import Container, Sequence
from dataclasses import dataclass

from onnx import ModelProto

from ..onnx.proto.model_file import plain_domain
from ..onnx.proto.naming import operation_names

_COPY = re.compile(r"(.+)__recompute[0-9]+_*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class FileNode:
    """A node that runs."""

    name: str
    """The unique name of the operation."""
    kind: str
    own_name: str
    """The name in the file, which may be empty."""


def file_nodes(proto: ModelProto) -> list[FileNode]:
    """In the order of the file; the position is the profiler's node_index. Constants are not counted, because loading removes them."""
    nodes = proto.graph.node
    return [
        FileNode(name, node.op_type, node.name)
        for name, node in zip(operation_names(nodes), nodes, strict=True)
        if node.op_type != "Constant" or plain_domain(node.domain)
    ]


def is_from_file(index: int, kind: str, nodes: Sequence[FileNode]) -> bool:
    """True if the node that ran with this index is a node of the file, and not one that onnxruntime inserted or fused."""
    return 0 <= index < len(nodes) and nodes[index].kind == kind


def origin(name: str, originals: Container[str]) -> str | None:
    """The operation of the original that a node of the compiled model computes; None for nodes that compiling added."""
    if name in originals:
        return name
    match = _COPY.fullmatch(name)
    return match.group(1) if match and match.group(1) in originals else None
