"""How far up a picture of curves reaches, on a terminal and on paper alike."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

STEEPEST = 4
"""Where a few points cost this many times what is usual, the scale ends there: they are marked at the top instead of squeezing the rest."""
LEAST_SHOWN, FLAT = 1e-6, 0.01
"""Overheads below the first are none; where there are no others, the scale ends at the second."""


def scale_top(overheads: Sequence[float]) -> float:
    """Where the scale ends: at the largest overhead, unless that is far beyond what is usual."""
    usual = median([overhead for overhead in overheads if overhead > LEAST_SHOWN] or [0.0])
    return min(max(overheads), STEEPEST * usual) if usual else FLAT
