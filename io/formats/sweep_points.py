"""Finished points of a sweep, stored in a file next to its output so that they are not solved again.

The key of a point is a digest of everything that its result depends on, so one file can be used for any number of sweeps. Figures that
follow from a schedule are not stored but computed again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TypeVar

from ...core.errors import InputError
from ...core.result import Result, Scope, Status, Stop
from .atomic import atomic_write
from .content import Content
from .json_text import json_text
from .strict_json import Fields, check_header, describe, quote

FORMAT = "checkmate-sweep-points"
VERSION = 1

Choice = TypeVar("Choice", bound=Enum)


@dataclass(frozen=True, slots=True)
class Stored:
    """A result at a budget, and its time limit. A result that was read from a file has no certificate."""

    strategy: str
    budget: int
    result: Result
    time_limit: float

    def serves(self, time_limit: float) -> bool:
        """True if a run with this time limit could not improve the result."""
        return self.result.stop is Stop.FINISHED or self.time_limit >= time_limit


def point_key(problem: str, strategy: str, budget: int, options: Mapping[str, str | int | float | None]) -> str:
    """`problem` is the digest of the problem; `options` are all options that affect the strategy, including the version of checkmate."""
    content = [problem, strategy, budget, sorted(options.items())]
    return hashlib.sha256(json.dumps(content, separators=(",", ":")).encode("ascii")).hexdigest()


class PointStore:
    """The file; it is read once, and written atomically after every point."""

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
    found = point.result
    return {
        "strategy": point.strategy,
        "budget_bytes": point.budget,
        "time_limit": point.time_limit,
        "status": found.status.value,
        "stop": found.stop.value,
        "bound": found.bound or 0.0,
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
        raise InputError(f"{error}; this file stores finished points of a sweep: move it away, or choose another output with -o") from None


def _parsed(entry: Fields) -> Stored:
    sequence = None if entry.get("sequence") is None else tuple(_operation(entry, item) for item in entry.items("sequence"))
    result = Result(
        status=_choice(entry, "status", Status),
        stop=_choice(entry, "stop", Stop),
        sequence=sequence,
        bound=entry.number("bound"),
        bound_scope=_choice(entry, "bound_scope", Scope),
        seconds=entry.number("seconds"),
        provenance={"found_by": entry.text("found_by", empty=True)},
        reason=entry.text("reason", empty=True),
        strategy=entry.text("strategy"),
    )
    return Stored(entry.text("strategy"), entry.size("budget_bytes"), result, entry.number("time_limit"))


def _operation(entry: Fields, item: object) -> int:
    if not isinstance(item, int) or isinstance(item, bool) or item < 0:
        entry.fail("sequence", f"expected numbers of operations, found {describe(item)}")
    return item


def _choice(entry: Fields, key: str, kind: type[Choice]) -> Choice:
    text = entry.text(key)
    if text not in [member.value for member in kind]:
        entry.fail(key, f"expected one of {', '.join(member.value for member in kind)}, found {quote(text)}")
    return kind(text)
