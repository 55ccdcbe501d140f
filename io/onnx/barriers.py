"""Ordering barriers: a tensor that is not there before another one is, at no cost.

    kept  = Compress(late, [False])    nothing of `late`, in one dimension
    token = Cast(kept, to=int64)       no axes at all
    x'    = Unsqueeze(x, token)        `x` with no new dimensions: the same memory

Whoever reads x' runs after whoever makes `late`, whatever onnxruntime thinks of the order, and none of its optimizers sees through it.
The dimensions of x' get names that nothing else has; see `disguise`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import NodeProto, TensorProto, helper, numpy_helper

from .compiled_tensors import CompiledTensors
from .elements import INT64
from .stored import Array
from .tensor_types import tensor_type

BFLOAT16 = 16
_COMPRESSIBLE = frozenset(range(1, 14))
"""Element types that Compress takes: all that are older than bfloat16."""
_ANCHORED = _COMPRESSIBLE | {BFLOAT16}
_FIRST_OPSET_OF_COMPRESS = 9
_FIRST_OPSET_OF_SLICE_INPUTS = 10
_FIRST_OPSET_OF_UNSQUEEZE_INPUTS = 13


class Barriers:
    """Makes barriers, and the few stored tensors that all of them share."""

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
        """Where a barrier is a Reshape, onnxruntime would merge it with a Reshape that follows.

        A view that runs too early does no harm: it takes nothing, and what it looks at is there anyway.
        """
        return self._opset >= _FIRST_OPSET_OF_UNSQUEEZE_INPUTS

    def can_anchor(self, name: str) -> bool:
        """Can a barrier wait for this tensor, or hold it back?"""
        return self._tensors.element(name) in _ANCHORED

    def token_of(self, late: str) -> list[NodeProto]:
        """Nodes that make an empty list of axes from a tensor; the last of them names it."""
        self._count += 1
        nodes: list[NodeProto] = []
        element = self._tensors.element(late)
        direct = element in _COMPRESSIBLE and self._opset >= _FIRST_OPSET_OF_COMPRESS
        if not direct or self._tensors.rank(late) == 0:
            nodes.append(self._node("Reshape", [late, self._numbers("flat", [-1])], "flat"))
            late = nodes[-1].output[0]
        if direct:
            nodes.append(self._node("Compress", [late, self._condition()], "nothing"))
        elif self._opset >= _FIRST_OPSET_OF_SLICE_INPUTS:
            zero = self._numbers("zero", [0])
            nodes.append(self._node("Slice", [late, zero, zero], "nothing"))
        else:
            nodes.append(self._node("Slice", [late], "nothing", starts=[0], ends=[0], axes=[0]))
        if element != INT64:
            nodes.append(self._node("Cast", [nodes[-1].output[0]], "token", to=INT64))
        self._tensors.add(nodes[-1].output[0], tensor_type(INT64, (0,)))
        return nodes

    def held_back(self, name: str, token: str) -> list[NodeProto]:
        """Nodes that give a tensor another name, under which it is there only after the token is."""
        self._count += 1
        nodes: list[NodeProto] = []
        if self._opset >= _FIRST_OPSET_OF_UNSQUEEZE_INPUTS:
            nodes.append(self._node("Unsqueeze", [name, token], "after"))
        else:
            rank = self._tensors.rank(name)
            nodes.append(self._node("Concat", [self._numbers(f"same{rank}", [0] * rank), token], "shape", axis=0))
            self._tensors.add(nodes[-1].output[0], tensor_type(INT64, (rank,)))
            nodes.append(self._node("Reshape", [name, nodes[-1].output[0]], "after"))
        self._tensors.add(nodes[-1].output[0], self._tensors.type_of(name))
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
