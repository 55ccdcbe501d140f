"""The one protocol of everything that improves the pool."""

from __future__ import annotations

from typing import Protocol

from ..events import Watch
from .pool import Report, Snapshot


class Worker(Protocol):
    """Does its work in slices. What a slice does depends on the snapshot and on the worker's earlier slices, and on nothing else: neither
    on time nor on what runs beside it. So a run is the same on every machine, until the time limit cuts it."""

    name: str
    is_search: bool
    """Does it take turns with the other searches? A bound is worked on in every round."""

    def wants(self, snapshot: Snapshot) -> bool:
        """Is there anything for it to do now?"""

    def step(self, snapshot: Snapshot, watch: Watch) -> Report:
        """A slice of work, a second or so. The watch says only when everything must stop."""

    def close(self) -> None:
        """Let go of what it holds: processes."""
