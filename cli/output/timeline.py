"""A chart of memory over time, drawn with characters. It fits a terminal, however many operations there are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from ...core.model.units import format_bytes

EIGHTHS = " ▁▂▃▄▅▆▇█"


@dataclass(frozen=True, slots=True)
class Alphabet:
    """The characters to draw with."""

    levels: str
    """From empty to full."""
    fixed: str
    """Fixed memory."""
    tick: str
    wall: str
    corner: str
    floor: str


UNICODE = Alphabet(EIGHTHS, "░", "┤", "│", "└", "─")
ASCII = Alphabet("  ##", ":", "+", "|", "+", "-")


def draw_timeline(memory: Sequence[int], fixed: int, *, width: int = 70, height: int = 12, unicode: bool = True) -> list[str]:
    """Each column shows the maximum over its operations, so that no peak is lost. The scale starts at 0."""
    alphabet = UNICODE if unicode else ASCII
    columns = _columns(memory, width)
    top = max(max(columns), 1)
    labels = {height - 1: format_bytes(top), (height - 1) // 2: format_bytes(round(top * ((height - 1) // 2 + 1) / height))}
    margin = max(len(label) for label in (*labels.values(), "0 B"))
    lines: list[str] = []
    for row in reversed(range(height)):
        cells = "".join(_cell(most, fixed, top, row, height, alphabet) for most in columns)
        edge = alphabet.tick if row in labels else alphabet.wall
        lines.append(f"{labels.get(row, ''):>{margin}} {edge}{cells}".rstrip())
    lines.append(f"{'0 B':>{margin}} {alphabet.corner}{alphabet.floor * len(columns)}")
    last = str(len(memory))
    lines.append(f"{'':{margin}}  1{'operation':^{len(columns) - 1 - len(last)}}{last}")
    return lines


def legend(fixed: int, *, unicode: bool = True) -> str:
    """The meaning of the two shades; empty if there is only one."""
    alphabet = UNICODE if unicode else ASCII
    return f"{alphabet.fixed} fixed memory ({format_bytes(fixed)})  {alphabet.levels[-1]} computed values" if fixed else ""


def _columns(memory: Sequence[int], width: int) -> list[int]:
    """If there are few operations, each fills several columns; if there are many, a column shows their maximum."""
    edges = [column * len(memory) // width for column in range(width + 1)]
    return [max(memory[start : max(end, start + 1)]) for start, end in pairwise(edges)]


def _cell(most: int, fixed: int, top: int, row: int, height: int, alphabet: Alphabet) -> str:
    steps = len(alphabet.levels) - 1
    level = min(steps, max(0, -(-most * height * steps // top) - row * steps))
    if level == steps and fixed * height >= (row + 1) * top:
        return alphabet.fixed
    return alphabet.levels[level]
