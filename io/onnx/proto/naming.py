"""Names for operations. ONNX node names may be empty or repeated; ours are unique, and the same each time the file is read."""

from __future__ import annotations

from collections.abc import Sequence

from onnx import NodeProto

from .model_file import plain_domain

_BACKWARD_STARTS = "grad/"
_BACKWARD_PARTS = ("_grad", "Grad", "backward")


def kind_of(node: NodeProto) -> str:
    """The operator, with its domain unless it is a standard one."""
    domain = plain_domain(node.domain)
    return f"{domain}.{node.op_type}" if domain else node.op_type


def operation_names(nodes: Sequence[NodeProto]) -> list[str]:
    """The node's own name (`name#2` if it is repeated), else operator and position: `Conv_12`."""
    taken = {node.name for node in nodes}
    seen: set[str] = set()
    names: list[str] = []
    repeats: dict[str, int] = {}
    for position, node in enumerate(nodes):
        name = node.name or _unused(f"{node.op_type}_{position}", taken)
        if name in seen:
            repeat = repeats.get(name, 1) + 1
            while (candidate := f"{name}#{repeat}") in taken:
                repeat += 1
            repeats[name] = repeat
            name = candidate
            taken.add(name)
        seen.add(name)
        names.append(name)
    return names


def _unused(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def looks_backward(node: NodeProto) -> bool:
    """Guess by naming convention: gradients are called `grad/...`, `..._grad...`, `...Grad...` or `...backward...`."""
    return any(name.startswith(_BACKWARD_STARTS) or any(part in name for part in _BACKWARD_PARTS) for name in (node.name, *node.output))
