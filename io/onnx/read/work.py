"""How much an operation computes and moves. A multiplication and an addition are two FLOPs.

`FORMULAS` maps an operator to its formula; to add an operator, add one line. Operators without a formula (mostly data movement) have only
bytes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from onnx import NodeProto

from ..proto import attributes
from ..proto.tensor_types import Shape

LARGEST_FLOPS = 1e30


@dataclass(frozen=True, slots=True)
class Call:
    """A node with the shapes of its inputs and outputs; None for an omitted one or one that is not a tensor."""

    node: NodeProto
    inputs: Sequence[Shape | None]
    outputs: Sequence[Shape | None]

    def input(self, position: int) -> Shape:
        shape = self.inputs[position]
        if shape is None:
            raise LookupError
        return shape

    def has_input(self, position: int) -> bool:
        return position < len(self.inputs) and self.inputs[position] is not None

    @property
    def made(self) -> int:
        """Elements of the first output that is present."""
        return next(math.prod(shape) for shape in self.outputs if shape is not None)

    @property
    def read(self) -> int:
        """Elements of the first input."""
        return math.prod(self.input(0))


Formula = Callable[[Call], float]


def _per_output(factor: float) -> Formula:
    return lambda call: factor * call.made


def _per_input(factor: float) -> Formula:
    return lambda call: factor * call.read


def _folded_inputs(call: Call) -> float:
    """Sum, Max and similar operators: one operation for each further input."""
    return max(1, len(call.inputs) - 1) * call.made


def _conv(weight: int, bias: int | None = None) -> Formula:
    def formula(call: Call) -> float:
        additions = call.made if bias is not None and call.has_input(bias) else 0
        return 2 * call.made * math.prod(call.input(weight)[1:]) + additions

    return formula


def _conv_transpose(call: Call) -> float:
    return 2 * call.read * math.prod(call.input(1)[1:]) + (call.made if call.has_input(2) else 0)


def _matmul(call: Call) -> float:
    return 2 * call.made * call.input(0)[-1]


def _gemm(call: Call) -> float:
    depth = call.input(0)[0 if attributes.integer(call.node, "transA", 0) else 1]
    return 2 * call.made * depth + (call.made if call.has_input(2) else 0)


def _einsum(call: Call) -> float:
    """One multiplication and one addition (for two operands) for every combination of indices."""
    equation = attributes.text(call.node, "equation", "").replace(" ", "")
    terms = equation.split("->")[0].split(",")
    if "." in equation or not 1 <= len(terms) <= 2 or len(terms) != len(call.inputs):
        raise LookupError
    sizes: dict[str, int] = {}
    for position, term in enumerate(terms):
        sizes.update(zip(term, call.input(position), strict=True))
    return len(terms) * math.prod(sizes.values())


def _pool(call: Call) -> float:
    return call.made * math.prod(attributes.integers(call.node, "kernel_shape") or ())


def _local_response(call: Call) -> float:
    return call.read * (2 * attributes.integer(call.node, "size", 1) + 8)


def _recurrent(call: Call) -> float:
    """X is steps x batch x features in either layout; W and R contain all gates and directions."""
    steps_and_batch = math.prod(call.input(0)[:2])
    return 2 * steps_and_batch * (math.prod(call.input(1)) + math.prod(call.input(2)))


def _attention(call: Call) -> float:
    """Scores, softmax, weighted sum. Heads are an axis of their own, or folded into the last one."""
    query, key, value = call.input(0), call.input(1), call.input(2)
    past = call.input(4)[2] if call.has_input(4) else 0
    if len(query) == 4:
        heads, depth, value_depth, keys = query[1], query[3], value[3], key[2] + past
        queries = query[2]
    else:
        heads = attributes.integer(call.node, "q_num_heads", 1)
        depth, value_depth = query[2] // heads, value[2] // attributes.integer(call.node, "kv_num_heads", heads)
        queries, keys = query[1], key[1] + past
    return query[0] * heads * queries * keys * (2 * depth + 2 * value_depth + 5)


def _top_k(call: Call) -> float:
    kept = (call.outputs[0] or call.outputs[1] or ())[attributes.integer(call.node, "axis", -1)]
    return call.read * math.log2(max(2, kept))


def _resize(call: Call) -> float:
    mode = attributes.text(call.node, "mode", "nearest")
    return {"nearest": 1, "linear": 8, "cubic": 32}[mode] * call.made


FORMULAS: Mapping[str, Formula] = {
    "Conv": _conv(weight=1, bias=2),
    "ConvInteger": _conv(weight=1),
    "QLinearConv": _conv(weight=3, bias=8),
    "DeformConv": _conv(weight=1, bias=3),
    "ConvTranspose": _conv_transpose,
    "MatMul": _matmul,
    "MatMulInteger": _matmul,
    "QLinearMatMul": _matmul,
    "Gemm": _gemm,
    "Einsum": _einsum,
    "Attention": _attention,
    "RNN": _recurrent,
    "GRU": _recurrent,
    "LSTM": _recurrent,
    "AveragePool": _pool,
    "LpPool": _pool,
    "MaxPool": _pool,
    "GlobalAveragePool": _per_input(1),
    "GlobalLpPool": _per_input(2),
    "GlobalMaxPool": _per_input(1),
    "BatchNormalization": _per_input(4),
    "GroupNormalization": _per_input(8),
    "InstanceNormalization": _per_input(8),
    "LayerNormalization": _per_input(8),
    "LpNormalization": _per_input(4),
    "LRN": _local_response,
    "MeanVarianceNormalization": _per_input(8),
    "RMSNormalization": _per_input(5),
    "Hardmax": _per_input(2),
    "LogSoftmax": _per_input(6),
    "Softmax": _per_input(5),
    "NegativeLogLikelihoodLoss": _per_input(1),
    "SoftmaxCrossEntropyLoss": _per_input(7),
    "DequantizeLinear": _per_output(2),
    "DynamicQuantizeLinear": _per_input(5),
    "QuantizeLinear": _per_output(3),
    "Dropout": _per_output(2),
    "Resize": _resize,
    "RotaryEmbedding": _per_output(3),
    "Upsample": _resize,
    "TopK": _top_k,
    "CumSum": _per_input(1),
    **dict.fromkeys(("ArgMax", "ArgMin", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum"), _per_input(1)),
    **dict.fromkeys(("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceSumSquare"), _per_input(2)),
    "ReduceLogSumExp": _per_input(6),
    **dict.fromkeys(("Max", "Mean", "Min", "Sum"), _folded_inputs),
    **dict.fromkeys(("Abs", "Add", "Ceil", "Clip", "Div", "Floor", "Mul", "Neg", "Relu", "Round", "Sign", "Sub"), _per_output(1)),
    **dict.fromkeys(("And", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Not", "Or", "Where", "Xor"), _per_output(1)),
    **dict.fromkeys(("BitShift", "BitwiseAnd", "BitwiseNot", "BitwiseOr", "BitwiseXor", "IsInf", "IsNaN"), _per_output(1)),
    **dict.fromkeys(("LeakyRelu", "Mod", "PRelu", "Reciprocal", "Shrink", "Sqrt", "ThresholdedRelu"), _per_output(2)),
    **dict.fromkeys(("HardSigmoid", "HardSwish", "Softsign"), _per_output(3)),
    **dict.fromkeys(("Celu", "Elu", "Exp", "Log", "Selu", "Sigmoid", "Softplus", "Swish", "SwiGLU", "Tanh"), _per_output(6)),
    **dict.fromkeys(("Cos", "Cosh", "Erf", "Pow", "Sin", "Sinh", "Tan"), _per_output(8)),
    **dict.fromkeys(("Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Gelu", "Mish"), _per_output(12)),
}


def flops(kind: str, call: Call) -> float | None:
    """FLOPs by formula; None if there is no formula or the node does not match it."""
    formula = FORMULAS.get(kind)
    if formula is None:
        return None
    try:
        return min(float(formula(call)), LARGEST_FLOPS)
    except (LookupError, ValueError, ArithmeticError, StopIteration):
        return None


_LOOKS_AT_SHAPES_ONLY = frozenset({"Shape", "Size"})
_READS_WHAT_IT_TAKES = frozenset({"Gather", "GatherElements", "GatherND", "Slice", "Compress"})
"""These read only the part of their first input that they copy: an embedding table is not read completely."""


def moved_bytes(kind: str, read: Sequence[int], made: int) -> int:
    """Bytes read and written; `read` are the sizes of the inputs, parameters included, the first one first."""
    if kind in _LOOKS_AT_SHAPES_ONLY:
        return made
    if kind in _READS_WHAT_IT_TAKES and read:
        return min(read[0], made) + sum(read[1:]) + made
    return sum(read) + made
