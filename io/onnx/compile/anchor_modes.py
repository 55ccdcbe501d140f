"""How a compiled model keeps its recomputations and its order in any onnxruntime session. Imports nothing heavy."""

from __future__ import annotations

from enum import Enum


class Anchor(Enum):
    FULL = "full"
    """No nodes are merged, and every node waits for the one before it. For CPU."""
    ATTR = "attr"
    """No nodes are merged; the session chooses the order. For GPUs, which barriers would make wait for the host."""
    NONE = "none"
    """Only sessions with the exact settings (`checkmate.session`) keep the recomputations. The smallest file, and the fastest to load."""
