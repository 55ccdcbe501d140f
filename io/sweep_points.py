"""Finished points of a sweep, kept in a file beside its output so that none is ever solved twice.

Each point is found by a key made of everything its solution depends on, so one file serves any number of sweeps. Figures that follow from a
schedule are not kept: they are made anew from it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TypeVar

from ..core.curve import Finding
from ..core.errors import InputError
from ..core.result import Status, Stop
from .atomic import atomic_write
from .content import Content
from .json_text import json_text
from .strict_json import Fields, check_header, describe, quote

FORMAT = "checkmate-sweep-points"
VERSION = 1

Choice = TypeVar("Choice", bound=Enum)


@dataclass(frozen=True, slots=True)
class Stored:
    """A finding, without the figures that follow from its sequence, and how long it was allowed to take."""

    strategy: str
    finding: Finding
    time_limit: float

    def serves(self, time_limit: float) -> bool:
        """Would a run with this limit have nothing more to try?"""
        return self.finding.stop is Stop.FINISHED or self.time_limit >= time_limit


def point_key(problem: str, strategy: str, budget: int, options: Mapping[str, str | int | float | None]) -> str:
    """`problem` is its digest; `options` are all that can change what the strategy does, the version of checkmate included."""
    content = [problem, strategy, budget, sorted(options.items())]
    return hashlib.sha256(json.dumps(content, separators=(",", ":")).encode("ascii")).hexdigest()


class PointStore:
    """The file, read once; written whole after every point."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._points: dict[str, Stored] = {}
        if path.is_file():
            self._points = _read(path)

    def find(self, key: str) -> Stored | None:
        return self._points.get(key)

    def keep(self, key: str, point: Stored) -> None:
        self._points[key] = point
        document = {"format": FORMAT, "version": VERSION, "points": {name: _rendered(stored) for name, stored in self._points.items()}}
        atomic_write(self._path, json_text(document).encode("utf-8", "backslashreplace"))


def _rendered(point: Stored) -> dict[str, object]:
    found = point.finding
    return {
        "strategy": point.strategy,
        "budget_bytes": found.budget,
        "time_limit": point.time_limit,
        "status": found.status.value,
        "stop": found.stop.value,
        "bound": found.bound,
        "bound_scope": found.bound_scope,
        "seconds": found.seconds,
        "found_by": found.found_by,
        "reason": found.reason,
        "sequence": None if found.sequence is None else list(found.sequence),
    }


def _read(path: Path) -> dict[str, Stored]:
    content = Content.from_path(path)
    try:
        top = Fields(content.document, content.where)
        check_header(top, FORMAT, VERSION)
        points = top.child("points")
        return {key: _parsed(points.child(key)) for key in points.content}
    except InputError as error:
        raise InputError(f"{error}; this file keeps finished points of a sweep: move it away, or choose another output with -o") from None


def _parsed(entry: Fields) -> Stored:
    sequence = None if entry.get("sequence") is None else tuple(_operation(entry, item) for item in entry.items("sequence"))
    finding = Finding(
        budget=entry.size("budget_bytes"),
        status=_choice(entry, "status", Status),
        stop=_choice(entry, "stop", Stop),
        sequence=sequence,
        bound=entry.number("bound"),
        bound_scope=entry.text("bound_scope"),
        seconds=entry.number("seconds"),
        found_by=entry.text("found_by", empty=True),
        reason=entry.text("reason", empty=True),
    )
    return Stored(entry.text("strategy"), finding, entry.number("time_limit"))


def _operation(entry: Fields, item: object) -> int:
    if not isinstance(item, int) or isinstance(item, bool) or item < 0:
        entry.fail("sequence", f"expected numbers of operations, found {describe(item)}")
    return item


def _choice(entry: Fields, key: str, kind: type[Choice]) -> Choice:
    text = entry.text(key)
    if text not in [member.value for member in kind]:
        entry.fail(key, f"{quote(text)} is none of {', '.join(member.value for member in kind)}")
    return kind(text)
