"""Sizes and aliases of the tensors in a traced graph, from the storages of torch's fake tensors.

Fake tensors have storages that are shared exactly as those of real ones are. The schemas of operators are no substitute: they do not say
that `_unsafe_view` and `unsafe_split` return views.
"""

from __future__ import annotations

from typing import Any

import torch

from ...core.errors import InputError
from ...core.model.memory_model import allocated_bytes
from .internals import size_hint, storage_identity


def tensors_in(value: Any) -> list[tuple[int | None, torch.Tensor]]:
    """The tensors of what an operation returns, each with its place in the tuple; None if it returns one tensor."""
    if isinstance(value, torch.Tensor):
        return [(None, value)]
    if isinstance(value, (tuple, list)):
        return [(place, item) for place, item in enumerate(value) if isinstance(item, torch.Tensor)]
    return []


def is_nested(value: Any) -> bool:
    """A tuple in a tuple, which no operator of aten returns."""
    return isinstance(value, (tuple, list)) and any(isinstance(item, (tuple, list, dict)) for item in value)


class Storages:
    """The storages of a graph: which are the same, and how many bytes each takes on the device of the graph.

    Merging equal computations makes one storage of two; `join` records that.
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self._same: dict[int, int] = {}

    def identity(self, tensor: torch.Tensor) -> int:
        """A number that tensors share if and only if they share memory."""
        found = storage_identity(tensor)
        while found in self._same:
            found = self._same[found]
        return found

    def join(self, duplicate: torch.Tensor, kept: torch.Tensor) -> None:
        one, other = self.identity(duplicate), self.identity(kept)
        if one != other:
            self._same[one] = other

    def bytes(self, tensor: torch.Tensor, where: str) -> int:
        """What the allocator takes for its storage; nothing if it is on another device."""
        if tensor.device != self.device:
            return 0
        size = size_hint(tensor.untyped_storage().nbytes())
        if size is None:
            raise InputError(
                f"{where}: its size depends on data, so its memory cannot be planned; keep it out of the compiled region "
                "(torch.compiler.disable), or give it a fixed size"
            )
        return allocated_bytes(size, self.device.type)
