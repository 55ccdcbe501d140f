"""The operators of the samples with their gradients, in standard ONNX operators.

Each function emits the forward part and leaves its gradient rule on the tape. Rules emit parameter gradients before the gradient of the
data, so that the layer's input can be freed before the next gradient takes its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

from .training import BOOL, INT64, Shape, Tensor, TrainingGraph

SWAPPED = [1, 0, 2, 3]
"""Batch and channels change places."""


def convolution(graph: TrainingGraph, name: str, x: Tensor, channels: int, kernel: int = 3, *, bias: bool = False) -> Tensor:
    """Stride 1, padded so that height and width stay."""
    batch, depth, height, width = x.shape
    pads = [kernel // 2] * 4
    weight = graph.parameter(f"{name}.weight", (channels, depth, kernel, kernel))
    inputs = [x, weight]
    if bias:
        inputs.append(graph.parameter(f"{name}.bias", (channels,)))
    y = graph.emit("Conv", name, inputs, (batch, channels, height, width), kernel_shape=[kernel, kernel], pads=pads)

    def rule(gradients: Sequence[Tensor]) -> None:
        (dy,) = gradients
        if bias:
            graph.contribute(inputs[2], "ReduceSum", [dy, graph.integers(0, 2, 3)], keepdims=0)
        _convolution_weight_gradient(graph, name, x, dy, weight, pads, stride=1)
        graph.contribute(x, "ConvTranspose", [dy, weight], kernel_shape=[kernel, kernel], pads=pads)

    graph.differentiate([y], inputs, rule)
    return y


def upsampling(graph: TrainingGraph, name: str, x: Tensor, channels: int) -> Tensor:
    """Twice the height and width, by a ConvTranspose of stride 2. Its gradients are those of a Conv with input and output exchanged."""
    batch, depth, height, width = x.shape
    weight = graph.parameter(f"{name}.weight", (depth, channels, 2, 2))
    y = graph.emit("ConvTranspose", name, [x, weight], (batch, channels, 2 * height, 2 * width), kernel_shape=[2, 2], strides=[2, 2])

    def rule(gradients: Sequence[Tensor]) -> None:
        (dy,) = gradients
        _convolution_weight_gradient(graph, name, dy, x, weight, [0, 0, 0, 0], stride=2)
        graph.contribute(x, "Conv", [dy, weight], kernel_shape=[2, 2], strides=[2, 2])

    graph.differentiate([y], [x, weight], rule)
    return y


def _convolution_weight_gradient(
    graph: TrainingGraph, name: str, x: Tensor, dy: Tensor, weight: Tensor, pads: list[int], stride: int
) -> None:
    """A Conv of x with dy as its kernel, summed over the batch: strides become dilations."""
    x_swapped = graph.emit("Transpose", f"grad/{name}/input_swapped", [x], _swapped(x.shape), perm=SWAPPED)
    dy_swapped = graph.emit("Transpose", f"grad/{name}/output_swapped", [dy], _swapped(dy.shape), perm=SWAPPED)
    found = graph.emit(
        "Conv",
        f"grad/{name}/weight_swapped",
        [x_swapped, dy_swapped],
        _swapped(weight.shape),
        kernel_shape=list(dy.shape[2:]),
        pads=pads,
        dilations=[stride, stride],
    )
    graph.contribute(weight, "Transpose", [found], perm=SWAPPED)


def _swapped(shape: Shape) -> Shape:
    return (shape[1], shape[0], *shape[2:])


def batch_normalization(graph: TrainingGraph, name: str, x: Tensor) -> Tensor:
    """In training mode with momentum 0, so that outputs 2 and 3 are the batch's own mean and variance, which the gradient needs.

    Each has blank statistics of its own: onnxruntime writes those outputs over the statistics it is given.
    """
    channels = x.shape[1]
    count = x.shape[0] * x.shape[2] * x.shape[3]
    scale = graph.parameter(f"{name}.scale", (channels,))
    shift = graph.parameter(f"{name}.shift", (channels,))
    blank = [graph.vector(f"{name}/blank_mean", [0.0] * channels), graph.vector(f"{name}/blank_variance", [1.0] * channels)]
    statistics = [Tensor(f"{name}/mean", (channels,)), Tensor(f"{name}/variance", (channels,))]
    y, mean, variance = graph.emit_several(
        "BatchNormalization",
        name,
        [x, scale, shift, *blank],
        [Tensor(name, x.shape), *statistics],
        training_mode=1,
        momentum=0.0,
        epsilon=1e-5,
    )

    def per_channel(label: str, tensor: Tensor) -> Tensor:
        return graph.emit("Reshape", f"grad/{name}/{label}", [tensor, graph.integers(1, channels, 1, 1)], (1, channels, 1, 1))

    def rule(gradients: Sequence[Tensor]) -> None:
        (dy,) = gradients
        axes = graph.integers(0, 2, 3)
        padded = graph.emit("Add", f"grad/{name}/padded_variance", [variance, graph.number(1e-5)], (channels,))
        deviation = graph.emit("Sqrt", f"grad/{name}/deviation", [padded], (channels,))
        inverse = graph.emit("Reciprocal", f"grad/{name}/inverse", [deviation], (channels,))
        centred = graph.emit("Sub", f"grad/{name}/centred", [x, per_channel("mean4", mean)], x.shape)
        normal = graph.emit("Mul", f"grad/{name}/normal", [centred, per_channel("inverse4", inverse)], x.shape)
        weighted = graph.emit("Mul", f"grad/{name}/weighted", [dy, normal], x.shape)
        graph.contribute(scale, "ReduceSum", [weighted, axes], keepdims=0)
        graph.contribute(shift, "ReduceSum", [dy, axes], keepdims=0)
        share = graph.number(1 / count)
        sums = {"shift": graph.gradient(shift), "scale": graph.gradient(scale)}
        means = {label: graph.emit("Mul", f"grad/{name}/{label}_mean", [total, share], (channels,)) for label, total in sums.items()}
        level = graph.emit("Sub", f"grad/{name}/levelled", [dy, per_channel("shift4", means["shift"])], x.shape)
        slope = graph.emit("Mul", f"grad/{name}/slope", [normal, per_channel("scale4", means["scale"])], x.shape)
        straight = graph.emit("Sub", f"grad/{name}/straightened", [level, slope], x.shape)
        factor = graph.emit("Mul", f"grad/{name}/factor", [scale, inverse], (channels,))
        graph.contribute(x, "Mul", [straight, per_channel("factor4", factor)])

    graph.differentiate([y], [x, scale, shift], rule)
    return y


def relu(graph: TrainingGraph, name: str, x: Tensor) -> Tensor:
    """Its gradient needs only its output, which the next layer keeps anyway."""
    y = graph.emit("Relu", name, [x], x.shape)

    def rule(gradients: Sequence[Tensor]) -> None:
        (dy,) = gradients
        positive = graph.emit("Greater", f"grad/{name}/positive", [y, graph.number(0.0)], x.shape, element=BOOL)
        mask = graph.emit("Cast", f"grad/{name}/mask", [positive], x.shape, to=1)
        graph.contribute(x, "Mul", [dy, mask])

    graph.differentiate([y], [x], rule)
    return y


def tanh(graph: TrainingGraph, name: str, x: Tensor) -> Tensor:
    y = graph.emit("Tanh", name, [x], x.shape)

    def rule(gradients: Sequence[Tensor]) -> None:
        (dy,) = gradients
        square = graph.emit("Mul", f"grad/{name}/square", [y, y], x.shape)
        slope = graph.emit("Sub", f"grad/{name}/slope", [graph.number(1.0), square], x.shape)
        graph.contribute(x, "Mul", [dy, slope])

    graph.differentiate([y], [x], rule)
    return y


def gelu(graph: TrainingGraph, name: str, x: Tensor) -> Tensor:
    """x times the normal distribution up to x, by Erf. The gradient makes the density anew instead of keeping more."""
    scaled = graph.emit("Mul", f"{name}/scaled", [x, graph.number(sqrt(0.5))], x.shape)
    error = graph.emit("Erf", f"{name}/erf", [scaled], x.shape)
    raised = graph.emit("Add", f"{name}/raised", [error, graph.number(1.0)], x.shape)
    share = graph.emit("Mul", f"{name}/share", [raised, graph.number(0.5)], x.shape)
    y = graph.emit("Mul", name, [x, share], x.shape)

    def rule(gradients: Sequence[Tensor]) -> None:
        (dy,) = gradients
        square = graph.emit("Mul", f"grad/{name}/square", [x, x], x.shape)
        exponent = graph.emit("Mul", f"grad/{name}/exponent", [square, graph.number(-0.5)], x.shape)
        bell = graph.emit("Exp", f"grad/{name}/bell", [exponent], x.shape)
        density = graph.emit("Mul", f"grad/{name}/density", [bell, graph.number(0.3989422804)], x.shape)
        moved = graph.emit("Mul", f"grad/{name}/moved", [x, density], x.shape)
        slope = graph.emit("Add", f"grad/{name}/slope", [share, moved], x.shape)
        graph.contribute(x, "Mul", [dy, slope])

    graph.differentiate([y], [x], rule)
    return y


def halving(graph: TrainingGraph, name: str, x: Tensor) -> Tensor:
    """2x2 maxima. Without overlap MaxUnpool is the exact gradient."""
    batch, channels, height, width = x.shape
    shape = (batch, channels, height // 2, width // 2)
    made = [Tensor(name, shape), Tensor(f"{name}/indices", shape, element=INT64)]
    y, indices = graph.emit_several("MaxPool", name, [x], made, kernel_shape=[2, 2], strides=[2, 2])

    def rule(gradients: Sequence[Tensor]) -> None:
        (dy,) = gradients
        graph.contribute(x, "MaxUnpool", [dy, indices], kernel_shape=[2, 2], strides=[2, 2])

    graph.differentiate([y], [x], rule)
    return y


def global_average(graph: TrainingGraph, name: str, x: Tensor) -> Tensor:
    """Mean over height and width, flattened to rows of channels."""
    batch, channels, height, width = x.shape
    pooled = graph.emit("GlobalAveragePool", f"{name}/pooled", [x], (batch, channels, 1, 1))
    y = graph.emit("Flatten", name, [pooled], (batch, channels))

    def rule(gradients: Sequence[Tensor]) -> None:
        (dy,) = gradients
        share = graph.emit("Mul", f"grad/{name}/share", [dy, graph.number(1 / (height * width))], y.shape)
        square = graph.emit("Reshape", f"grad/{name}/square", [share, graph.integers(*pooled.shape)], pooled.shape)
        graph.contribute(x, "Expand", [square, graph.integers(*x.shape)])

    graph.differentiate([y], [x], rule)
    return y


def add(graph: TrainingGraph, name: str, a: Tensor, b: Tensor) -> Tensor:
    """Two tensors of one shape: a residual connection."""
    y = graph.emit("Add", name, [a, b], a.shape)

    def rule(gradients: Sequence[Tensor]) -> None:
        (dy,) = gradients
        graph.pass_on(a, dy)
        graph.pass_on(b, dy)

    graph.differentiate([y], [a, b], rule)
    return y


def concatenate(graph: TrainingGraph, name: str, a: Tensor, b: Tensor) -> Tensor:
    """Along the channels: a skip connection."""
    shape = (a.shape[0], a.shape[1] + b.shape[1], *a.shape[2:])
    y = graph.emit("Concat", name, [a, b], shape, axis=1)

    def rule(gradients: Sequence[Tensor]) -> None:
        (dy,) = gradients
        halves = [Tensor(f"grad/{name}/first", a.shape), Tensor(f"grad/{name}/second", b.shape)]
        sizes = graph.integers(a.shape[1], b.shape[1])
        first, second = graph.emit_several("Split", f"grad/{name}/split", [dy, sizes], halves, axis=1)
        graph.pass_on(a, first)
        graph.pass_on(b, second)

    graph.differentiate([y], [a, b], rule)
    return y


def reshape(graph: TrainingGraph, name: str, x: Tensor, shape: Shape) -> Tensor:
    y = graph.emit("Reshape", name, [x, graph.integers(*shape)], shape)

    def rule(gradients: Sequence[Tensor]) -> None:
        (dy,) = gradients
        graph.contribute(x, "Reshape", [dy, graph.integers(*x.shape)])

    graph.differentiate([y], [x], rule)
    return y


def linear(graph: TrainingGraph, name: str, x: Tensor, width: int) -> Tensor:
    """Rows times a matrix, plus a bias."""
    rows, depth = x.shape
    weight = graph.parameter(f"{name}.weight", (depth, width))
    bias = graph.parameter(f"{name}.bias", (width,))
    y = graph.emit("Gemm", name, [x, weight, bias], (rows, width))

    def rule(gradients: Sequence[Tensor]) -> None:
        (dy,) = gradients
        graph.contribute(bias, "ReduceSum", [dy, graph.integers(0)], keepdims=0)
        graph.contribute(weight, "Gemm", [x, dy], transA=1)
        graph.contribute(x, "Gemm", [dy, weight], transB=1)

    graph.differentiate([y], [x, weight, bias], rule)
    return y


def cross_entropy(graph: TrainingGraph, logits: Tensor, labels: Tensor) -> Tensor:
    """The loss: mean over all labels; classes are axis 1."""
    count = 1
    for size in labels.shape:
        count *= size
    logs = graph.emit("LogSoftmax", "loss/logs", [logits], logits.shape, axis=1)
    truth = graph.emit(
        "OneHot", "loss/truth", [labels, graph.integer(logits.shape[1]), graph.vector("loss/off_on", [0.0, 1.0])], logits.shape, axis=1
    )
    picked = graph.emit("Mul", "loss/picked", [logs, truth], logits.shape)
    total = graph.emit("ReduceSum", "loss/total", [picked], (), keepdims=0)
    loss = graph.emit("Mul", "loss", [total, graph.number(-1 / count)], ())

    def rule(gradients: Sequence[Tensor]) -> None:
        probabilities = graph.emit("Exp", "grad/loss/probabilities", [logs], logits.shape)
        errors = graph.emit("Sub", "grad/loss/errors", [probabilities, truth], logits.shape)
        graph.contribute(logits, "Mul", [errors, graph.number(1 / count)])

    graph.differentiate([loss], [logits], rule)
    return loss
