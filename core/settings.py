"""What a user may ask of the solving, whatever the strategy."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Settings:
    """Options of the MILP-based strategies; the others ignore them."""

    solver: str = "highs"
    formulation: str = "liveness"
    gap: float = 1e-4
    """Relative gap at which a schedule counts as optimal."""
    threads: int | None = None
    seed: int = 0
