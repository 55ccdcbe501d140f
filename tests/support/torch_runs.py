"""Run training steps in eager mode and compiled, and measure their memory."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch_zoo import Entry

import checkmate.torch
from checkmate.io.torch.internals import allocations


def peak_bytes(call: Callable[[], object]) -> int:
    """The most bytes that a call allocates on top of what was there, by torch's profiler."""

    def run() -> None:
        call()

    _, changes = allocations(run)
    now = most = 0
    for change in changes:
        now += change
        most = max(most, now)
    return most


def forget_gradients(*models: torch.nn.Module) -> None:
    for model in models:
        for parameter in model.parameters():
            parameter.grad = None


def differences(one: torch.nn.Module, other: torch.nn.Module) -> list[str]:
    """Names of gradients and buffers that are not bit-equal."""
    found = []
    for (name, first), (_, second) in zip(one.named_parameters(), other.named_parameters(), strict=True):
        if (first.grad is None) != (second.grad is None) or (first.grad is not None and not torch.equal(first.grad, second.grad)):
            found.append(f"gradient of {name}")
    for (name, first), (_, second) in zip(one.named_buffers(), other.named_buffers(), strict=True):
        if not torch.equal(first, second):
            found.append(f"buffer {name}")
    return found


@dataclass
class Pair:
    """A model in eager mode, and a copy of it that is compiled."""

    eager: torch.nn.Module
    plain: torch.nn.Module
    compiled: Any
    entry: Entry

    @classmethod
    def of(cls, entry: Entry, **options: Any) -> Pair:
        torch._dynamo.reset()
        torch.manual_seed(0)
        eager = entry.make()
        plain = copy.deepcopy(eager)
        chosen = {"budget": entry.share, "cache": False, "time_limit": 20.0, "gap": 0.3, **options}
        return cls(eager, plain, checkmate.torch.compile(plain, **chosen), entry)

    def step(self, seed: int, inputs: tuple[torch.Tensor, ...] | None = None) -> list[str]:
        """One training step of both; what is not bit-equal afterwards."""
        inputs = inputs or self.entry.inputs()
        forget_gradients(self.eager, self.plain)
        torch.manual_seed(seed)
        expected = self.entry.step(self.eager, inputs)
        torch.manual_seed(seed)
        found = self.entry.step(self.compiled, inputs)
        return [*([] if torch.equal(expected, found) else ["result"]), *differences(self.eager, self.plain)]

    def measured_peak(self, inputs: tuple[torch.Tensor, ...] | None = None) -> int:
        """The most bytes that a compiled step allocates, without what is there before."""
        inputs = inputs or self.entry.inputs()
        forget_gradients(self.plain)
        return peak_bytes(lambda: self.entry.step(self.compiled, inputs))

    @property
    def plans(self) -> list[checkmate.torch.Plan]:
        return checkmate.torch.plans(self.plain)
