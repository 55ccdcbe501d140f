"""What a user may ask of the solving, whatever the strategy."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Settings:
    """Options of the strategies; some ignore most of them."""

    solver: str = "highs"
    formulation: str = "liveness"
    gap: float = 1e-4
    """Relative gap at which a schedule counts as optimal."""
    order: str = "given"
    """`given`: first computations in the graph's order; `search`: in an order found by search."""
    threads: int | None = None
    seed: int = 0
