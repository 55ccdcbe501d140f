"""The memory model of a schedule: that of the paper, or that of the runtime that executes it."""

from __future__ import annotations

from enum import Enum

CUDA_ROUNDING = 512
"""Bytes: torch's CUDA allocator rounds every allocation up to a multiple of this (kMinBlockSize); its CPU allocator does not round."""


class MemoryModel(Enum):
    """In all of them, a value is freed after its last read and views share a buffer. They differ in what an operation may overwrite, and in
    what the loader that makes the graph counts as the size of a value."""

    GENERIC = "generic"
    """The paper's: every output of an operation that is not a view has its own buffer."""
    ONNXRUNTIME = "onnxruntime"
    """onnxruntime's: an operation overwrites an input if it can (`Operation.in_place`) and nothing needs the input's buffer any more."""
    TORCH = "torch"
    """PyTorch's: a value is a storage, its size that of the allocation (`allocated_bytes`), and nothing is overwritten, because graphs are
    traced in functional form. A training step runs in two parts, and the caller holds the outputs of the first part to the end: the
    graph says so itself, by an operation between the two that reads every output of the forward pass and makes what the backward pass
    starts from (`io/torch/boundary.py`)."""

    @property
    def overwrites(self) -> bool:
        """True if an operation may write an output over an input."""
        return self is MemoryModel.ONNXRUNTIME


def allocated_bytes(size: int, device: str) -> int:
    """What torch's allocator for a type of device (`cpu`, `cuda`) takes for a storage of this size."""
    return size if device == "cpu" else -(-size // CUDA_ROUNDING) * CUDA_ROUNDING
