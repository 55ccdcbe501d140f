"""Text output. On a terminal: boxes and colour, by rich. In a pipe or a file: the same rows as aligned plain text."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TextIO

from ..console import speaks_unicode

if TYPE_CHECKING:
    from rich.console import Console


LONG_VALUE = 32
"""Figures are shorter than this. Paths may be longer, and must not push the remarks of other rows to the right."""
FOLDED = 14
"""Text in a table is not wrapped, and names are not shortened, to less than this."""
INDENT = GAP = 2
"""Spaces before a table, and between its columns."""


@dataclass(frozen=True, slots=True)
class Fact:
    """A labelled line: a label, a figure, and a remark on the figure."""

    label: str
    value: str
    remark: str = ""
    style: str = ""
    """Of the value, on a terminal."""


@dataclass(frozen=True, slots=True)
class Column:
    title: str
    right: bool = False
    """Align to the right, for numbers."""


@dataclass(frozen=True, slots=True)
class Row:
    cells: tuple[str, ...]
    style: str = ""


def is_fancy(stream: TextIO) -> bool:
    """True for a terminal, or with FORCE_COLOR."""
    return speaks_unicode(stream) and os.environ.get("TERM") != "dumb" and (stream.isatty() or bool(os.environ.get("FORCE_COLOR")))


def console(stream: TextIO) -> Console:
    """A rich console that interprets no markup and does not highlight numbers."""
    from rich.console import Console

    return Console(file=stream, markup=False, highlight=False, emoji=False)


def screen_width(stream: TextIO, usual: int = 80) -> int:
    """The width of the terminal in characters; the usual width for a pipe."""
    if is_fancy(stream):
        return console(stream).width
    return shutil.get_terminal_size((usual, 24)).columns if stream.isatty() else usual


def shortened(text: str, longest: int, *, unicode: bool = True) -> str:
    """Names that are too long lose their middle, since they differ at both ends. Text of several words stays, because it can be wrapped."""
    if len(text) <= longest:
        return text
    if " " in text:
        return " ".join(shortened(word, longest, unicode=unicode) for word in text.split(" "))
    gap = "…" if unicode else ".."
    rest = max(longest - len(gap), 2)
    return text[: rest // 2] + gap + text[len(text) - (rest - rest // 2) :]


def show_facts(title: str, facts: Sequence[Fact], stream: TextIO | None = None) -> None:
    """A panel of labelled figures. Remarks are aligned, except after a few long figures."""
    out = stream or sys.stdout
    if out.isatty() or is_fancy(out):
        longest = max(screen_width(out) // 2, FOLDED)
        facts = [replace(fact, remark=shortened(fact.remark, longest, unicode=speaks_unicode(out))) for fact in facts]
    width = max((len(fact.value) for fact in facts if fact.remark and len(fact.value) <= LONG_VALUE), default=0)
    figures = [fact.value.ljust(width) if fact.remark else fact.value for fact in facts]
    if not is_fancy(out):
        margin = max(len(fact.label) for fact in facts)
        _write(out, (f"{fact.label:{margin}}  {figure}  {fact.remark}".rstrip() for fact, figure in zip(facts, figures, strict=True)))
        return
    from rich import box
    from rich.panel import Panel
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for fact, figure in zip(facts, figures, strict=True):
        grid.add_row(
            fact.label, Text.assemble((figure, fact.style), "  ", (fact.remark, "dim")) if fact.remark else Text(figure, fact.style)
        )
    panel = Panel(
        grid, title=Text(title, style="bold"), title_align="left", box=box.ROUNDED, border_style="dim", expand=False, padding=(0, 1)
    )
    console(out).print(panel)


def show_table(title: str, columns: Sequence[Column], rows: Sequence[Row], stream: TextIO | None = None) -> None:
    """A table under its title; rows may be styled on a terminal."""
    out = stream or sys.stdout
    is_narrow = _least_width(columns, rows) > screen_width(out)
    if (out.isatty() or is_fancy(out)) and not is_narrow:
        rows = _fitted(columns, rows, screen_width(out) - INDENT, unicode=speaks_unicode(out))
    if not is_fancy(out):
        header = tuple(column.title for column in columns)
        lines = _aligned([header, *(row.cells for row in rows)], tuple(column.right for column in columns))
        _write(out, [title, *(f"  {line}" for line in lines)])
        return
    if is_narrow:
        _show_stacked(title, columns, rows, out)
        return
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, header_style="dim", padding=(0, 2, 0, 0), pad_edge=False)
    for column in columns:
        table.add_column(column.title, justify="right" if column.right else "left", no_wrap=column.right, overflow="fold")
    for row in rows:
        table.add_row(*row.cells, style=row.style or None)
    screen = console(out)
    screen.print(Text(title, style="bold"))
    screen.print(Padding(table, (0, 0, 0, 2), expand=False))


def _fitted(columns: Sequence[Column], rows: Sequence[Row], width: int, *, unicode: bool) -> list[Row]:
    """The rows with long names shortened, as far as the table is too wide. Figures are never cut."""
    if not rows:
        return []
    natural = _widths(columns, rows)
    names = [index for index, column in enumerate(columns) if not column.right]
    room = width - GAP * (len(columns) - 1) - sum(natural[index] for index, column in enumerate(columns) if column.right)
    longest = max((natural[index] for index in names), default=0)
    while longest > FOLDED and sum(min(natural[index], longest) for index in names) > room:
        longest -= 1
    table = [
        list(cells) if column.right else _shortened_alike(cells, longest, unicode=unicode)
        for column, cells in zip(columns, zip(*(row.cells for row in rows), strict=True), strict=True)
    ]
    return [replace(row, cells=tuple(cells[number] for cells in table)) for number, row in enumerate(rows)]


def _shortened_alike(cells: Sequence[str], longest: int, *, unicode: bool) -> list[str]:
    """If different names would look the same, because they differ in their middle, the part where they differ is shown instead."""
    short = [shortened(cell, longest, unicode=unicode) for cell in cells]
    long = sorted({cell for cell in cells if len(cell) > longest and " " not in cell})
    if len({shortened(cell, longest, unicode=unicode) for cell in long}) == len(long):
        return short
    gap = "…" if unicode else ".."
    room = longest - 2 * len(gap)
    common = next((place for place, (one, other) in enumerate(zip(long[0], long[-1], strict=False)) if one != other), 0)
    start = max(common - room // 2, 0)
    return [gap + cell[start : start + room] + gap if cell in long else made for cell, made in zip(cells, short, strict=True)]


def _widths(columns: Sequence[Column], rows: Sequence[Row]) -> list[int]:
    return [
        max(len(cell) for cell in cells) for cells in zip([column.title for column in columns], *(row.cells for row in rows), strict=True)
    ]


def _least_width(columns: Sequence[Column], rows: Sequence[Row]) -> int:
    """The least width of a table on a terminal: text can be wrapped, figures cannot."""
    widths = zip(columns, _widths(columns, rows), strict=True)
    return INDENT + sum(GAP + (width if column.right else min(width, FOLDED)) for column, width in widths)


def _show_stacked(title: str, columns: Sequence[Column], rows: Sequence[Row], out: TextIO) -> None:
    """A table on a screen that is too narrow for it: every row is a few lines, each with the title of its column."""
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", max_width=screen_width(out) // 3)
    grid.add_column(overflow="fold")
    for number, row in enumerate(rows):
        if number:
            grid.add_row("", "")
        for column, cell in zip(columns, row.cells, strict=True):
            grid.add_row(column.title, Text(shortened(cell, screen_width(out) // 2), row.style))
    screen = console(out)
    screen.print(Text(title, style="bold"))
    screen.print(Padding(grid, (0, 0, 0, 2), expand=False))


def show_lines(title: str, lines: Iterable[str], stream: TextIO | None = None) -> None:
    """Lines that are already drawn, under their title."""
    out = stream or sys.stdout
    if not is_fancy(out):
        _write(out, [title, *lines])
        return
    from rich.text import Text

    screen = console(out)
    screen.print(Text(title, style="bold"))
    for line in lines:
        screen.print(Text(line, no_wrap=True), crop=False, overflow="ignore")


def blank(stream: TextIO | None = None) -> None:
    (stream or sys.stdout).write("\n")


def _write(stream: TextIO, lines: Iterable[str]) -> None:
    stream.writelines(f"{line}\n" for line in lines)


def _aligned(rows: Sequence[Sequence[str]], right: Sequence[bool]) -> list[str]:
    """Columns two spaces apart, without trailing spaces."""
    widths = [max(len(row[index]) for row in rows) for index in range(len(right))]
    return [
        "  ".join(
            cell.rjust(width) if at_end else cell.ljust(width) for cell, width, at_end in zip(row, widths, right, strict=True)
        ).rstrip()
        for row in rows
    ]
