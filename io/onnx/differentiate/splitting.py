"""Replace cross-entropy by operators that runtimes have kernels for, after its gradient was built from the single operator.

onnxruntime has no kernel for SoftmaxCrossEntropyLoss and expands it itself, at the end of its list of nodes: then all of the backward pass
that does not depend on the loss runs before it, with up to three times the memory, and the predictions are wrong.
"""

from __future__ import annotations

from onnx import NodeProto, helper

from ..build.builder import GraphBuilder
from ..proto.attributes import find
from ..proto.model_file import plain_domain

OPERATOR = "SoftmaxCrossEntropyLoss"


def split_losses(builder: GraphBuilder, forward_nodes: int) -> int:
    """Expand every plain one in place. Returns the new number of nodes of the forward pass."""
    nodes, builder.nodes = builder.nodes, []
    forward = nodes[:forward_nodes]
    for node in forward:
        if _is_plain(node):
            _write_out(builder, node)
        else:
            builder.nodes.append(node)
    grown = len(builder.nodes)
    builder.nodes += nodes[forward_nodes:]
    return grown


def _is_plain(node: NodeProto) -> bool:
    """True if it is the unweighted mean over all examples."""
    if plain_domain(node.domain) or node.op_type != OPERATOR or any(node.input[2:]):
        return False
    reduction = find(node, "reduction")
    return (reduction is None or reduction.s == b"mean") and find(node, "ignore_index") is None


def _write_out(builder: GraphBuilder, node: NodeProto) -> None:
    """Minus the mean of the log probabilities at the labels."""
    builder.prefix = node.name
    scores, labels = node.input[:2]
    logarithms = builder.add("LogSoftmax", scores, axis=1)
    if len(node.output) > 1 and node.output[1]:
        builder.tensors.rename(logarithms, node.output[1])
        logarithms = builder.nodes[-1].output[0] = node.output[1]
    places = builder.add("Unsqueeze", labels, builder.integers([1]))
    mean = builder.add("ReduceMean", builder.add("GatherElements", logarithms, places, axis=1), keepdims=0)
    builder.nodes.append(helper.make_node("Neg", [mean], [node.output[0]], name=node.name))
