"""The memory model of a schedule: that of the paper, or that of the runtime that executes it."""

from __future__ import annotations

from enum import Enum


class MemoryModel(Enum):
    """In both, a value is freed after its last read and views share a buffer. They differ in what an operation may overwrite."""

    GENERIC = "generic"
    """The paper's: every output of an operation that is not a view has its own buffer."""
    ONNXRUNTIME = "onnxruntime"
    """onnxruntime's: an operation overwrites an input if it can (`Operation.in_place`) and nothing needs the input's buffer any more."""
