"""What a gradient function sees of the node it differentiates, and what it builds the gradient with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from onnx import NodeProto

from ....core.errors import InputError
from ..attributes import find, integer, integers, text
from ..stored import Array
from .builder import FREE, GraphBuilder
from .sampling import Dim, Shape

Gradients = Sequence[str | None]


class GradientContext:
    """One node, the gradients of its outputs, and the graph to add to. Made by the engine, once per node."""

    def __init__(self, builder: GraphBuilder, node: NodeProto, gradients: Gradients, wanted: Sequence[bool]) -> None:
        self.builder = builder
        self.node = node
        self.gradients = tuple(gradients)
        """Of each output; None where nothing that matters was computed from it."""
        self._wanted = tuple(wanted)

    @property
    def inputs(self) -> Sequence[str]:
        return list(self.node.input)

    @property
    def outputs(self) -> Sequence[str]:
        return list(self.node.output)

    @property
    def gradient(self) -> str:
        """Of the first output, which has to have one."""
        found = self.gradients[0] if self.gradients else None
        if found is None:
            raise self.refusal("only another output than the first is used")
        return found

    def wants(self, index: int) -> bool:
        """Does input `index` need a gradient? What nobody wants should not be computed."""
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
        """The size along one axis, which has to be a number."""
        return self.fixed(self.shape(name)[axis], name)

    def sizes(self, name: str) -> tuple[int, ...]:
        return tuple(self.fixed(dim, name) for dim in self.shape(name))

    def sizes_of(self, name: str, first: int) -> tuple[int, ...]:
        """The sizes from axis `first` on, which have to be numbers."""
        return tuple(self.fixed(dim, name) for dim in self.shape(name)[first:])

    def fixed(self, dim: Dim, name: str) -> int:
        if isinstance(dim, str):
            raise self.refusal(f"its gradient needs the size {dim!r} of {name!r} as a number: {FREE}")
        return dim

    def numbers(self, name: str) -> Array | None:
        """The numbers of a small constant (axes, shapes, scales), if known."""
        return self.builder.tensors.numbers(name) if name else None

    def known(self, index: int, what: str) -> Array:
        """The numbers of an input that the gradient cannot do without."""
        numbers = self.numbers(self.node.input[index])
        if numbers is None:
            raise self.refusal(f"its {what} is computed when the model runs: only a constant can be differentiated through")
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
        """True and false as 1 and 0 of another tensor's element type."""
        return self.builder.cast(condition, self.element(like))

    def each(self, *makers: Callable[[], str]) -> list[str | None]:
        """One gradient per input, computed only where it is wanted; the last first, so that parameters come before data."""
        made: list[str | None] = [None] * len(makers)
        for index in reversed(range(len(makers))):
            if self.wants(index):
                made[index] = makers[index]()
        return made

    def never(self) -> str:
        """In place of a maker for an input that has no gradient."""
        raise self.refusal("an input that only says how is computed from trained parameters")

    def only_first(self, maker: Callable[[], str]) -> list[str | None]:
        """For operators whose other inputs say how, not what: axes, shapes, indices."""
        return [maker() if self.wants(0) else None]

    def extra_output(self, index: int) -> str:
        """An optional output of the forward node, which is asked to make it if it did not."""
        node = self.node
        while len(node.output) <= index:
            node.output.append("")
        if not node.output[index]:
            name = self.builder.unused(f"{node.output[0]}/output_{index}")
            node.output[index] = name
            self.builder.tensors.define_outputs(node, [name])
        return str(node.output[index])

    def gradient_of_output(self, index: int) -> str:
        """As `gradients`, with zeros where there is none."""
        found = self.gradients[index]
        return self.zeros_like(self.node.output[index]) if found is None else found

    def replace_gradient(self, gradient: str) -> GradientContext:
        """The same node seen with another gradient of its first output."""
        return GradientContext(self.builder, self.node, (gradient, *self.gradients[1:]), self._wanted)

    def refusal(self, why: str) -> InputError:
        """To raise where there is no gradient, for a reason the user can understand."""
        return InputError(f"node {self.node.name!r} ({self.node.op_type}) cannot be differentiated: {why}")


GradientFunction = Callable[[GradientContext], Gradients]
"""From a node to one gradient per input, None where none is wanted or possible; fewer than there are inputs is fine."""
