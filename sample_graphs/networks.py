"""The five sample networks as training graphs, each parametrised by its sizes: tests build them tiny."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import onnx

from . import attention, layers
from .training import INT64, Tensor, TrainingGraph


def chain(*, rows: int, columns: int, length: int) -> onnx.ModelProto:
    """Elementwise operators of one size, one after the other. What is learned is where it starts."""
    graph = TrainingGraph("chain")
    x = graph.parameter("start", (rows, columns))
    for layer in range(1, length + 1):
        x = layers.tanh(graph, f"layer{layer}", x)
    return graph.finish(_squared_error(graph, x))


def _squared_error(graph: TrainingGraph, x: Tensor) -> Tensor:
    """Half the sum of squared distances to the target."""
    target = graph.data("target", x.shape)
    distance = graph.emit("Sub", "loss/distance", [x, target], x.shape)
    total = graph.emit("ReduceSumSquare", "loss/total", [distance], (), keepdims=0)
    loss = graph.emit("Mul", "loss", [total, graph.number(0.5)], ())
    graph.differentiate([loss], [x], lambda _: graph.pass_on(x, distance))
    return loss


def vgg(*, batch: int, size: int, widths: Sequence[int], hidden: int, classes: int) -> onnx.ModelProto:
    """Blocks of two convolutions and a halving, then two dense layers."""
    graph = TrainingGraph("vgg")
    x = graph.data("images", (batch, 3, size, size))
    labels = graph.data("labels", (batch,), INT64)
    for block, width in enumerate(widths, 1):
        for step in (1, 2):
            x = layers.convolution(graph, f"block{block}/conv{step}", x, width, bias=True)
            x = layers.relu(graph, f"block{block}/relu{step}", x)
        x = layers.halving(graph, f"block{block}/pool", x)
    x = layers.reshape(graph, "flat", x, (batch, x.shape[1] * x.shape[2] * x.shape[3]))
    x = layers.relu(graph, "hidden/relu", layers.linear(graph, "hidden", x, hidden))
    logits = layers.linear(graph, "logits", x, classes)
    return graph.finish(layers.cross_entropy(graph, logits, labels))


def resnet(*, batch: int, size: int, widths: Sequence[int], classes: int) -> onnx.ModelProto:
    """Residual blocks of two convolutions with batch normalization; between widths a halving and a 1x1 convolution."""
    graph = TrainingGraph("resnet")
    images = graph.data("images", (batch, 3, size, size))
    labels = graph.data("labels", (batch,), INT64)
    x = layers.convolution(graph, "stem", images, widths[0])
    for number, width in enumerate(widths, 1):
        if number > 1:
            x = layers.halving(graph, f"down{number}/pool", x)
            x = layers.convolution(graph, f"down{number}/conv", x, width, kernel=1)
        x = _residual_block(graph, f"block{number}", x)
    pooled = layers.global_average(graph, "average", x)
    logits = layers.linear(graph, "logits", pooled, classes)
    return graph.finish(layers.cross_entropy(graph, logits, labels))


def _residual_block(graph: TrainingGraph, name: str, x: Tensor) -> Tensor:
    y = layers.convolution(graph, f"{name}/conv1", x, x.shape[1])
    y = layers.relu(graph, f"{name}/relu1", layers.batch_normalization(graph, f"{name}/norm1", y))
    y = layers.convolution(graph, f"{name}/conv2", y, x.shape[1])
    y = layers.batch_normalization(graph, f"{name}/norm2", y)
    return layers.relu(graph, f"{name}/relu2", layers.add(graph, f"{name}/sum", y, x))


def unet(*, batch: int, size: int, widths: Sequence[int], classes: int) -> onnx.ModelProto:
    """Down and up again, with a skip connection at every level; one label per pixel."""
    graph = TrainingGraph("unet")
    x = graph.data("images", (batch, 3, size, size))
    labels = graph.data("labels", (batch, size, size), INT64)
    skips: list[Tensor] = []
    for level, width in enumerate(widths, 1):
        if skips:
            x = layers.halving(graph, f"down{level}/pool", x)
        x = _double_convolution(graph, f"down{level}", x, width)
        skips.append(x)
    for level in range(len(widths) - 1, 0, -1):
        x = layers.upsampling(graph, f"up{level}/grow", x, widths[level - 1])
        x = layers.concatenate(graph, f"up{level}/join", skips[level - 1], x)
        x = _double_convolution(graph, f"up{level}", x, widths[level - 1])
    logits = layers.convolution(graph, "logits", x, classes, kernel=1, bias=True)
    return graph.finish(layers.cross_entropy(graph, logits, labels))


def _double_convolution(graph: TrainingGraph, name: str, x: Tensor, width: int) -> Tensor:
    for step in (1, 2):
        x = layers.relu(graph, f"{name}/relu{step}", layers.convolution(graph, f"{name}/conv{step}", x, width, bias=True))
    return x


def transformer(*, batch: int, length: int, width: int, heads: int, blocks: int, words: int) -> onnx.ModelProto:
    """Token embedding, pre-normalized transformer blocks, and a word predicted for every token."""
    graph = TrainingGraph("transformer")
    tokens = graph.data("tokens", (batch, length), INT64)
    labels = graph.data("labels", (batch * length,), INT64)
    x = attention.embedding(graph, "embedding", tokens, words, width)
    for number in range(1, blocks + 1):
        name = f"block{number}"
        y = attention.layer_normalization(graph, f"{name}/norm1", x)
        x = layers.add(graph, f"{name}/sum1", x, attention.attention(graph, f"{name}/attention", y, batch, heads))
        y = attention.layer_normalization(graph, f"{name}/norm2", x)
        y = layers.gelu(graph, f"{name}/gelu", layers.linear(graph, f"{name}/widened", y, 4 * width))
        x = layers.add(graph, f"{name}/sum2", x, layers.linear(graph, f"{name}/narrowed", y, width))
    logits = layers.linear(graph, "logits", attention.layer_normalization(graph, "norm", x), words)
    return graph.finish(layers.cross_entropy(graph, logits, labels))


TINY: dict[str, Callable[[], onnx.ModelProto]] = {
    "chain": lambda: chain(rows=2, columns=3, length=4),
    "vgg": lambda: vgg(batch=2, size=4, widths=[2, 3], hidden=5, classes=3),
    "resnet": lambda: resnet(batch=2, size=4, widths=[2, 3], classes=3),
    "unet": lambda: unet(batch=2, size=4, widths=[2, 3, 2], classes=3),
    "transformer": lambda: transformer(batch=2, length=3, width=4, heads=2, blocks=2, words=5),
}
"""The smallest that still use all operators, for tests."""
