"""What a transformer needs beyond `layers.py`: embedding, layer normalization and multi-head attention, with their gradients."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

from . import layers
from .training import INT64, Tensor, TrainingGraph


def embedding(graph: TrainingGraph, name: str, tokens: Tensor, words: int, width: int) -> Tensor:
    """A row of the table for each token, plus a row for each position; flattened to one row per token."""
    batch, length = tokens.shape
    rows = batch * length
    table = graph.parameter(f"{name}.table", (words, width))
    positions = graph.parameter(f"{name}.positions", (length, width))
    found = graph.emit("Gather", f"{name}/rows", [table, tokens], (batch, length, width))
    placed = graph.emit("Add", f"{name}/placed", [found, positions], found.shape)

    def rule(gradients: Sequence[Tensor]) -> None:
        (dy,) = gradients
        graph.contribute(positions, "ReduceSum", [dy, graph.integers(0)], keepdims=0)
        flat = graph.emit("Reshape", f"grad/{name}/flat", [dy, graph.integers(rows, width)], (rows, width))
        column = graph.emit("Reshape", f"grad/{name}/column", [tokens, graph.integers(rows, 1)], (rows, 1), element=INT64)
        indices = graph.emit("Expand", f"grad/{name}/indices", [column, graph.integers(rows, width)], (rows, width), element=INT64)
        zeros = graph.emit("ConstantOfShape", f"grad/{name}/zeros", [graph.integers(words, width)], table.shape)
        graph.contribute(table, "ScatterElements", [zeros, indices, flat], axis=0, reduction="add")

    graph.differentiate([placed], [table, positions], rule)
    return layers.reshape(graph, name, placed, (rows, width))


def layer_normalization(graph: TrainingGraph, name: str, x: Tensor) -> Tensor:
    """Over each row; its mean and inverse deviation outputs serve the gradient."""
    rows, width = x.shape
    scale = graph.parameter(f"{name}.scale", (width,))
    shift = graph.parameter(f"{name}.shift", (width,))
    statistics = [Tensor(f"{name}/mean", (rows, 1)), Tensor(f"{name}/inverse", (rows, 1))]
    y, mean, inverse = graph.emit_several(
        "LayerNormalization", name, [x, scale, shift], [Tensor(name, x.shape), *statistics], axis=-1, epsilon=1e-5
    )

    def rule(gradients: Sequence[Tensor]) -> None:
        (dy,) = gradients
        last = graph.integers(1)
        graph.contribute(shift, "ReduceSum", [dy, graph.integers(0)], keepdims=0)
        centred = graph.emit("Sub", f"grad/{name}/centred", [x, mean], x.shape)
        normal = graph.emit("Mul", f"grad/{name}/normal", [centred, inverse], x.shape)
        weighted = graph.emit("Mul", f"grad/{name}/weighted", [dy, normal], x.shape)
        graph.contribute(scale, "ReduceSum", [weighted, graph.integers(0)], keepdims=0)
        scaled = graph.emit("Mul", f"grad/{name}/scaled", [dy, scale], x.shape)
        level = graph.emit("ReduceMean", f"grad/{name}/level", [scaled, last], (rows, 1))
        product = graph.emit("Mul", f"grad/{name}/product", [scaled, normal], x.shape)
        steepness = graph.emit("ReduceMean", f"grad/{name}/steepness", [product, last], (rows, 1))
        slope = graph.emit("Mul", f"grad/{name}/slope", [normal, steepness], x.shape)
        levelled = graph.emit("Sub", f"grad/{name}/levelled", [scaled, level], x.shape)
        straight = graph.emit("Sub", f"grad/{name}/straightened", [levelled, slope], x.shape)
        graph.contribute(x, "Mul", [straight, inverse])

    graph.differentiate([y], [x, scale, shift], rule)
    return y


def attention(graph: TrainingGraph, name: str, x: Tensor, batch: int, heads: int) -> Tensor:
    """Multi-head self-attention over rows of tokens, projections included."""
    rows, width = x.shape
    length, size = rows // batch, width // heads
    projected = layers.linear(graph, f"{name}/projected", x, 3 * width)
    queries, keys, values = _into_heads(graph, name, projected, (batch, length, 3, heads, size))
    scaled = _scale(graph, f"{name}/scaled", queries, 1 / sqrt(size))
    turned = _transpose(graph, f"{name}/turned", keys, [0, 1, 3, 2])
    scores = _product(graph, f"{name}/scores", scaled, turned)
    weights = _softmax(graph, f"{name}/weights", scores)
    mixed = _product(graph, f"{name}/mixed", weights, values)
    gathered = _transpose(graph, f"{name}/gathered", mixed, [0, 2, 1, 3])
    flat = layers.reshape(graph, f"{name}/flat", gathered, (rows, width))
    return layers.linear(graph, name, flat, width)


def _into_heads(graph: TrainingGraph, name: str, projected: Tensor, shape: tuple[int, ...]) -> tuple[Tensor, ...]:
    """Queries, keys and values, each (batch, heads, length, size)."""
    batch, length, _, heads, size = shape
    spread = layers.reshape(graph, f"{name}/spread", projected, shape)
    sorted_ = _transpose(graph, f"{name}/sorted", spread, [2, 0, 3, 1, 4])
    parts = [Tensor(f"{name}/{label}5", (1, batch, heads, length, size)) for label in ("queries", "keys", "values")]
    split = graph.emit_several("Split", f"{name}/split", [sorted_], parts, axis=0, num_outputs=3)

    def rule(gradients: Sequence[Tensor]) -> None:
        graph.contribute(sorted_, "Concat", gradients, axis=0)

    graph.differentiate(split, [sorted_], rule)
    return tuple(layers.reshape(graph, part.name.removesuffix("5"), part, part.shape[1:]) for part in split)


def _scale(graph: TrainingGraph, name: str, x: Tensor, factor: float) -> Tensor:
    y = graph.emit("Mul", name, [x, graph.number(factor)], x.shape)

    def rule(gradients: Sequence[Tensor]) -> None:
        graph.contribute(x, "Mul", [*gradients, graph.number(factor)])

    graph.differentiate([y], [x], rule)
    return y


def _transpose(graph: TrainingGraph, name: str, x: Tensor, order: list[int]) -> Tensor:
    y = graph.emit("Transpose", name, [x], tuple(x.shape[axis] for axis in order), perm=order)

    def rule(gradients: Sequence[Tensor]) -> None:
        graph.contribute(x, "Transpose", gradients, perm=[order.index(axis) for axis in range(len(order))])

    graph.differentiate([y], [x], rule)
    return y


def _product(graph: TrainingGraph, name: str, a: Tensor, b: Tensor) -> Tensor:
    """Matrix product of the last two axes; the others are equal."""
    y = graph.emit("MatMul", name, [a, b], (*a.shape[:-1], b.shape[-1]))
    swap = [0, 1, 3, 2]

    def turned(label: str, x: Tensor) -> Tensor:
        return graph.emit("Transpose", f"grad/{name}/{label}", [x], (*x.shape[:-2], x.shape[-1], x.shape[-2]), perm=swap)

    def rule(gradients: Sequence[Tensor]) -> None:
        (dy,) = gradients
        graph.contribute(b, "MatMul", [turned("left_turned", a), dy])
        graph.contribute(a, "MatMul", [dy, turned("right_turned", b)])

    graph.differentiate([y], [a, b], rule)
    return y


def _softmax(graph: TrainingGraph, name: str, x: Tensor) -> Tensor:
    y = graph.emit("Softmax", name, [x], x.shape, axis=-1)

    def rule(gradients: Sequence[Tensor]) -> None:
        (dy,) = gradients
        product = graph.emit("Mul", f"grad/{name}/product", [dy, y], x.shape)
        total = graph.emit("ReduceSum", f"grad/{name}/total", [product, graph.integers(-1)], (*x.shape[:-1], 1))
        centred = graph.emit("Sub", f"grad/{name}/centred", [dy, total], x.shape)
        graph.contribute(x, "Mul", [centred, y])

    graph.differentiate([y], [x], rule)
    return y
