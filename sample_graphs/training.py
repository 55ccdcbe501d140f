"""Writes a training graph by hand: forward operators are noted as they are emitted, and their gradient rules run in reverse.

Only what the bundled samples need; `layers.py` holds the operators. Parameters are graph inputs, so that a training loop can feed updates
back and no weights are in the file. The gradient of a tensor is added up as its parts arrive, so that parts are freed early.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

OPSET = 18
IR_VERSION = 8
FLOAT = onnx.TensorProto.FLOAT
INT64 = onnx.TensorProto.INT64
BOOL = onnx.TensorProto.BOOL

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor of the graph. `learns`: the loss depends on a parameter through it, so it has a gradient."""

    name: str
    shape: Shape
    learns: bool = False
    element: int = FLOAT


Rule = Callable[[Sequence[Tensor]], None]
"""Emits the gradients of an operator's inputs, given those of its outputs."""


@dataclass(frozen=True, slots=True)
class _Taped:
    outputs: tuple[Tensor, ...]
    rule: Rule


class TrainingGraph:
    """Collects the nodes of one graph. Every tensor gets a value_info, so nothing has to infer shapes."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._nodes: list[onnx.NodeProto] = []
        self._inputs: list[Tensor] = []
        self._parameters: list[Tensor] = []
        self._made: list[Tensor] = []
        self._constants: dict[str, onnx.TensorProto] = {}
        self._tape: list[_Taped] = []
        self._awaited: Counter[str] = Counter()
        """How many parts of each gradient are still to come."""
        self._gradients: dict[str, Tensor] = {}

    def data(self, name: str, shape: Shape, element: int = FLOAT) -> Tensor:
        tensor = Tensor(name, shape, element=element)
        self._inputs.append(tensor)
        return tensor

    def parameter(self, name: str, shape: Shape) -> Tensor:
        tensor = Tensor(name, shape, learns=True)
        self._inputs.append(tensor)
        self._parameters.append(tensor)
        return tensor

    def number(self, value: float) -> Tensor:
        return self._constant(f"number/{value:.9g}", np.array(value, np.float32))

    def integer(self, value: int) -> Tensor:
        return self._constant(f"integer/{value}", np.array(value, np.int64))

    def integers(self, *values: int) -> Tensor:
        """A shape, axes, ...: a one-dimensional constant."""
        return self._constant("integers/" + "_".join(map(str, values)), np.array(values, np.int64))

    def vector(self, name: str, values: Sequence[float]) -> Tensor:
        return self._constant(name, np.array(values, np.float32))

    def _constant(self, name: str, array: NDArray[Any]) -> Tensor:
        self._constants.setdefault(name, numpy_helper.from_array(array, name))
        return Tensor(name, array.shape, element=self._constants[name].data_type)

    def emit(self, kind: str, name: str, inputs: Sequence[Tensor], shape: Shape, *, element: int = FLOAT, **attributes: Any) -> Tensor:
        """Add an operator with one output, which takes the operator's name."""
        return self.emit_several(kind, name, inputs, [Tensor(name, shape, element=element)], **attributes)[0]

    def emit_several(
        self, kind: str, name: str, inputs: Sequence[Tensor], outputs: Sequence[Tensor], **attributes: Any
    ) -> tuple[Tensor, ...]:
        learns = any(tensor.learns for tensor in inputs)
        made = tuple(Tensor(output.name, output.shape, learns and output.element == FLOAT, output.element) for output in outputs)
        self._nodes.append(helper.make_node(kind, [tensor.name for tensor in inputs], [tensor.name for tensor in made], name, **attributes))
        self._made.extend(made)
        return made

    def differentiate(self, outputs: Sequence[Tensor], inputs: Sequence[Tensor], rule: Rule) -> None:
        """Remember how the gradients of `outputs` become parts of the gradients of `inputs` (one part each)."""
        if any(tensor.learns for tensor in outputs):
            self._tape.append(_Taped(tuple(outputs), rule))
            self._awaited.update(tensor.name for tensor in inputs if tensor.learns)

    def contribute(self, target: Tensor, kind: str, inputs: Sequence[Tensor], **attributes: Any) -> None:
        """Emit a part of the gradient of `target`; with the only or the last part it is complete."""
        if not target.learns:
            return
        alone = target.name not in self._gradients and self._awaited[target.name] == 1
        name = f"grad/{target.name}" if alone else f"grad/{target.name}/part{self._awaited[target.name]}"
        self.pass_on(target, self.emit(kind, name, inputs, target.shape, **attributes))

    def pass_on(self, target: Tensor, part: Tensor) -> None:
        """A part of the gradient of `target` that is there already."""
        if not target.learns:
            return
        self._awaited[target.name] -= 1
        if target.name in self._gradients:
            remaining = self._awaited[target.name]
            name = f"grad/{target.name}" + (f"/sum{remaining}" if remaining else "")
            part = self.emit("Add", name, [self._gradients[target.name], part], target.shape)
        self._gradients[target.name] = part

    def gradient(self, tensor: Tensor) -> Tensor:
        """The gradient as far as it has arrived."""
        return self._gradients[tensor.name]

    def finish(self, loss: Tensor) -> onnx.ModelProto:
        """Run the tape backward and wrap up: outputs are the loss and `grad/<parameter>` for every parameter."""
        for taped in reversed(self._tape):
            if taped.outputs[0].name == loss.name:
                taped.rule(())
            else:
                taped.rule([self.gradient(output) for output in taped.outputs])
        unfinished = sorted(name for name, count in self._awaited.items() if count)
        if unfinished:
            raise AssertionError(f"gradients with missing parts: {unfinished}")
        outputs = [loss, *(self.gradient(parameter) for parameter in self._parameters)]
        named = {tensor.name for tensor in outputs}
        graph = helper.make_graph(
            self._nodes,
            self._name,
            [_described(tensor) for tensor in self._inputs],
            [_described(tensor) for tensor in outputs],
            list(self._constants.values()),
            value_info=[_described(tensor) for tensor in self._made if tensor.name not in named],
        )
        opset = helper.make_opsetid("", OPSET)
        return helper.make_model(graph, opset_imports=[opset], ir_version=IR_VERSION, producer_name="checkmate samples")


def _described(tensor: Tensor) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(tensor.name, tensor.element, tensor.shape)
