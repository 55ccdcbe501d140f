"""The context of a gradient function: the node to differentiate, and the methods to build the gradient."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from onnx import NodeProto

from ....core.errors import InputError
from ..proto.attributes import find, integer, integers, text
from ..proto.stored import Array
from .builder import FREE, GraphBuilder
from .sampling import Dim, Shape

Gradients = Sequence[str | None]


class GradientContext:
    """One node, the gradients of its outputs, and the graph to add to. Made by the engine, once per node."""

    def __init__(self, builder: GraphBuilder, node: NodeProto, gradients: Gradients, wanted: Sequence[bool]) -> None:
        self.builder = builder
        self.node = node
        self.gradients = tuple(gradients)
        """The gradient of each output; None if the loss does not depend on it."""
        self._wanted = tuple(wanted)

    @property
    def inputs(self) -> Sequence[str]:
        return list(self.node.input)

    @property
    def outputs(self) -> Sequence[str]:
        return list(self.node.output)

    @property
    def gradient(self) -> str:
        """The gradient of the first output, which must have one."""
        found = self.gradients[0] if self.gradients else None
        if found is None:
            raise self.refusal("only another output than the first is used")
        return found

    def wants(self, index: int) -> bool:
        """True if input `index` needs a gradient. Gradients that are not needed should not be computed."""
        return index < len(self._wanted) and self._wanted[index]

    def has_input(self, index: int) -> bool:
        return index < len(self.node.input) and bool(self.node.input[index])

    def shape(self, name: str) -> Shape:
        return self.builder.tensors.shape(name)

    def rank(self, name: str) -> int:
        return len(self.shape(name))

    def element(self, name: str) -> int:
        return self.builder.tensors.element(name)

    def size(self, name: str, axis: int) -> int:
        """The size along one axis, which must be a number."""
        return self.fixed(self.shape(name)[axis], name)

    def sizes(self, name: str) -> tuple[int, ...]:
        return tuple(self.fixed(dim, name) for dim in self.shape(name))

    def sizes_of(self, name: str, first: int) -> tuple[int, ...]:
        """The sizes from axis `first` on, which must be numbers."""
        return tuple(self.fixed(dim, name) for dim in self.shape(name)[first:])

    def fixed(self, dim: Dim, name: str) -> int:
        if isinstance(dim, str):
            raise self.refusal(f"its gradient needs the size {dim!r} of {name!r} as a number: {FREE}")
        return dim

    def numbers(self, name: str) -> Array | None:
        """The values of a small constant (axes, shapes, scales), if known."""
        return self.builder.tensors.numbers(name) if name else None

    def known(self, index: int, what: str) -> Array:
        """The values of an input, which must be a known constant."""
        numbers = self.numbers(self.node.input[index])
        if numbers is None:
            raise self.refusal(f"its {what} is computed when the model runs; it must be a constant")
        return numbers

    def attribute_int(self, name: str, default: int) -> int:
        return integer(self.node, name, default)

    def attribute_ints(self, name: str) -> Sequence[int] | None:
        return integers(self.node, name)

    def attribute_float(self, name: str, default: float) -> float:
        attribute = find(self.node, name)
        return default if attribute is None else attribute.f

    def attribute_text(self, name: str, default: str) -> str:
        return text(self.node, name, default)

    def axis(self, default: int = 0) -> int:
        """The attribute `axis`, counted from the front."""
        return self.attribute_int("axis", default) % max(self.rank(self.node.input[0]), 1)

    def add(self, operator: str, *inputs: str, **attributes: Any) -> str:
        return self.builder.add(operator, *inputs, **attributes)

    def scalar(self, value: float, like: str) -> str:
        return self.builder.scalar(value, like)

    def integers(self, values: Sequence[int]) -> str:
        return self.builder.integers(values)

    def sum_to(self, value: str, index: int) -> str:
        """A gradient summed over the axes along which input `index` was broadcast."""
        return self.builder.sum_to(value, self.shape(self.node.input[index]))

    def reshape_like(self, value: str, name: str) -> str:
        return self.builder.reshape(value, self.shape(name), name)

    def zeros_like(self, name: str) -> str:
        return self.builder.zeros(self.shape(name), self.element(name), name)

    def as_float(self, condition: str, like: str) -> str:
        """A boolean tensor as 0 and 1 of another tensor's element type."""
        return self.builder.cast(condition, self.element(like))

    def each(self, *makers: Callable[[], str]) -> list[str | None]:
        """One gradient per input, computed only if it is needed; the last input first, so that parameters come before data."""
        made: list[str | None] = [None] * len(makers)
        for index in reversed(range(len(makers))):
            if self.wants(index):
                made[index] = makers[index]()
        return made

    def never(self) -> str:
        """The function for an input that has no gradient."""
        raise self.refusal("one of its non-differentiable inputs (such as axes, shapes or indices) depends on trained parameters")

    def only_first(self, maker: Callable[[], str]) -> list[str | None]:
        """For operators whose other inputs are not differentiable: axes, shapes, indices."""
        return [maker() if self.wants(0) else None]

    def extra_output(self, index: int) -> str:
        """An optional output of the forward node; it is added if the node does not have it."""
        node = self.node
        while len(node.output) <= index:
            node.output.append("")
        if not node.output[index]:
            stem = next((output for output in node.output if output), node.name)
            name = self.builder.unused(f"{stem}/output_{index}")
            node.output[index] = name
            self.builder.tensors.define_outputs(node, [name])
        return str(node.output[index])

    def gradient_of_output(self, index: int) -> str:
        """As `gradients`, with zeros where there is none."""
        found = self.gradients[index]
        return self.zeros_like(self.node.output[index]) if found is None else found

    def replace_gradient(self, gradient: str) -> GradientContext:
        """The same node with another gradient of its first output."""
        return GradientContext(self.builder, self.node, (gradient, *self.gradients[1:]), self._wanted)

    def refusal(self, why: str) -> InputError:
        """The error to raise if there is no gradient."""
        return InputError(f"node {self.node.name!r} ({self.node.op_type}) cannot be differentiated: {why}")


GradientFunction = Callable[[GradientContext], Gradients]
"""A gradient function returns one gradient per input, None if it is not needed or not possible; trailing ones may be omitted."""
