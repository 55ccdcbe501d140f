"""Reverse-mode differentiation: go backward from the loss through the nodes; each passes gradients to its inputs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence

from onnx import NodeProto

from ....core.errors import InputError
from ..build.builder import GraphBuilder
from ..build.gradient_context import GradientContext
from ..gradients import GRADIENTS, TYPE_ONLY, WITHOUT_GRADIENT
from ..proto.captures import reads
from ..proto.model_file import plain_domain
from ..proto.naming import kind_of

Finish = Callable[[str, str], None]
"""Called with a parameter and its gradient as soon as nothing else needs them."""


class Backward:
    """One backward pass. Gradients of a value are added up as soon as they are computed, so that at most two of them are in memory."""

    def __init__(self, builder: GraphBuilder, loss: str, trained: Collection[str], finish: Finish) -> None:
        self._builder = builder
        self._trained = frozenset(trained)
        self._finish = finish
        self._nodes = list(builder.nodes)
        self._active = active_values(builder, self._nodes, self._trained)
        self._found: dict[str, str] = {}
        self._pending = _readers(self._nodes, self._trained)
        self._final_names: dict[str, str] = {}
        if loss in self._active:
            builder.prefix = f"grad/{loss}"
            self._found[loss] = builder.expand(builder.scalar(1.0, loss), builder.tensors.shape(loss))

    def run(self) -> dict[str, str]:
        """Add all nodes. Returns the final name of each tensor, to be applied at the end."""
        for node in reversed(self._nodes):
            self._step(node)
            for name in set(reads(node)) & self._trained:
                self._pending[name] -= 1
                if not self._pending[name] and name in self._found:
                    self._close(name)
                    self._finish(name, self._found[name])
        return self._final_names

    def _step(self, node: NodeProto) -> None:
        gradients = [self._found.pop(name, None) if name else None for name in node.output]
        wanted = [name in self._active and index not in _type_only(node) for index, name in enumerate(node.input)]
        if all(gradient is None for gradient in gradients) or not any(name in self._active for name in _data(node)):
            return
        for name, gradient in zip(node.output, gradients, strict=True):
            if gradient is not None:
                self._name(name, gradient)
        function = None if plain_domain(node.domain) else GRADIENTS.get(node.op_type)
        if function is None:
            raise _unknown(node)
        self._builder.prefix = f"grad/{node.name}"
        made = function(GradientContext(self._builder, node, gradients, wanted))
        for index, (name, want) in enumerate(zip(node.input, wanted, strict=True)):
            if not want:
                continue
            gradient = made[index] if index < len(made) else None
            if gradient is None and any(other == name and found for other, found in zip(node.input, made, strict=False)):
                continue
            if gradient is None:
                raise InputError(
                    f"node {node.name!r} ({node.op_type}) has no gradient for its input {index} ({name!r}), which depends on trained "
                    "parameters: freeze these with --freeze, or make the input a constant"
                )
            self._check(node, name, gradient)
            self._accumulate(name, gradient)

    def _check(self, node: NodeProto, name: str, gradient: str) -> None:
        """A gradient has the shape of its value, unless attributes of a node are inconsistent; onnx does not check everything."""
        tensors = self._builder.tensors
        if tensors.shape(gradient) != tensors.shape(name) or tensors.element(gradient) != tensors.element(name):
            sizes = " and ".join(str(tensors.shape(tensor)) for tensor in (name, gradient))
            raise InputError(
                f"the gradient of {name!r} from node {node.name!r} ({node.op_type}) does not have the shape or type of {name!r}: {sizes}; "
                "check that the attributes of the node match its inputs"
            )

    def _accumulate(self, name: str, gradient: str) -> None:
        before = self._found.get(name)
        self._found[name] = gradient if before is None else self._builder.add("Add", before, gradient)

    def _close(self, name: str) -> None:
        """A gradient that is a graph output has its own tensor."""
        gradient = self._found[name]
        if gradient in self._final_names or gradient in self._builder.constants or not self._is_made_here(gradient):
            self._builder.prefix = f"grad/{name}"
            gradient = self._builder.add("Identity", gradient)
            self._found[name] = gradient
        self._name(name, gradient)

    def _name(self, value: str, gradient: str) -> None:
        if gradient not in self._final_names and gradient not in self._builder.constants and self._is_made_here(gradient):
            self._final_names[gradient] = f"grad/{value}"

    def _is_made_here(self, gradient: str) -> bool:
        return gradient.startswith("grad/")


def active_values(builder: GraphBuilder, nodes: Sequence[NodeProto], trained: Collection[str]) -> set[str]:
    """Values that depend on a trained parameter in a way that has, or may have, a derivative."""
    active = set(trained)
    for node in nodes:
        if not plain_domain(node.domain) and node.op_type in WITHOUT_GRADIENT:
            continue
        if any(name in active for name in _data(node)):
            active.update(name for name in node.output if name and _may_carry_gradient(builder, name))
    return active


def _type_only(node: NodeProto) -> frozenset[int]:
    return frozenset() if plain_domain(node.domain) else TYPE_ONLY.get(node.op_type, frozenset())


def _data(node: NodeProto) -> list[str]:
    """The inputs whose values a node reads."""
    unread = _type_only(node)
    return [name for index, name in enumerate(node.input) if index not in unread] if unread else reads(node)


def _may_carry_gradient(builder: GraphBuilder, name: str) -> bool:
    """True for floating-point tensors; also for sequences and similar types, so that they are refused and not ignored."""
    return builder.tensors.is_float(name) or builder.tensors.element(name) == 0


def _readers(nodes: Sequence[NodeProto], trained: frozenset[str]) -> Counter[str]:
    return Counter(name for node in nodes for name in set(reads(node)) & trained)


def _unknown(node: NodeProto) -> InputError:
    kind = kind_of(node)
    if kind == "If":
        advice = (
            "its condition is computed when the model runs: make it a constant (store the inputs that it depends on in the model, as "
            "initializers), or freeze the parameters before it with --freeze"
        )
    elif kind in ("Loop", "Scan"):
        advice = (
            "loops cannot be differentiated: export the model with the loop unrolled (in torch, a Python loop over a fixed number of "
            "steps), or freeze the parameters before it with --freeze"
        )
    elif "Linear" in kind or kind.startswith(("Q", "Dynamic")):
        advice = "quantized operators cannot be differentiated: train the model before it is quantized"
    else:
        advice = (
            "freeze the parameters before it with --freeze, or export the model in operators that 'checkmate differentiate --list' names"
        )
    return InputError(f"operator {kind} of node {node.name!r}, between the parameters and the loss, has no gradient; {advice}")
