"""Keep recomputed batch normalization from counting a batch twice.

In training mode BatchNormalization gives updated running statistics as outputs 2 and 3. By the standard that is a pure function; but
onnxruntime (1.31, CPU) updates inputs 4 and 5 in place and lets the outputs share their memory, so that a second run of the same node
starts from statistics that were updated already. Where nobody reads the statistics of a computation, momentum 1 leaves them as they are;
its first output does not depend on it.
"""

from __future__ import annotations

from collections.abc import Iterable

import onnx

from .attributes import find
from .captures import reads
from .files import plain_domain


def updates_statistics(node: onnx.NodeProto) -> bool:
    if node.op_type != "BatchNormalization" or plain_domain(node.domain):
        return False
    training = find(node, "training_mode")
    return training is not None and training.i == 1


def freeze_unread_statistics(graph: onnx.GraphProto, repeated: Iterable[onnx.NodeProto]) -> None:
    """Among nodes that are computed more than once, let only those update statistics whose statistics are read or given back."""
    chosen = list(repeated)
    if not chosen:
        return
    used = {info.name for info in graph.output}
    for node in graph.node:
        used.update(reads(node))
    for node in chosen:
        if used.isdisjoint(node.output[1:]):
            kept = [attribute for attribute in node.attribute if attribute.name != "momentum"]
            del node.attribute[:]
            node.attribute.extend([*kept, onnx.helper.make_attribute("momentum", 1.0)])
