"""Replace If nodes by the branch that runs, where that is known: the condition is a constant, or computed from constants and shapes."""

from __future__ import annotations

from collections.abc import Mapping

from onnx import GraphProto, NodeProto, TensorProto, helper

from ....core.errors import InputError
from ..build.known_tensors import FLOATS
from ..proto.attributes import find
from ..proto.captures import captured, reads, subgraphs
from ..proto.model_file import plain_domain
from ..proto.rebinding import rename_reads
from .forward_model import Forward

_DEEPEST = 16
"""Branches in branches are replaced one level at a time; real models have two or three levels."""


def take_known_branches(forward: Forward) -> None:
    for _ in range(_DEEPEST):
        conditions = {node.input[0] for node in forward.nodes if _is_if(node) and node.input}
        if not conditions:
            return
        tensors = forward.tensors()
        known: dict[str, bool] = {}
        for name in conditions:
            numbers = tensors.numbers(name)
            if numbers is not None and numbers.size == 1:
                known[name] = bool(numbers.reshape(-1)[0])
        if not known:
            return
        _inline(forward, known)


def _is_if(node: NodeProto) -> bool:
    return node.op_type == "If" and not plain_domain(node.domain)


def _inline(forward: Forward, known: Mapping[str, bool]) -> None:
    taken = {name for node in forward.nodes for name in (node.name, *node.output)} | set(forward.initializers)
    taken |= {value.name for value in forward.inputs}
    nodes: list[NodeProto] = []
    for node in forward.nodes:
        if not _is_if(node) or not node.input or node.input[0] not in known:
            nodes.append(node)
            continue
        attribute = find(node, "then_branch" if known[node.input[0]] else "else_branch")
        if attribute is None or len(attribute.g.output) != len(node.output):
            raise InputError(f"node {node.name!r} (If) has no branch with its outputs: the file is damaged")
        nodes += _branch(forward, node, attribute.g, taken)
    forward.nodes = nodes


def _branch(forward: Forward, node: NodeProto, graph: GraphProto, taken: set[str]) -> list[NodeProto]:
    """The nodes of a branch under names that nothing else has. What it makes gets the names of the outputs of the If."""
    if graph.sparse_initializer:
        raise InputError(f"initializer {graph.sparse_initializer[0].values.name!r} is sparse: store it as a dense tensor to train it")
    own = [tensor.name for tensor in graph.initializer] + [name for inner in graph.node for name in inner.output if name]
    names = {name: _unused(name, node.name, taken) for name in own}
    results = dict(zip((value.name for value in graph.output), node.output, strict=True))
    made_here = {name for inner in graph.node for name in inner.output}
    direct = {inner: outer for inner, outer in results.items() if inner in made_here and outer}
    names.update(direct)
    for tensor in graph.initializer:
        copy = TensorProto()
        copy.CopyFrom(tensor)
        copy.name = names[tensor.name]
        forward.initializers[copy.name] = copy
    made = []
    for inner in graph.node:
        copied = NodeProto()
        copied.CopyFrom(inner)
        copied.name = _unused(inner.name or f"{node.name}/{inner.op_type}", node.name, taken)
        rename_reads(copied, names)
        for position, name in enumerate(copied.output):
            copied.output[position] = names.get(name, name)
        made.append(copied)
    for inner_name, outer in zip((value.name for value in graph.output), node.output, strict=True):
        source = names.get(inner_name, inner_name)
        if outer and source != outer:
            made.append(helper.make_node("Identity", [source], [outer], name=_unused(outer, node.name, taken)))
    return made


def _unused(name: str, prefix: str, taken: set[str]) -> str:
    candidate = name if name not in taken else f"{prefix}/{name}"
    while candidate in taken:
        candidate += "_"
    taken.add(candidate)
    return candidate


def weights_in_subgraphs(forward: Forward) -> tuple[int, NodeProto]:
    """How many stored floating-point tensors only subgraphs use, and the node with the most of them."""
    weights = {name for name, tensor in forward.initializers.items() if tensor.data_type in FLOATS and tensor.dims}
    counts = [sum(_weights(graph) + len(weights.intersection(captured(graph))) for graph in subgraphs(node)) for node in forward.nodes]
    most = max(counts, default=0)
    return sum(counts), forward.nodes[counts.index(most)] if most else NodeProto()


def _weights(graph: GraphProto) -> int:
    constants = (find(node, "value") for node in graph.node if node.op_type == "Constant")
    tensors = [*graph.initializer, *(constant.t for constant in constants if constant is not None)]
    own = sum(tensor.data_type in FLOATS and len(tensor.dims) > 0 for tensor in tensors)
    return own + sum(_weights(inner) for node in graph.node for inner in subgraphs(node))


def condition_inputs(forward: Forward, node: NodeProto) -> list[str]:
    """The graph inputs that the condition of an If depends on."""
    inputs = {value.name for value in forward.inputs}
    makers = {name: maker for maker in forward.nodes for name in maker.output}
    found: dict[str, None] = {}
    pending, seen = list(node.input[:1]), set(node.input[:1])
    while pending:
        name = pending.pop()
        if name in inputs:
            found[name] = None
        for below in reads(makers[name]) if name in makers else ():
            if below not in seen:
                seen.add(below)
                pending.append(below)
    return list(found)
