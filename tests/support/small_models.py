"""Small forward models of the kinds people train, written as exporters write them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


class Net:
    """Collects nodes and weights; weights are drawn from one seed."""

    def __init__(self, opset: int = 18, dtype: Any = np.float32) -> None:
        self.random = np.random.default_rng(1)
        self.opset = opset
        self.dtype = np.dtype(dtype)
        self.element = helper.np_dtype_to_tensor_dtype(self.dtype)
        self.nodes: list[onnx.NodeProto] = []
        self.stored: list[onnx.TensorProto] = []

    def weight(self, name: str, *shape: int, scale: float = 0.5) -> str:
        return self.keep(name, (self.random.normal(size=shape) * scale).astype(self.dtype))

    def keep(self, name: str, numbers: np.ndarray[Any, Any]) -> str:
        self.stored.append(numpy_helper.from_array(np.asarray(numbers), name))
        return name

    def whole(self, name: str, *values: int) -> str:
        return self.keep(name, np.asarray(values, np.int64))

    def add(self, operator: str, inputs: Sequence[str], output: str, **attributes: Any) -> str:
        self.nodes.append(helper.make_node(operator, list(inputs), [output], name=f"{output}_node", **attributes))
        return output

    def model(self, inputs: Sequence[onnx.ValueInfoProto], outputs: Sequence[onnx.ValueInfoProto], ir_version: int = 8) -> onnx.ModelProto:
        graph = helper.make_graph(self.nodes, "small", list(inputs), list(outputs), self.stored)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=ir_version)


def tensor(name: str, *shape: int | str, element: int = TensorProto.FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, element, list(shape))


def mlp(dtype: Any = np.float32, *, last: str | None = None, opset: int = 18) -> onnx.ModelProto:
    net = Net(opset, dtype)
    net.add("Gemm", ["x", net.weight("w1", 6, 4), net.weight("b1", 6)], "hidden", transB=1)
    net.add("Tanh", ["hidden"], "active")
    net.add("MatMul", ["active", net.weight("w2", 6, 3)], "product")
    y = net.add("Add", ["product", net.weight("b2", 3)], "scores")
    if last:
        y = net.add(last, [y], "y")
    return net.model([tensor("x", "N", 4, element=net.element)], [tensor(y, "N", 3, element=net.element)])


def cnn(opset: int = 18, pool: str = "MaxPool") -> onnx.ModelProto:
    """Convolution, normalization, a residual, pools, a head and a Softmax. Differences want AveragePool, which has no kinks."""
    net = Net(opset)
    net.add("Conv", ["image", net.weight("stem", 4, 2, 3, 3)], "c1", pads=[1, 1, 1, 1])
    statistics = [net.keep("n1.mean", np.zeros(4, np.float32)), net.keep("n1.var", np.ones(4, np.float32))]
    net.add("BatchNormalization", ["c1", net.weight("n1.scale", 4), net.weight("n1.shift", 4), *statistics], "n1")
    net.add("Sigmoid", ["n1"], "a1")
    net.add("Conv", ["a1", net.weight("block", 4, 4, 1, 1), net.weight("block.bias", 4)], "c2")
    net.add("Add", ["c2", "a1"], "sum")
    net.add(pool, ["sum"], "pooled", kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    net.add("GlobalAveragePool", ["pooled"], "means")
    net.add("Flatten", ["means"], "flat")
    net.add("Gemm", ["flat", net.weight("head", 3, 4), net.weight("head.bias", 3)], "scores", transB=1)
    net.add("Softmax", ["scores"], "probabilities")
    return net.model([tensor("image", "batch", 2, 6, 6)], [tensor("probabilities", "batch", 3)])


def language_model(opset: int = 18) -> onnx.ModelProto:
    """One attention block with shapes computed in the graph, free batch and length, and an embedding used twice."""
    net = Net(opset)
    vocabulary, width, heads = 7, 4, 2
    net.add("Gather", [net.weight("embedding", vocabulary, width), "tokens"], "e")
    net.add("LayerNormalization", ["e", net.weight("n.scale", width), net.weight("n.shift", width)], "normal", axis=-1)
    net.add("Shape", ["tokens"], "shape")
    split = net.add("Concat", ["shape", net.whole("heads", heads, width // heads)], "split", axis=0)
    for part in ("q", "k", "v"):
        net.add("MatMul", ["normal", net.weight(f"w_{part}", width, width)], f"{part}_flat")
        net.add("Reshape", [f"{part}_flat", split], f"{part}_heads")
        net.add("Transpose", [f"{part}_heads"], part, perm=[0, 2, 3, 1] if part == "k" else [0, 2, 1, 3])
    net.add("MatMul", ["q", "k"], "raw")
    net.add("Div", ["raw", net.keep("root", np.asarray(width**0.5, np.float32))], "scaled")
    net.add("Softmax", ["scaled"], "attention", axis=-1)
    net.add("MatMul", ["attention", "v"], "mixed")
    net.add("Transpose", ["mixed"], "turned", perm=[0, 2, 1, 3])
    joined = net.add("Concat", ["shape", net.whole("width", width)], "joined", axis=0)
    net.add("Reshape", ["turned", joined], "together")
    net.add("Add", ["together", "e"], "residual")
    net.add("Gelu" if opset >= 20 else "Tanh", ["residual"], "active")
    net.add("Transpose", ["embedding"], "embedding_turned", perm=[1, 0])
    net.add("MatMul", ["active", "embedding_turned"], "scores")
    return net.model([tensor("tokens", "batch", "length", element=TensorProto.INT64)], [tensor("scores", "batch", "length", vocabulary)])
