"""Keep recomputed batch normalization from counting a batch twice.

In training mode BatchNormalization gives updated running statistics as outputs 2 and 3. By the standard that is a pure function; but
onnxruntime (1.31, CPU) updates inputs 4 and 5 in place and lets the outputs share their memory, so that a second run of the same node
starts from statistics that were updated already. Where nobody reads the statistics of a computation, momentum 1 leaves them as they are;
its first output does not depend on it. Where another operation reads them, two copies could be read, one of them wrong: such a node is
pinned. With momentum 0 the statistics are those of the batch, whatever they were before: any number of runs gives the same, and nothing is
pinned as long as nobody else reads the memory that is written over.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import onnx

from .attributes import find
from .captures import reads
from .files import plain_domain


def updates_statistics(node: onnx.NodeProto) -> bool:
    if node.op_type != "BatchNormalization" or plain_domain(node.domain):
        return False
    training = find(node, "training_mode")
    return training is not None and training.i == 1


def must_run_once(node: onnx.NodeProto, readers: Counter[str]) -> bool:
    """`readers` says how many operations read each tensor."""
    if not updates_statistics(node) or not any(readers[name] for name in node.output[1:3]):
        return False
    momentum = find(node, "momentum")
    alone = all(readers[name] == 1 for name in node.input[3:5])
    return momentum is None or momentum.f != 0.0 or not alone


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
