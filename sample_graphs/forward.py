"""A forward model as people have them: a small residual classifier with its weights inside and a free batch dimension."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def classifier(*, size: int, widths: Sequence[int], classes: int) -> onnx.ModelProto:
    """Convolution, normalization and activation twice per width with a skip, halving between widths; logits at the end."""
    return _Classifier(size).build(widths, classes)


class _Classifier:
    def __init__(self, size: int) -> None:
        self.size = size
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self.random = np.random.RandomState(0)
        """The old generator: its numbers are promised never to change."""

    def build(self, widths: Sequence[int], classes: int) -> onnx.ModelProto:
        x, channels = "images", 3
        for number, width in enumerate(widths, 1):
            x = self.convolution(f"stage{number}/enter", x, channels, width)
            inner = self.convolution(f"stage{number}/inner", x, width, width)
            x = self.node("Add", f"stage{number}/add", [x, inner])
            if number < len(widths):
                x = self.node("MaxPool", f"stage{number}/pool", [x], kernel_shape=[2, 2], strides=[2, 2])
            channels = width
        x = self.node("GlobalAveragePool", "average", [x])
        x = self.node("Flatten", "flat", [x])
        head = [self.weight("head/weight", (channels, classes)), self.fill("head/bias", classes, 0.0)]
        self.nodes.append(helper.make_node("Gemm", [x, *head], ["logits"], "head"))
        images = helper.make_tensor_value_info("images", TensorProto.FLOAT, ["batch", 3, self.size, self.size])
        logits = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", classes])
        graph = helper.make_graph(self.nodes, "forward", [images], [logits], self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8, producer_name="checkmate samples")

    def convolution(self, name: str, x: str, channels: int, width: int) -> str:
        kernel = self.weight(f"{name}/weight", (width, channels, 3, 3))
        x = self.node("Conv", f"{name}/conv", [x, kernel], pads=[1, 1, 1, 1])
        parts = {"scale": 1.0, "shift": 0.0, "mean": 0.0, "variance": 1.0}
        statistics = [self.fill(f"{name}/{part}", width, value) for part, value in parts.items()]
        return self.node("Relu", f"{name}/relu", [self.node("BatchNormalization", f"{name}/norm", [x, *statistics])])

    def node(self, kind: str, name: str, inputs: list[str], **attributes: list[int]) -> str:
        self.nodes.append(helper.make_node(kind, inputs, [name], name, None, None, None, **attributes))
        return name

    def weight(self, name: str, shape: tuple[int, ...]) -> str:
        spread = (2.0 / np.prod(shape[1:])) ** 0.5
        self.weights.append(numpy_helper.from_array((self.random.standard_normal(shape) * spread).astype(np.float32), name))
        return name

    def fill(self, name: str, length: int, value: float) -> str:
        self.weights.append(numpy_helper.from_array(np.full(length, value, dtype=np.float32), name))
        return name
