"""The cache of results: a folder of JSON files, each with a checksum.

The name of a file is a digest of everything that the result depends on, so an entry is never out of date: another graph, budget or version
has another name. An entry that does not match its checksum or its name is ignored, and so is a symbolic link: none is followed or written
through.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ...core.errors import InputError
from ...core.model.digest import problem_digest
from .atomic import atomic_write
from .content import Content
from .strict_json import Fields, check_header
from .task_json import Task

FORMAT = "checkmate-cache"
VERSION = 1
_NAME = re.compile(r"[0-9a-f]{64}\.json")
_FOLDER = re.compile(r"[0-9a-f]{2}")
_TEMPORARY = re.compile(r"\.checkmate-[0-9a-f]+\.tmp")
_ABANDONED = 3600.0
"""Seconds after which a temporary file counts as abandoned."""


class CorruptEntryError(InputError):
    """A damaged file of the cache."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One result, and a description of its task."""

    key: str
    about: Mapping[str, object]
    answer: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Stored:
    """A file of the cache, read or not."""

    key: str
    path: Path
    bytes: int
    modified: float
    """Seconds since the epoch."""


def default_cache_folder() -> Path:
    """The cache folder of the platform."""
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "checkmate"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "checkmate" / "Cache"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "checkmate"


def digest_key(content: Mapping[str, object]) -> str:
    """64 hexadecimal digits: the name of an entry whose result depends on this content and on nothing else."""
    return hashlib.sha256(_canonical({"cache": VERSION, **content})).hexdigest()


def cache_key(task: Task, version: str) -> str:
    """64 hexadecimal digits: a digest of the graph, its costs and pins, the budget, all options and the version of checkmate."""
    problem = task.problem
    return digest_key({"checkmate": version, "problem": problem_digest(problem), "budget": problem.budget, "options": task.options})


class Cache:
    """The folder. Many processes may use it at once: writes are atomic, and equal names have equal answers."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path_of(self, key: str) -> Path:
        return self.folder / key[:2] / f"{key}.json"

    def get(self, key: str) -> Entry | None:
        """The entry; None if there is none. A damaged entry raises an error, and the caller can solve again."""
        path = self.path_of(key)
        return read_entry(path) if path.is_file() and not _is_linked(path) else None

    def put(self, entry: Entry) -> None:
        path = self.path_of(entry.key)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"cannot create the folder {str(path.parent)!r}: {error.strerror}") from None
        if path.parent.is_symlink():
            raise InputError(f"{path.parent} is a link: the cache follows none; delete it")
        sealed = {"key": entry.key, "about": dict(entry.about), "answer": dict(entry.answer)}
        document = {"format": FORMAT, "version": VERSION, "checksum": _checksum(sealed), **sealed}
        atomic_write(path, json.dumps(document, indent=1, allow_nan=False).encode(), follow_links=False)

    def entries(self) -> list[Stored]:
        """All files with the name of an entry, newest first."""
        found = [_stored(path) for path in self._files(_NAME)]
        return sorted((entry for entry in found if entry is not None), key=lambda entry: (-entry.modified, entry.key))

    def remove(self, stored: Stored) -> None:
        """Delete an entry, if it still exists."""
        try:
            stored.path.unlink(missing_ok=True)
        except OSError as error:
            raise InputError(f"cannot delete {stored.path}: {(error.strerror or str(error)).lower()}") from None
        with suppress(OSError):
            stored.path.parent.rmdir()

    def sweep(self) -> None:
        """Delete temporary files of interrupted writes."""
        for path in self._files(_TEMPORARY):
            with suppress(OSError):
                if time.time() - path.stat().st_mtime > _ABANDONED:
                    path.unlink()

    def _files(self, name: re.Pattern[str]) -> Iterator[Path]:
        """Only our own files: other files in this folder are not touched."""
        for folder in _listed(self.folder):
            if _FOLDER.fullmatch(folder.name) and not folder.is_symlink():
                yield from (path for path in _listed(folder) if name.fullmatch(path.name) and not path.is_symlink())


def read_entry(path: Path) -> Entry:
    """The entry in a file, if the file is not damaged."""
    try:
        top = Fields(Content.from_path(path).document, str(path))
        check_header(top, FORMAT, VERSION)
        top.only(("format", "version", "checksum", "key", "about", "answer"))
        entry = Entry(top.text("key"), top.child("about").content, top.child("answer").content)
    except InputError as error:
        raise CorruptEntryError(str(error)) from None
    if top.text("checksum") != _checksum({"key": entry.key, "about": entry.about, "answer": entry.answer}):
        raise CorruptEntryError(f"{path}: the checksum does not match the content")
    if path.name != f"{entry.key}.json":
        raise CorruptEntryError(f"{path}: this entry belongs to another key")
    return entry


def _checksum(content: Mapping[str, object]) -> str:
    return f"sha256:{hashlib.sha256(_canonical(content)).hexdigest()}"


def _canonical(content: Mapping[str, object]) -> bytes:
    """Equal bytes for equal content, independent of the order of keys and of spacing."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode("ascii")


def _is_linked(path: Path) -> bool:
    """A link in the cache is not ours: somebody else put it there. The folder of the cache itself may be one."""
    return path.is_symlink() or path.parent.is_symlink()


def _listed(folder: Path) -> list[Path]:
    try:
        return [Path(entry.path) for entry in os.scandir(folder)]
    except FileNotFoundError:
        return []
    except NotADirectoryError:
        return []
    except OSError as error:
        raise InputError(f"cannot read the folder {str(folder)!r}: {(error.strerror or str(error)).lower()}") from None


def _stored(path: Path) -> Stored | None:
    """None for what is no file: opening a pipe would wait forever."""
    try:
        status = path.lstat()
    except OSError:
        return None
    return Stored(path.stem, path, status.st_size, status.st_mtime) if stat.S_ISREG(status.st_mode) else None
