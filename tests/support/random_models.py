"""Small random ONNX models with what the memory model has to know: views, computing in place, unread outputs, scalars, computed shapes,
several element types, branches, functions, old and new operator sets, graph outputs that are read again."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

Shape = tuple[int, ...]
OPSETS = (8, 9, 11, 12, 13, 17, 21)
FLOAT, DOUBLE, INT32, INT64, BOOL, BFLOAT16 = (
    TensorProto.DataType.Value(name) for name in ("FLOAT", "DOUBLE", "INT32", "INT64", "BOOL", "BFLOAT16")
)
IN_PLACE = ("Relu", "Tanh", "Sigmoid", "LeakyRelu", "Elu", "Softsign", "Softmax", "LogSoftmax", "HardSigmoid", "Selu")
PLAIN = ("Neg", "Abs", "Cos", "Sin", "Floor", "Atan")
BINARY = ("Add", "Mul", "Sub", "Max")


class RandomModel:
    """Grows node by node; every tensor has a known shape, and its values stay small."""

    def __init__(self, seed: int, nodes: int) -> None:
        self.rng = random.Random(seed)
        self.opset = self.rng.choice(OPSETS)
        self.nodes: list[onnx.NodeProto] = []
        self.stored: list[onnx.TensorProto] = []
        self.floats: dict[str, Shape] = {}
        """Computed or fed float tensors."""
        self.functions: list[onnx.FunctionProto] = []
        self.inputs: list[onnx.ValueInfoProto] = []
        self.rows = self.rng.choice((16, 24))
        self.columns = self.rng.choice((32, 48))
        for number in range(2):
            self._feed(f"x{number}", (self.rows, self.columns))
        self._feed("image", (2, 3, 8, 8))
        makers = [maker for maker, since in self._makers() if self.opset >= since]
        while len(self.nodes) < nodes:
            self.rng.choice(makers)()

    def model(self) -> onnx.ModelProto:
        """With a few outputs, all that nobody reads among them, and some that are read."""
        read = {name for node in self.nodes for name in node.input}
        made = [name for node in self.nodes for name in node.output if name in self.floats]
        wanted = [name for name in made if (name not in read and self.rng.random() < 0.6) or self.rng.random() < 0.1] or made[-1:]
        outputs = [helper.make_tensor_value_info(name, FLOAT, self.floats[name]) for name in wanted]
        imports = [helper.make_opsetid("", self.opset)] + ([helper.make_opsetid("local", 1)] if self.functions else [])
        graph = helper.make_graph(self.nodes, "random", self.inputs, outputs, self.stored)
        return helper.make_model(graph, opset_imports=imports, functions=self.functions, ir_version=8 if self.opset < 21 else 10)

    def _makers(self) -> list[tuple[Callable[[], None], int]]:
        common = [(self._unary, 0), (self._unary, 0), (self._binary, 0), (self._binary, 0), (self._in_place, 0), (self._in_place, 0)]
        views = [(self._reshape, 0), (self._computed_reshape, 0), (self._identity, 0), (self._flatten, 9)]
        others = [(self._matmul, 0), (self._gemm, 11), (self._transpose, 0), (self._concat, 0), (self._reduce, 11), (self._split, 13)]
        unread = [(self._dropout, 0), (self._top_k, 11), (self._max_pool, 8), (self._layer_norm, 17)]
        types = [(self._cast, 9), (self._half, 13), (self._where, 9), (self._scatter, 11), (self._compressed_constant, 9)]
        inside = [(self._branch, 11), (self._function, 13), (self._seeded, 0), (self._statistics, 15)]
        return [*common, *views, *others, *unread, *types, *inside]

    def _feed(self, name: str, shape: Shape) -> None:
        self.inputs.append(helper.make_tensor_value_info(name, FLOAT, shape))
        self.floats[name] = shape

    def _pick(self, rank: int | None = None) -> str:
        names = [name for name, shape in self.floats.items() if (rank is None and shape) or len(shape) == rank]
        recent = names[-6:] if self.rng.random() < 0.7 else names
        return self.rng.choice(recent)

    def _name(self, kind: str = "t") -> str:
        return f"{kind}{len(self.nodes)}"

    def _add(self, kind: str, inputs: list[str], shapes: list[Shape | None], **attributes: object) -> list[str]:
        """A node; an output with a shape is a float tensor that others may read."""
        names = [f"v{len(self.nodes)}_{position}" for position in range(len(shapes))]
        node = helper.make_node(kind, inputs, names, name=f"{kind.lower()}{len(self.nodes)}", **attributes)  # type: ignore[arg-type]
        self.nodes.append(node)
        self.floats.update({name: shape for name, shape in zip(names, shapes, strict=True) if shape is not None})
        return names

    def _store(self, array: np.ndarray[tuple[int, ...], np.dtype[np.generic]]) -> str:
        name = f"c{len(self.stored)}"
        self.stored.append(numpy_helper.from_array(array, name))
        return name

    def _numbers(self, *numbers: int) -> str:
        return self._store(np.asarray(numbers, np.int64))

    def _normal(self, shape: Shape) -> str:
        return self._store(np.random.default_rng(self.rng.randrange(2**30)).normal(0, 0.2, shape).astype(np.float32))

    def _unary(self) -> None:
        name = self._pick()
        self._add(self.rng.choice(PLAIN), [name], [self.floats[name]])

    def _in_place(self) -> None:
        name = self._pick()
        kind = self.rng.choice(IN_PLACE)
        axis = {"axis": len(self.floats[name]) - 1} if kind.endswith("max") else {}
        self._add(kind, [name], [self.floats[name]], **axis)

    def _binary(self) -> None:
        name = self._pick()
        shape = self.floats[name]
        other = self.rng.choice([candidate for candidate, its in self.floats.items() if its == shape or its == ()])
        self._add(self.rng.choice(BINARY), [name, other], [shape])

    def _reshape(self) -> None:
        name = self._pick()
        size = int(np.prod(self.floats[name]))
        if size % 8 == 0:
            shape = self.rng.choice(((size // 8, 8), (size,), (8, size // 8), (2, size // 2)))
            self._add("Reshape", [name, self._numbers(*shape[:-1], -1)], [shape])

    def _computed_reshape(self) -> None:
        name = self._pick()
        shape = self.floats[name]
        (found,) = self._add("Shape", [name], [None])
        self._add("Reshape", [self._add("Neg", [name], [shape])[0], found], [shape])

    def _identity(self) -> None:
        name = self._pick()
        self._add("Identity", [name], [self.floats[name]])

    def _flatten(self) -> None:
        name = self._pick(4)
        shape = self.floats[name]
        self._add("Flatten", [name], [(shape[0], int(np.prod(shape[1:])))])

    def _matmul(self) -> None:
        name = self._pick(2)
        rows, depth = self.floats[name]
        width = self.rng.choice((8, self.columns))
        self._add("MatMul", [name, self._normal((depth, width))], [(rows, width)])

    def _gemm(self) -> None:
        name = self._pick(2)
        rows, depth = self.floats[name]
        (made,) = self._add("Gemm", [name, self._normal((depth, 16)), self._normal((16,))], [(rows, 16)])
        self._add(self.rng.choice(IN_PLACE[:3]), [made], [(rows, 16)])

    def _transpose(self) -> None:
        name = self._pick(2)
        self._add("Transpose", [name], [self.floats[name][::-1]])

    def _concat(self) -> None:
        name = self._pick()
        shape = self.floats[name]
        same = [candidate for candidate, its in self.floats.items() if its == shape]
        if shape[0] <= 64:
            self._add("Concat", [name, self.rng.choice(same)], [(2 * shape[0], *shape[1:])], axis=0)

    def _reduce(self) -> None:
        self._add("ReduceMean", [self._pick()], [()], keepdims=0)

    def _split(self) -> None:
        name = self._pick(2)
        rows, columns = self.floats[name]
        if columns % 2 == 0:
            extra = {"num_outputs": 2} if self.opset >= 18 else {}
            self._add("Split", [name], [(rows, columns // 2)] * 2, axis=1, **extra)

    def _dropout(self) -> None:
        name = self._pick()
        shape = self.floats[name]
        if self.opset >= 10:
            self._add("Dropout", [name], [shape, None])
        else:
            self._add("Dropout", [name], [shape])

    def _top_k(self) -> None:
        name = self._pick(2)
        if self.floats[name][1] >= 4:
            self._add("TopK", [name, self._numbers(4)], [(self.floats[name][0], 4), None])

    def _max_pool(self) -> None:
        name = self._pick(4)
        batch, channels, height, width = self.floats[name]
        if height >= 4:
            made = (batch, channels, height // 2, width // 2)
            self._add("MaxPool", [name], [made, None], kernel_shape=[2, 2], strides=[2, 2])

    def _layer_norm(self) -> None:
        name = self._pick(2)
        shape = self.floats[name]
        self._add("LayerNormalization", [name, self._normal(shape[-1:])], [shape, (shape[0], 1), None])

    def _cast(self) -> None:
        """There and back, but not with two casts in a row: onnxruntime leaves out what such pairs do not change, in any session."""
        name = self._pick()
        kind = self.rng.choice((INT32, DOUBLE, BOOL))
        (turned,) = self._add("Cast", [name], [None], to=kind)
        if kind == DOUBLE:
            (turned,) = self._add("Neg", [turned], [None])
        self._add("Cos", self._add("Cast", [turned], [None], to=FLOAT), [self.floats[name]])

    def _half(self) -> None:
        name = self._pick()
        shape = self.floats[name]
        (turned,) = self._add("Cast", [name], [None], to=BFLOAT16)
        self._add("Neg", self._add("Cast", [turned], [None], to=FLOAT), [shape])

    def _where(self) -> None:
        name = self._pick()
        shape = self.floats[name]
        (mask,) = self._add("Greater", [name, self._normal(())], [None])
        self._add("Where", [mask, name, self._normal(())], [shape])

    def _scatter(self) -> None:
        name = self._pick(2)
        self._add("ScatterElements", [name, self._store(np.zeros((1, 2), np.int64)), self._normal((1, 2))], [self.floats[name]])

    def _compressed_constant(self) -> None:
        (filled,) = self._add("ConstantOfShape", [self._numbers(self.rows, self.columns)], [(self.rows, self.columns)])
        self._add("Cos", [filled], [(self.rows, self.columns)])

    def _branch(self) -> None:
        name = self._pick()
        shape = self.floats[name]
        graphs = []
        for kind in ("Neg", "Abs"):
            made = self._name(f"{kind.lower()}_")
            info = helper.make_tensor_value_info(made, FLOAT, shape)
            graphs.append(helper.make_graph([helper.make_node(kind, [name], [made], name=made)], f"{kind}_branch", [], [info]))
        (whole,) = self._add("ReduceMean", [name], [()], keepdims=0)
        (greater,) = self._add("Greater", [whole, self._normal(())], [None])
        self._add("If", [greater], [shape], then_branch=graphs[0], else_branch=graphs[1])

    def _function(self) -> None:
        if not self.functions:
            body = [
                helper.make_node("Sin", ["a"], ["b"]),
                helper.make_node("Tanh", ["b"], ["c"]),
                helper.make_node("Add", ["a", "c"], ["d"]),
            ]
            self.functions.append(helper.make_function("local", "Wave", ["a"], ["d"], body, [helper.make_opsetid("", self.opset)]))
        name = self._pick()
        self._add("Wave", [name], [self.floats[name]], domain="local")

    def _seeded(self) -> None:
        name = self._pick()
        if self.opset >= 9:
            (made,) = self._add("RandomNormalLike", [name], [self.floats[name]], seed=1.0)
            self._add("Tanh", [made], [self.floats[name]])

    def _statistics(self) -> None:
        name = self._pick(2)
        width = self.floats[name][1]
        if width == 1:
            return
        ones = [self._store(np.ones(width, np.float32)) for _ in range(4)]
        self._add("BatchNormalization", [name, *ones], [self.floats[name], None, None], training_mode=1)


def random_model(seed: int, nodes: int = 20) -> onnx.ModelProto:
    """Deterministic for a seed."""
    model = RandomModel(seed, nodes).model()
    onnx.checker.check_model(model)
    return model
