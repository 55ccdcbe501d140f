"""The networks of the paper's Figure 6 as forward ONNX models with a free batch: VGG-19, ResNet-50, MobileNet (v1) and U-Net.

Shapes as in the paper: 224 x 224 for the classifiers, 416 x 608 for U-Net. Weights are ConstantOfShape nodes, as in the light models of the
onnx package, so the files are a few kilobytes; differentiating turns them into inputs like any weight.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

CLASSES = 1000
SEGMENTATION_CLASSES = 10


class Network:
    """Collects nodes; remembers how many channels each tensor has."""

    def __init__(self, name: str, height: int, width: int) -> None:
        self.name = name
        self.nodes: list[onnx.NodeProto] = []
        self.shapes: list[onnx.TensorProto] = []
        self.channels = {"images": 3}
        self.image = helper.make_tensor_value_info("images", TensorProto.FLOAT, ["batch", 3, height, width])
        self.count = 0

    def weight(self, *shape: int, fill: float = 0.01) -> str:
        self.count += 1
        name = f"weight{self.count}"
        self.shapes.append(numpy_helper.from_array(np.array(shape, np.int64), f"{name}/shape"))
        value = numpy_helper.from_array(np.array([fill], np.float32))
        self.nodes.append(helper.make_node("ConstantOfShape", [f"{name}/shape"], [name], name, value=value))
        return name

    def add(self, kind: str, inputs: list[str], channels: int, **attributes: object) -> str:
        self.count += 1
        name = f"{kind.lower()}{self.count}"
        self.nodes.append(helper.make_node(kind, inputs, [name], name, None, None, None, **attributes))
        self.channels[name] = channels
        return name

    def conv(self, x: str, width: int, kernel: int = 3, stride: int = 1, *, groups: int = 1, bias: bool = True) -> str:
        inputs = [x, self.weight(width, self.channels[x] // groups, kernel, kernel)]
        if bias:
            inputs.append(self.weight(width))
        return self.add("Conv", inputs, width, pads=[kernel // 2] * 4, strides=[stride] * 2, group=groups)

    def norm(self, x: str) -> str:
        width = self.channels[x]
        statistics = [self.weight(width, fill=fill) for fill in (1.0, 0.0, 0.0, 1.0)]
        return self.add("BatchNormalization", [x, *statistics], width)

    def relu(self, x: str) -> str:
        return self.add("Relu", [x], self.channels[x])

    def conv_norm_relu(self, x: str, width: int, kernel: int = 3, stride: int = 1, *, groups: int = 1) -> str:
        return self.relu(self.norm(self.conv(x, width, kernel, stride, groups=groups, bias=False)))

    def halve(self, x: str, kernel: int = 2) -> str:
        return self.add("MaxPool", [x], self.channels[x], kernel_shape=[kernel] * 2, strides=[2, 2], pads=[(kernel - 1) // 2] * 4)

    def dense(self, x: str, depth: int, width: int) -> str:
        return self.add("Gemm", [x, self.weight(depth, width), self.weight(width)], width)

    def average(self, x: str) -> str:
        return self.add("Flatten", [self.add("GlobalAveragePool", [x], self.channels[x])], self.channels[x])

    def finish(self, x: str) -> onnx.ModelProto:
        self.nodes[-1].output[0] = "logits"
        logits = helper.make_tensor_value_info("logits", TensorProto.FLOAT, None)
        graph = helper.make_graph(self.nodes, self.name, [self.image], [logits], self.shapes)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8, producer_name="checkmate benchmarks")
        return onnx.shape_inference.infer_shapes(model, data_prop=True)


def vgg19() -> onnx.ModelProto:
    net = Network("vgg19", 224, 224)
    x = "images"
    for width, repeats in ((64, 2), (128, 2), (256, 4), (512, 4), (512, 4)):
        for _ in range(repeats):
            x = net.relu(net.conv(x, width))
        x = net.halve(x)
    x = net.add("Flatten", [x], 512 * 7 * 7)
    x = net.relu(net.dense(x, 512 * 7 * 7, 4096))
    x = net.relu(net.dense(x, 4096, 4096))
    return net.finish(net.dense(x, 4096, CLASSES))


def resnet50() -> onnx.ModelProto:
    net = Network("resnet50", 224, 224)
    x = net.halve(net.conv_norm_relu("images", 64, 7, 2), 3)
    for number, (width, repeats) in enumerate(((64, 3), (128, 4), (256, 6), (512, 3))):
        for block in range(repeats):
            stride = 2 if block == 0 and number else 1
            y = net.conv_norm_relu(x, width, 1)
            y = net.conv_norm_relu(y, width, 3, stride)
            y = net.norm(net.conv(y, 4 * width, 1, bias=False))
            shortcut = x if block else net.norm(net.conv(x, 4 * width, 1, stride, bias=False))
            x = net.relu(net.add("Add", [y, shortcut], 4 * width))
    return net.finish(net.dense(net.average(x), 2048, CLASSES))


def mobilenet() -> onnx.ModelProto:
    net = Network("mobilenet", 224, 224)
    x = net.conv_norm_relu("images", 32, 3, 2)
    for width, stride in ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 5, (1024, 2), (1024, 1)):
        depth = net.channels[x]
        x = net.conv_norm_relu(x, depth, 3, stride, groups=depth)
        x = net.conv_norm_relu(x, width, 1)
    return net.finish(net.dense(net.average(x), 1024, CLASSES))


def unet() -> onnx.ModelProto:
    net = Network("unet", 416, 608)

    def twice(x: str, width: int) -> str:
        return net.relu(net.conv(net.relu(net.conv(x, width)), width))

    x = "images"
    skips: list[str] = []
    for width in (64, 128, 256, 512):
        x = twice(x, width)
        skips.append(x)
        x = net.halve(x)
    x = twice(x, 1024)
    for skip in reversed(skips):
        width = net.channels[skip]
        up = net.add("ConvTranspose", [x, net.weight(2 * width, width, 2, 2), net.weight(width)], width, strides=[2, 2])
        x = twice(net.add("Concat", [skip, up], 2 * width, axis=1), width)
    return net.finish(net.conv(x, SEGMENTATION_CLASSES, 1))


NETWORKS: Mapping[str, Callable[[], onnx.ModelProto]] = {"VGG-19": vgg19, "ResNet-50": resnet50, "MobileNet": mobilenet, "U-Net": unet}
