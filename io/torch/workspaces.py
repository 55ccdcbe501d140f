"""Workspace of operations that were not measured: estimates that are on the safe side.

A file is read without running any of its operators, so their workspace is not known; `checkmate profile` measures it. The shares below are
a little above the largest that were measured with torch 2.13 on a CPU, over ten models (convolutional networks, transformers, recurrent
networks, in float32 and bfloat16); operators that are not listed took at most 16 bytes.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch.fx import Node

from ...core.model.graph import Operation
from .internals import size_hint
from .storages import tensors_in
from .traced import TracedGraph

SHARES = {
    "convolution": 2.5,
    "convolution_backward": 2.5,
    "_native_batch_norm_legit_functional": 0.001,
    "native_batch_norm_backward": 0.34,
    "native_layer_norm_backward": 0.05,
    "native_dropout": 0.5,
    "native_dropout_backward": 0.5,
    "_safe_softmax": 0.3,
    "_scaled_dot_product_flash_attention_for_cpu": 0.25,
    "_scaled_dot_product_flash_attention_for_cpu_backward": 0.4,
}
"""Of the bytes of all inputs and outputs."""
SHORT_SHARES = {"mm": 2.6, "addmm": 2.0, "bmm": 2.6, "gelu_backward": 0.7}
"""The same where a tensor is of a 16-bit type, which some kernels convert."""
LEAST = 64
"""Bytes: numbers in place of tensors."""


def with_estimates(traced: TracedGraph) -> TracedGraph:
    """The same graph with an estimated workspace for every operation."""
    operations = (_estimated(traced, number, operation) for number, operation in enumerate(traced.graph.operations))
    return replace(traced, graph=replace(traced.graph, operations=tuple(operations)))


def _estimated(traced: TracedGraph, number: int, operation: Operation) -> Operation:
    if operation.view or not traced.nodes[number]:
        return operation
    node = traced.nodes[number][0]
    name = operation.kind.removeprefix("aten.").split(".")[0]
    tensors = [tensor for each in (node, *node.all_input_nodes) for _, tensor in tensors_in(each.meta.get("val"))]
    short = any(tensor.dtype in (torch.bfloat16, torch.float16) for tensor in tensors)
    share = SHARES.get(name, SHORT_SHARES.get(name, 0.0) if short else 0.0)
    return replace(operation, workspace=max(LEAST, int(share * (operation.work.moved_bytes or 0)), _converted(node)))


def _converted(node: Node) -> int:
    """Bytes of the inputs that an operator with inputs of several types converts to that of its result (bfloat16 + float32)."""
    results = [tensor for _, tensor in tensors_in(node.meta.get("val"))]
    inputs = [tensor for each in node.all_input_nodes for _, tensor in tensors_in(each.meta.get("val"))]
    if len(results) != 1 or len({each.dtype for each in inputs}) < 2:
        return 0
    other = [each for each in inputs if each.dtype.is_floating_point and each.dtype != results[0].dtype]
    return sum((size_hint(each.numel()) or 0) * results[0].element_size() for each in other)
