"""The valid range of an input, derived from how it is used: labels are below the number of classes, indices are in range.

Uses are followed through operators that pass values on (Reshape, Cast, Slice, ...), not through arithmetic.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from onnx import NodeProto, TypeProto

from ..onnx.proto.attributes import integer
from ..onnx.proto.model_file import plain_domain
from ..onnx.proto.stored import Array
from ..onnx.proto.tensor_types import Shape, shape_of

_HANDED_ON = frozenset(
    {
        "Identity",
        "Reshape",
        "Squeeze",
        "Unsqueeze",
        "Flatten",
        "Cast",
        "Expand",
        "Slice",
        "Transpose",
        "Tile",
        "Concat",
        "Split",
        "Gather",
        "GatherElements",
        "GatherND",
    }
)
"""The outputs of these contain values of input 0 (for Concat: of every input)."""
_DECIDE_SHAPES: Mapping[str, tuple[int, ...]] = {
    "Reshape": (1,),
    "Expand": (1,),
    "Tile": (1,),
    "ConstantOfShape": (0,),
    "Range": (0, 1, 2),
    "Slice": (1, 2, 3, 4),
    "TopK": (1,),
    "Unsqueeze": (1,),
    "Squeeze": (1,),
    "Pad": (1,),
    "Split": (1,),
    "Resize": (3,),
}
_POSITIVE: Mapping[str, tuple[int, ...]] = {
    "Sqrt": (0,),
    "Log": (0,),
    "BatchNormalization": (4,),
    "Reciprocal": (0,),
    "Div": (1,),
    "Pow": (0,),
}


@dataclass(frozen=True, slots=True)
class Bounds:
    """The range of one input."""

    below: int | None = None
    """Integers must be below this; None if no use requires it."""
    positive: bool = False
    scale: float | None = None
    """The standard deviation that keeps results in range; for a weight it shrinks with the number of terms of the sum."""
    decides_shapes: str = ""
    """The node that uses it as a shape, a size or a position."""


class Uses:
    """The readers of each tensor in a list of nodes."""

    def __init__(self, nodes: Sequence[NodeProto], types: Mapping[str, TypeProto], numbers: Mapping[str, Array]) -> None:
        self._types = types
        self._numbers = numbers
        self._readers: dict[str, list[tuple[NodeProto, int]]] = {}
        for node in nodes:
            for position, name in enumerate(node.input):
                if name:
                    self._readers.setdefault(name, []).append((node, position))

    def bounds(self, name: str) -> Bounds:
        """The range that all uses together require."""
        below: list[int] = []
        scales: list[float] = []
        positive, decides = False, ""
        pending, seen = [name], {name}
        while pending:
            tensor = pending.pop()
            for node, position in self._readers.get(tensor, ()):
                if plain_domain(node.domain):
                    continue
                limit = self._limit(node, position)
                if limit is not None:
                    below.append(limit)
                if not decides and position in _DECIDE_SHAPES.get(node.op_type, ()):
                    decides = node.name or node.op_type
                positive = positive or position in _POSITIVE.get(node.op_type, ())
                scale = self._scale(node, position)
                if scale is not None:
                    scales.append(scale)
                if node.op_type in _HANDED_ON and (position == 0 or node.op_type == "Concat"):
                    fresh = [output for output in node.output if output and output not in seen]
                    seen.update(fresh)
                    pending.extend(fresh)
        return Bounds(min(below, default=None), positive, min(scales, default=None), decides)

    def _limit(self, node: NodeProto, position: int) -> int | None:
        """Values of this input must be below the result."""
        match node.op_type, position:
            case ("Gather" | "GatherElements", 1) | ("ScatterElements" | "Scatter", 1):
                return self._size(node.input[0], integer(node, "axis", 0))
            case (("GatherND" | "ScatterND"), 1):
                shape = self._shape(node.input[0])
                return min(shape, default=None) if shape else None
            case "OneHot", 0:
                depth = self._numbers.get(node.input[1])
                return None if depth is None or depth.size != 1 else int(depth.reshape(-1)[0])
            case (("SoftmaxCrossEntropyLoss" | "NegativeLogLikelihoodLoss"), 1):
                return self._size(node.input[0], 1)
            case "MaxUnpool", 1:
                shape = self._shape(node.output[0])
                return None if shape is None else math.prod(shape)
        return None

    def _scale(self, node: NodeProto, position: int) -> float | None:
        """1 / sqrt(n), if each result is a sum of n products."""
        if position != 1:
            return None
        shape = self._shape(node.input[1])
        if not shape:
            return None
        match node.op_type:
            case "Conv":
                terms = math.prod(shape[1:])
            case "ConvTranspose":
                terms = shape[0] * math.prod(shape[2:])
            case "MatMul":
                terms = shape[-2] if len(shape) > 1 else shape[0]
            case "Gemm":
                terms = shape[1] if integer(node, "transB", 0) else shape[0]
            case _:
                return None
        return 1 / math.sqrt(max(terms, 1))

    def _shape(self, name: str) -> Shape | None:
        return shape_of(self._types.get(name))

    def _size(self, name: str, axis: int) -> int | None:
        shape = self._shape(name)
        return shape[axis] if shape and -len(shape) <= axis < len(shape) else None
