"""How a compiled model holds on to its order when onnxruntime opens it as it pleases. Nothing heavy is imported here."""

from __future__ import annotations

from enum import Enum


class Anchor(Enum):
    FULL = "full"
    """Nothing is merged, and every node waits for the one before it: for CPU."""
    ATTR = "attr"
    """Nothing is merged; the order is left to the session. Barriers would make a GPU wait for the host."""
    NONE = "none"
    """Nodes as they are: only sessions with the exact settings keep the recomputations."""
