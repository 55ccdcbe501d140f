"""The scale of the overhead axis, for charts on a terminal and for plots."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

STEEPEST = 4
"""If a few points are above this many times the usual overhead, the scale ends there, and they are marked at the top."""
LEAST_SHOWN, FLAT = 1e-6, 0.01
"""Overheads below the first count as 0; if there are no others, the scale ends at the second."""


def scale_top(overheads: Sequence[float]) -> float:
    """The end of the scale: the largest overhead, unless it is far above the usual overhead."""
    usual = median([overhead for overhead in overheads if overhead > LEAST_SHOWN] or [0.0])
    return min(max(overheads), STEEPEST * usual) if usual else FLAT
