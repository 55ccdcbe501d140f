"""JSON text for people and for diffs: one operation, step or stage per line, instead of one number per line or everything in one line."""

from __future__ import annotations

import json
from collections.abc import Iterator

WIDTH = 120
"""Lists of plain values are wrapped at this width."""


def json_text(document: object) -> str:
    """The text of a document; equal documents give equal text. NaN and infinity raise ValueError, because JSON has neither."""
    return "".join(_pieces(document, "")) + "\n"


def _pieces(item: object, indent: str) -> Iterator[str]:
    inner = indent + "  "
    if isinstance(item, dict) and item:
        separator = "{\n"
        for key, content in item.items():
            yield f"{separator}{inner}{_compact(key)}: "
            yield from _pieces(content, inner)
            separator = ",\n"
        yield f"\n{indent}}}"
    elif isinstance(item, list) and any(isinstance(content, (list, dict)) for content in item):
        yield "[\n" + ",\n".join(inner + _compact(content) for content in item) + f"\n{indent}]"
    elif isinstance(item, list):
        yield _wrapped([_compact(content) for content in item], indent)
    else:
        yield _compact(item)


def _wrapped(items: list[str], indent: str) -> str:
    if sum(map(len, items)) + 2 * len(items) + len(indent) <= WIDTH:
        return f"[{', '.join(items)}]"
    lines: list[list[str]] = [[]]
    width = 0
    for item in items:
        if width + len(item) > WIDTH and lines[-1]:
            lines.append([])
            width = 0
        lines[-1].append(item)
        width += len(item) + 2
    inner = indent + "  "
    return "[\n" + ",\n".join(inner + ", ".join(line) for line in lines) + f"\n{indent}]"


def _compact(item: object) -> str:
    return json.dumps(item, ensure_ascii=False, allow_nan=False)
