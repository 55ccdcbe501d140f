"""Cost over budget, drawn with characters: one mark per strategy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

from ..core.units import format_bytes

MARKS, ABOVE = "●■◆▼★✚", "▲"
ASCII_MARKS, ASCII_ABOVE = "ox+*#@", "^"
STEEPEST = 4
"""Where a few points cost this many times what is usual, the scale ends there: they are marked at the top instead of squeezing the rest."""

Series = Mapping[str, Sequence[tuple[int, float]]]
"""Budget and overhead of each point, by strategy."""


def draw_curves(series: Series, *, width: int = 66, height: int = 14, unicode: bool = True) -> list[str]:
    """Where marks fall on one place the first strategy is seen. Overheads begin at 0; budgets span what there is."""
    points = [point for line in series.values() for point in line]
    if not points:
        return ["  nothing fits at any of these budgets"]
    low, high = min(budget for budget, _ in points), max(budget for budget, _ in points)
    top = _top([overhead for _, overhead in points])
    alphabet, above = (MARKS, ABOVE) if unicode else (ASCII_MARKS, ASCII_ABOVE)
    marks = {strategy: alphabet[number % len(alphabet)] for number, strategy in enumerate(series)}
    cells = [[" "] * width for _ in range(height)]
    for strategy in reversed(list(series)):
        for budget, overhead in series[strategy]:
            column = round((budget - low) / max(high - low, 1) * (width - 1))
            row = round(max(overhead, 0.0) / top * (height - 1))
            cells[min(row, height - 1)][column] = marks[strategy] if overhead <= top else above
    tick, wall, corner, floor = ("┤", "│", "└", "─") if unicode else ("+", "|", "+", "-")
    labels = {row: f"{100 * top * row / (height - 1):+.3g} %" for row in (0, (height - 1) // 2, height - 1)}
    margin = max(map(len, labels.values()))
    edges = [f"{labels.get(row, ''):>{margin}} {tick if row in labels else wall}" for row in range(height)]
    left, right = format_bytes(low), format_bytes(high)
    legend = [f"{marks[strategy]} {strategy}" for strategy in series]
    if any(overhead > top for _, overhead in points):
        legend.append(f"{above} above the scale")
    return [
        *(f"{edges[row]}{''.join(cells[row])}".rstrip() for row in reversed(range(height))),
        f"{'':{margin}} {corner}{floor * width}",
        f"{'':{margin}}  {left}{'budget':^{max(0, width - len(left) - len(right))}}{right}",
        f"{'':{margin}}  {'   '.join(legend)}",
    ]


def _top(overheads: Sequence[float]) -> float:
    usual = median([overhead for overhead in overheads if overhead > 0] or [0.0])
    return max(min(max(overheads), STEEPEST * usual), 1e-9)
