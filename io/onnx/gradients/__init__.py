"""Gradients of ONNX operators, in standard ONNX operators: one file per family, and this registry.

A gradient is a plain function from a `GradientContext` to one gradient per input of the node:

    def sigmoid(context: GradientContext) -> Gradients:
        y, dy = context.outputs[0], context.gradient
        slope = context.add("Mul", y, context.add("Sub", context.scalar(1.0, y), y))
        return context.only_first(lambda: context.add("Mul", dy, slope))

- `context.gradient` is the gradient of the first output, `context.gradients` of each (None if the loss does not depend on it).
- `context.wants(i)` says whether input `i` needs a gradient. Compute no others, and return None for them. Returning None for an input that
  needs a gradient is an error with a clear message. `context.each(...)` and `context.only_first(...)` take care of this.
- An input that occurs twice, as in Mul(x, x), may have one gradient for both.
- Return gradients with exactly the shape and element type of the input: `context.sum_to(value, i)` undoes broadcasting.
- Add gradients of parameters before those of data: the graph runs in the order in which nodes are added, and finished values can be freed.
- Sizes in `context.shape(name)` are numbers or, for free dimensions, names like `batch` or `2*batch`; names may be compared. Ask for
  `context.size(name, axis)` only where a number is needed: if it is free, the user gets an error that asks to set the batch size.
- The opset is 18 or newer: reductions and Squeeze take axes as an input, Split says `num_outputs`.
- `context.extra_output(i)` adds an optional output to the forward node (MaxPool's indices, LayerNormalization's mean).
- Never use ScatterND(add): onnxruntime computes it wrongly for repeated indices. ScatterElements(add) is correct.

To add an operator, write a function and add one line here.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..build.gradient_context import GradientFunction
from . import (
    activations,
    arithmetic,
    contraction,
    convolution,
    indexing,
    linear,
    loss_operators,
    normalization,
    pooling,
    recurrent,
    reductions,
    resizing,
    shaping,
)

GRADIENTS: Mapping[str, GradientFunction] = {
    "Abs": arithmetic.absolute,
    "Add": arithmetic.add,
    "AveragePool": pooling.average_pool,
    "BatchNormalization": normalization.batch_normalization,
    "Cast": shaping.cast,
    "CastLike": shaping.cast,
    "Clip": activations.clip,
    "Concat": shaping.concat,
    "Conv": convolution.conv,
    "ConvTranspose": convolution.conv_transpose,
    "Cos": arithmetic.cos,
    "CumSum": shaping.cum_sum,
    "DepthToSpace": shaping.depth_to_space,
    "Div": arithmetic.div,
    "Dropout": normalization.dropout,
    "Einsum": contraction.einsum,
    "Elu": activations.elu,
    "Erf": activations.erf,
    "Exp": arithmetic.exp,
    "Expand": shaping.expand,
    "Flatten": shaping.reshape,
    "Gather": indexing.gather,
    "GatherElements": indexing.gather_elements,
    "GatherND": indexing.gather_nd,
    "GRU": recurrent.gru,
    "Gelu": activations.gelu,
    "Gemm": linear.gemm,
    "GlobalAveragePool": pooling.global_average_pool,
    "GlobalMaxPool": pooling.global_max_pool,
    "HardSigmoid": activations.hard_sigmoid,
    "HardSwish": activations.hard_swish,
    "Identity": arithmetic.identity,
    "InstanceNormalization": normalization.instance_normalization,
    "LRN": pooling.lrn,
    "LSTM": recurrent.lstm,
    "LayerNormalization": normalization.layer_normalization,
    "LeakyRelu": activations.leaky_relu,
    "Log": arithmetic.log,
    "LogSoftmax": activations.log_softmax,
    "MatMul": linear.matmul,
    "Max": arithmetic.extremum,
    "MaxPool": pooling.max_pool,
    "Mean": arithmetic.mean,
    "Min": arithmetic.extremum,
    "Mish": activations.mish,
    "Mul": arithmetic.mul,
    "Neg": arithmetic.neg,
    "NegativeLogLikelihoodLoss": loss_operators.negative_log_likelihood_loss,
    "PRelu": activations.prelu,
    "Pad": shaping.pad,
    "Pow": arithmetic.power,
    "Reciprocal": arithmetic.reciprocal,
    "RNN": recurrent.rnn,
    "ReduceL2": reductions.reduce_l2,
    "ReduceLogSumExp": reductions.reduce_log_sum_exp,
    "ReduceMax": reductions.reduce_extremum,
    "ReduceMean": reductions.reduce_mean,
    "ReduceMin": reductions.reduce_extremum,
    "ReduceSum": reductions.reduce_sum,
    "ReduceSumSquare": reductions.reduce_sum_square,
    "Relu": activations.relu,
    "Reshape": shaping.reshape,
    "Resize": resizing.resize,
    "ScatterElements": indexing.scatter_elements,
    "ScatterND": indexing.scatter_nd,
    "Selu": activations.selu,
    "Sigmoid": activations.sigmoid,
    "Sin": arithmetic.sin,
    "Slice": shaping.slice_,
    "Softmax": activations.softmax,
    "SoftmaxCrossEntropyLoss": loss_operators.softmax_cross_entropy_loss,
    "Softplus": activations.softplus,
    "Softsign": activations.softsign,
    "SpaceToDepth": shaping.space_to_depth,
    "Split": shaping.split,
    "Sqrt": arithmetic.sqrt,
    "Squeeze": shaping.reshape,
    "Sub": arithmetic.sub,
    "Sum": arithmetic.sum_,
    "Swish": activations.swish,
    "Tanh": activations.tanh,
    "ThresholdedRelu": activations.thresholded_relu,
    "Tile": shaping.tile,
    "TopK": indexing.top_k,
    "Transpose": shaping.transpose,
    "Trilu": shaping.trilu,
    "Unsqueeze": shaping.reshape,
    "Where": arithmetic.where,
}
"""Operator -> its gradient. To add one, add a line."""

TYPE_ONLY: Mapping[str, frozenset[int]] = {"CastLike": frozenset({1})}
"""Operator -> inputs of which only the type matters, not the values."""

WITHOUT_GRADIENT = frozenset(
    {
        *("And", "ArgMax", "ArgMin", "Bernoulli", "BitShift", "BitwiseAnd", "BitwiseNot", "BitwiseOr", "BitwiseXor", "Ceil", "Constant"),
        *("ConstantOfShape", "Equal", "EyeLike", "Floor", "Greater", "GreaterOrEqual", "IsInf", "IsNaN", "Less", "LessOrEqual"),
        *("Multinomial", "NonMaxSuppression", "NonZero", "Not", "OneHot", "Or", "RandomNormal", "RandomNormalLike", "RandomUniform"),
        *("RandomUniformLike", "Range", "Round", "Shape", "Sign", "Size", "Xor"),
    }
)
"""Steps, counts and random numbers: their derivative is zero wherever it exists, so they pass no gradient."""
