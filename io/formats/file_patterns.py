"""Files that match a pattern, with a limit on how much is searched: a pattern such as `../../**/*.onnx` may reach the whole disk."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from glob import has_magic
from pathlib import Path

from ...core.errors import InputError

MOST_ENTRIES = 500_000
"""Files and folders that are looked at; about a second on a local disk."""
LONGEST_SECONDS = 8.0
"""On slow disks."""


def matching_files(pattern: str, folder: Path) -> list[str]:
    """The files that match a pattern, sorted; `**` matches folders too. The pattern is relative to the folder."""
    if not has_magic(pattern):
        path = str(folder / pattern)
        return [path] if os.path.isfile(path) else []
    parts = [part for part in pattern.split("/") if part not in ("", ".")]
    if parts[-1] == "**":
        parts.append("*")
    start = "/" if pattern.startswith("/") else str(folder)
    search = _Search(pattern)
    with suppress(ValueError):  # of a name with a NUL
        return sorted({str(Path(path)) for path in search.expanded(start, _without_repeats(parts)) if os.path.isfile(path)})
    return []


def _without_repeats(parts: Sequence[str]) -> list[str]:
    """`**/**` is `**`."""
    return [part for index, part in enumerate(parts) if part != "**" or index == 0 or parts[index - 1] != "**"]


@dataclass(slots=True)
class _Search:
    """One search, and what it has taken."""

    pattern: str
    seen: int = 0
    begun: float = field(default_factory=time.monotonic)

    def expanded(self, folder: str, parts: Sequence[str]) -> Iterator[str]:
        """Paths below a folder, for the parts of a pattern."""
        first, rest = parts[0], parts[1:]
        if first == "**":
            yield from self.expanded(folder, rest)
            for entry in self._listed(folder):
                if not entry.name.startswith(".") and entry.is_dir(follow_symlinks=False):
                    yield from self.expanded(entry.path, parts)
        elif not has_magic(first):
            path = os.path.join(folder, first)
            if rest and os.path.isdir(path):
                yield from self.expanded(path, rest)
            elif not rest:
                yield path
        else:
            for entry in self._listed(folder):
                if fnmatchcase(entry.name, first) and (first.startswith(".") or not entry.name.startswith(".")):
                    if not rest:
                        yield entry.path
                    elif entry.is_dir():
                        yield from self.expanded(entry.path, rest)

    def _listed(self, folder: str) -> list[os.DirEntry[str]]:
        """What is in a folder; nothing if it cannot be read."""
        try:
            with os.scandir(folder) as entries:
                found = list(entries)
        except OSError:
            return []
        self.seen += 1 + len(found)
        if self.seen > MOST_ENTRIES or time.monotonic() - self.begun > LONGEST_SECONDS:
            raise InputError(f"the pattern {self.pattern!r} searches too many folders: begin it with the folder of the graphs")
        return found
