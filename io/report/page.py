"""Assembles the page: markup, style, scripts and data in one file, which may not load or run anything else."""

from __future__ import annotations

import base64
import hashlib
import json
from html import escape
from importlib.resources import files

from ...core.model.graph import Graph
from ..formats.schedule_json import ScheduleDocument
from .data import report_data

SCRIPTS = ("base.js", "memory.js", "matrices.js", "tables.js", "progress.js", "facts.js", "start.js")
"""Joined in this order, they make one script."""


def render_report(document: ScheduleDocument, graph: Graph) -> bytes:
    """The page as bytes. Names from the graph are inserted as JSON only, and the scripts show them as text only."""
    script = "(() => {\n'use strict';\n" + "\n".join(_asset(name) for name in SCRIPTS) + "})();\n"
    fingerprint = base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
    parts = {
        "@TITLE@": escape(_printable(f"{graph.name}: checkmate report")),
        "@POLICY@": f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{fingerprint}'",
        "@STYLE@": _asset("page.css"),
        "@DATA@": embedded_json(report_data(document, graph)),
        "@SCRIPT@": script,
    }
    return _filled(_asset("page.html"), parts).encode("utf-8")


def embedded_json(content: object) -> str:
    """JSON that is safe between script tags: without `<` it can neither end the script nor start a comment."""
    return json.dumps(content, separators=(",", ":"), ensure_ascii=True, allow_nan=False).replace("<", "\\u003c")


def _filled(template: str, parts: dict[str, str]) -> str:
    """Replace each placeholder once, from left to right; inserted text is not searched for placeholders."""
    page: list[str] = []
    for mark, content in parts.items():
        before, template = template.split(mark, 1)
        page += [before, content]
    return "".join([*page, template])


def _asset(name: str) -> str:
    return (files(__package__) / name).read_text("utf-8")


def _printable(text: str) -> str:
    """A lone surrogate cannot be written as UTF-8."""
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text)
