"""Keep recomputed batch normalization from counting a batch twice.

In training mode BatchNormalization gives updated running statistics as outputs 2 and 3. By the standard that is a pure function; but
onnxruntime (1.31, CPU) updates inputs 4 and 5 in place and lets the outputs share their memory, so that a second run of the same node
starts from statistics that were updated already. Where nobody reads the statistics of a computation, momentum 1 leaves them as they are;
its first output does not depend on it. Where another operation reads them, two copies could be read, one of them wrong: such a node is
pinned.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence

import onnx

from .attributes import find
from .captures import reads
from .files import plain_domain


def updates_statistics(node: onnx.NodeProto) -> bool:
    if node.op_type != "BatchNormalization" or plain_domain(node.domain):
        return False
    training = find(node, "training_mode")
    return training is not None and training.i == 1


def must_run_once(node: onnx.NodeProto, read: Container[str]) -> bool:
    """`read` are the tensors that some operation reads."""
    return updates_statistics(node) and any(name in read for name in node.output[1:3])


def freeze_unread_statistics(nodes: Sequence[onnx.NodeProto], outputs: Iterable[str], repeated: Iterable[onnx.NodeProto]) -> None:
    """Among nodes that are computed more than once, let only those update statistics whose statistics are read or given back."""
    chosen = [node for node in repeated if updates_statistics(node)]
    if not chosen:
        return
    used = set(outputs)
    for node in nodes:
        used.update(reads(node))
    for node in chosen:
        if used.isdisjoint(node.output[1:]):
            kept = [attribute for attribute in node.attribute if attribute.name != "momentum"]
            del node.attribute[:]
            node.attribute.extend([*kept, onnx.helper.make_attribute("momentum", 1.0)])
