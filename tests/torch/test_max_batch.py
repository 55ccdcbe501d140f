"""The largest batch, found without making tensors of that size."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch==2.13.0")

from torch_runs import Pair, peak_bytes
from torch_zoo import GPT, ZOO, ResNet, images

import checkmate
import checkmate.torch


def batch(size: int) -> dict[str, Any]:
    return {"images": torch.randn(size, 3, 32, 32), "labels": torch.zeros(size, dtype=torch.long)}


@pytest.mark.slow
def test_the_largest_batch_trains_and_one_more_is_not_promised() -> None:
    """By keywords. The model compiled for the same budget trains at that size in the peak that was predicted."""
    found = checkmate.torch.max_batch(ResNet(), batch, "4MB", time_limit=2)
    assert found.size > found.keep_all_size > 0
    assert found.impossible_from is not None
    assert found.impossible_from > found.size
    assert found.plan is not None
    assert found.plan.peak_bytes <= found.budget_bytes == 4_000_000
    pair = Pair.of(ZOO["resnet"], budget="4MB", time_limit=10)
    assert pair.step(0, images(found.size)) == []
    assert pair.measured_peak(images(found.size)) + pair.plans[0].fixed_bytes <= 4_000_000


@pytest.mark.slow
def test_asking_takes_no_memory() -> None:
    """A hundred gigabytes of activations; asking allocates less than a megabyte at a time."""

    def inputs(size: int) -> tuple[Any, ...]:
        return torch.zeros(size, 32, dtype=torch.long), torch.zeros(size, 32, dtype=torch.long)

    taken = []

    def ask() -> None:
        taken.append(checkmate.torch.max_batch(GPT(), inputs, "100GB", time_limit=2, overhead="0%"))

    assert peak_bytes(ask) < 1_000_000
    assert taken[0].size == taken[0].keep_all_size > 10_000


def test_what_cannot_be_asked() -> None:
    with pytest.raises(checkmate.InputError, match="a percentage is not possible"):
        checkmate.torch.max_batch(ResNet(), batch, "80%")
    with pytest.raises(checkmate.InputError, match="cannot be traced for inputs of size 2"):
        checkmate.torch.max_batch(ResNet(), lambda size: torch.zeros(size), "1GB")
    frozen = ResNet().requires_grad_(False)
    with pytest.raises(checkmate.InputError, match="nothing to train"):
        checkmate.torch.max_batch(frozen, batch, "1GB")
