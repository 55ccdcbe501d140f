"""Symbolic sizes of a joint graph: the numbers among its inputs.

One graph can have several plans, one for each size it was run with. They save different tensors, but torch's runtime counts on a fixed
number of saved numbers. So every forward graph returns all the numbers among its inputs, in their order, and every backward graph takes
them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import GraphModule, Node

from ...core.errors import InputError
from .internals import as_symbolic, is_tangent, number_hint, symbol_of

_KINDS = (torch.SymInt, torch.SymFloat, torch.SymBool)


@dataclass(frozen=True)
class Numbers:
    """The numbers among the inputs of a forward graph, and their places."""

    nodes: tuple[Node, ...]
    places: tuple[int, ...]

    @classmethod
    def of(cls, placeholders: Sequence[Node]) -> Numbers:
        found = [
            (node, place) for place, node in enumerate(placeholders) if not is_tangent(node) and isinstance(node.meta.get("val"), _KINDS)
        ]
        return cls(tuple(node for node, _ in found), tuple(place for _, place in found))

    @property
    def hints(self) -> tuple[Any, ...]:
        """The sizes that the graph was traced with."""
        return tuple(number_hint(node.meta["val"]) for node in self.nodes)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(str(node.meta["val"]) for node in self.nodes)

    def values(self, sizes: Sequence[Any]) -> dict[Any, Any]:
        """Symbols and their values."""
        pairs = ((symbol_of(node.meta["val"]), size) for node, size in zip(self.nodes, sizes, strict=True))
        return {symbol: as_symbolic(size) for symbol, size in pairs if symbol is not None and isinstance(size, (int, float))}

    def of_forward(self, arguments: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(arguments[place] for place in self.places)

    def of_backward(self, arguments: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(arguments[: len(self.nodes)])


def with_all_numbers(forward: GraphModule, backward: GraphModule, numbers: Numbers) -> tuple[GraphModule, GraphModule]:
    """Make the forward graph return all numbers, and the backward graph take them."""
    wanted = [node.name for node in numbers.nodes]
    inputs = {node.name: node for node in forward.graph.find_nodes(op="placeholder")}
    taken = [node for node in backward.graph.find_nodes(op="placeholder") if isinstance(node.meta.get("val"), _KINDS)]
    for node in taken:
        if node.name not in wanted:
            raise InputError(
                f"{node.name}: a size that is computed from data is needed in the backward pass, which is not supported with dynamic sizes"
            )
    output = next(iter(forward.graph.find_nodes(op="output")))
    returned, described = list(output.args[0]), list(output.meta["desc"])
    rest = len(returned) - len(taken)
    output.args = ([*returned[:rest], *(inputs[name] for name in wanted)],)
    output.meta["desc"] = [*described[:rest], *([described[-1]] * len(wanted))]
    with backward.graph.inserting_before(next(iter(backward.graph.nodes))):
        made = {name: backward.graph.placeholder(f"size_{name}") for name in wanted}
    for original in numbers.nodes:
        made[original.name].meta = dict(original.meta)
    for node in taken:
        node.replace_all_uses_with(made[node.name])
        backward.graph.erase_node(node)
    for module in (forward, backward):
        module.graph.lint()
        module.recompile()
    return forward, backward
