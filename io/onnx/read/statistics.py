"""Prevent a recomputed BatchNormalization from counting a batch twice.

In training mode, outputs 2 and 3 of BatchNormalization are the updated running statistics. In the standard this is a pure function. But
onnxruntime (1.31, CPU) updates inputs 4 and 5 in place and lets the outputs share their memory, so that a second run of the same node
starts from statistics that are already updated. There are three cases:

- Nothing reads the statistics of a computation: with momentum 1 it does not change them, and its first output does not depend on momentum.
- Another operation reads them: it could read a wrong copy, so the node is pinned.
- Momentum is 0: the statistics are those of the batch, independent of their old values, so recomputing is safe. The node is not pinned,
  unless something else reads the memory that is overwritten.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import onnx

from ..proto.attributes import find
from ..proto.captures import reads
from ..proto.model_file import plain_domain


def updates_statistics(node: onnx.NodeProto) -> bool:
    if node.op_type != "BatchNormalization" or plain_domain(node.domain):
        return False
    training = find(node, "training_mode")
    return training is not None and training.i == 1


def must_run_once(node: onnx.NodeProto, readers: Counter[str]) -> bool:
    """`readers` is the number of operations that read each tensor."""
    if not updates_statistics(node) or not any(readers[name] for name in node.output[1:3]):
        return False
    momentum = find(node, "momentum")
    alone = all(readers[name] == 1 for name in node.input[3:5])
    return momentum is None or momentum.f != 0.0 or not alone


def freeze_unread_statistics(nodes: Sequence[onnx.NodeProto], outputs: Iterable[str], repeated: Iterable[onnx.NodeProto]) -> None:
    """Of the copies of a recomputed node, let only those update the statistics whose statistics are read or are graph outputs."""
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
