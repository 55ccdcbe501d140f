"""What a budget limits. Imports nothing heavy, so that help is fast."""

from __future__ import annotations

from enum import Enum


class Count(Enum):
    TENSORS = "tensors"
    """Inputs, parameters, constants, computed tensors and workspace."""
    ARENA = "arena"
    """The same, with the gaps between tensors in the memory that onnxruntime manages."""
    PROCESS = "process"
    """All that the process takes for the session, its graph and its threads included."""
