"""Barriers: make a tensor available only after another one is, without moving data.

    kept  = Compress(late, [False])    nothing of `late`, in one dimension
    token = Cast(kept, to=int64)       no axes at all
    x'    = Unsqueeze(x, token)        `x` with no new dimensions: the same memory

A node that reads x' runs after the node that makes `late`, in any order that onnxruntime chooses, and none of its optimizers removes the
barrier. onnxruntime does not know the shape of x'; see `disguise`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import NodeProto, TensorProto, helper, numpy_helper

from ..proto.elements import INT64
from ..proto.stored import Array
from ..proto.tensor_types import tensor_type
from ..read.barrier_tensors import (
    ANCHORED,
    FIRST_OPSET_OF_SLICE_INPUTS,
    FIRST_OPSET_OF_UNSQUEEZE_INPUTS,
    can_compress,
    needs_flat,
)
from .compiled_tensors import CompiledTensors

EMPTYING = frozenset({"Cast", "Compress", "Slice"})
"""The operators of a token whose outputs are empty."""


class Barriers:
    """Makes barriers, and the few initializers that all of them share."""

    def __init__(self, tensors: CompiledTensors, opset: int, unused: Callable[[str], str]) -> None:
        self._tensors = tensors
        self._opset = opset
        self._unused = unused
        self._stored: dict[str, TensorProto] = {}
        self._count = 0

    @property
    def stored(self) -> list[TensorProto]:
        return list(self._stored.values())

    @property
    def can_hold_views(self) -> bool:
        """If a barrier is a Reshape, onnxruntime would merge it with a Reshape that follows it, even one that copies a graph output."""
        return self._opset >= FIRST_OPSET_OF_UNSQUEEZE_INPUTS

    def can_anchor(self, name: str) -> bool:
        """True if a barrier can wait for this tensor, or delay it."""
        return self._tensors.element(name) in ANCHORED

    def nothing_of(self, late: str) -> list[NodeProto]:
        """Nodes that make a tensor of one dimension without elements from a tensor: they read it, and move nothing."""
        self._count += 1
        nodes: list[NodeProto] = []
        element = self._tensors.element(late)
        direct = can_compress(element, self._opset)
        if needs_flat(element or 0, self._tensors.rank(late), self._opset):
            nodes.append(self._node("Reshape", [late, self._numbers("flat", [-1])], "flat"))
            late = nodes[-1].output[0]
        if direct:
            nodes.append(self._node("Compress", [late, self._condition()], "nothing"))
        elif self._opset >= FIRST_OPSET_OF_SLICE_INPUTS:
            zero = self._numbers("zero", [0])
            nodes.append(self._node("Slice", [late, zero, zero], "nothing"))
        else:
            nodes.append(self._node("Slice", [late], "nothing", starts=[0], ends=[0], axes=[0]))
        self._tensors.add(nodes[-1].output[0], tensor_type(element or 0, (0,)))
        return nodes

    def token_of(self, late: str) -> list[NodeProto]:
        """Nodes that make an empty list of axes from a tensor; the output of the last is the token."""
        nodes = self.nothing_of(late)
        if self._tensors.element(late) != INT64:
            nodes.append(self._node("Cast", [nodes[-1].output[0]], "token", to=INT64))
        self._tensors.add(nodes[-1].output[0], tensor_type(INT64, (0,)))
        return nodes

    def held_back(self, name: str, token: str) -> list[NodeProto]:
        """Nodes that copy a tensor to a new name, without moving data, after the token is computed."""
        self._count += 1
        nodes: list[NodeProto] = []
        if self._opset >= FIRST_OPSET_OF_UNSQUEEZE_INPUTS:
            nodes.append(self._node("Unsqueeze", [name, token], "after"))
        else:
            rank = self._tensors.rank(name)
            nodes.append(self._node("Concat", [self._numbers(f"same{rank}", [0] * rank), token], "shape", axis=0))
            self._tensors.add(nodes[-1].output[0], tensor_type(INT64, (rank,)))
            nodes.append(self._node("Reshape", [name, nodes[-1].output[0]], "after"))
        self._tensors.add(nodes[-1].output[0], self._tensors.type_of(name))
        self._tensors.hide(nodes[-1].output[0])
        return nodes

    def _node(self, operator: str, inputs: list[str], role: str, **attributes: Any) -> NodeProto:
        name = self._unused(f"checkmate/{self._count}/{role}")
        return helper.make_node(operator, inputs, [name], name=name, **attributes)

    def _condition(self) -> str:
        return self._keep("checkmate/no", np.zeros(1, np.bool_))

    def _numbers(self, role: str, numbers: list[int]) -> str:
        return self._keep(f"checkmate/{role}", np.asarray(numbers, np.int64))

    def _keep(self, role: str, array: Array) -> str:
        if role not in self._stored:
            self._stored[role] = numpy_helper.from_array(array, self._unused(role))
        return self._stored[role].name
