"""A chart of cost over budget, drawn with characters: one mark per strategy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...core.model.units import format_bytes
from ...io.report.sweep_scale import scale_top

MARKS, ABOVE = "●■◆▼★✚", "▲"
ASCII_MARKS, ASCII_ABOVE = "ox+*#@", "^"
NARROWEST = 20

Series = Mapping[str, Sequence[tuple[int, float]]]
"""Budget and overhead of each point, by strategy."""


def draw_curves(series: Series, *, width: int = 76, height: int = 15, unicode: bool = True) -> list[str]:
    """A chart of this width, labels included. The overhead axis starts at 0; the budget axis spans all budgets.

    Where marks coincide, the mark of the first strategy is drawn.
    """
    points = [point for line in series.values() for point in line]
    if not points:
        return ["  no schedule fits any of these budgets"]
    low, high = min(budget for budget, _ in points), max(budget for budget, _ in points)
    top = scale_top([overhead for _, overhead in points])
    alphabet, above = (MARKS, ABOVE) if unicode else (ASCII_MARKS, ASCII_ABOVE)
    marks = {strategy: alphabet[number % len(alphabet)] for number, strategy in enumerate(series)}
    labels = {row: _label(top * row / (height - 1)) for row in (0, (height - 1) // 2, height - 1)}
    margin = max(map(len, labels.values()))
    columns = max(width - margin - 2, NARROWEST)
    cells = [[" "] * columns for _ in range(height)]
    hidden = False
    for strategy in reversed(list(series)):
        for budget, overhead in series[strategy]:
            column = round((budget - low) / max(high - low, 1) * (columns - 1))
            row = min(round(max(overhead, 0.0) / top * (height - 1)), height - 1)
            hidden |= cells[row][column] not in (" ", above)
            cells[row][column] = marks[strategy] if overhead <= top else above
    tick, wall, corner, floor = ("┤", "│", "└", "─") if unicode else ("+", "|", "+", "-")
    edges = [f"{labels.get(row, ''):>{margin}} {tick if row in labels else wall}" for row in range(height)]
    left, right = format_bytes(low), format_bytes(high)
    legend = [f"{marks[strategy]} {strategy}" for strategy in series]
    if any(overhead > top for _, overhead in points):
        legend.append(f"{above} above the scale")
    if hidden:
        legend.append("(where marks overlap: first)")
    return [
        *(f"{edges[row]}{''.join(cells[row])}".rstrip() for row in reversed(range(height))),
        f"{'':{margin}} {corner}{floor * columns}",
        f"{'':{margin}}  {left}{'budget':^{max(1, columns - len(left) - len(right))}}{right}",
        *(f"{'':{margin}}  {line}" for line in _packed(legend, columns)),
    ]


def _label(overhead: float) -> str:
    percent = 100 * overhead
    return "0 %" if not percent else f"{percent:+,.0f} %" if percent >= 100 else f"{percent:+.3g} %"


def _packed(words: Sequence[str], width: int) -> list[str]:
    """As many per line as fit."""
    lines: list[str] = []
    for word in words:
        if lines and len(lines[-1]) + 3 + len(word) <= width:
            lines[-1] += f"   {word}"
        else:
            lines.append(word)
    return lines
