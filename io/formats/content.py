"""The content of a file, a pipe or standard input. It is read once, and only as far as needed; every error is one line."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import BinaryIO

from ...core.errors import InputError
from .strict_json import parse_json

LARGEST_JSON = 10**9
"""Bytes; parsed JSON takes about ten times its size in memory."""
LARGEST_STREAM = 2**31
"""Bytes, the limit of protobuf messages; an endless stream must not fill the memory."""
_HEAD = 1024
_CHUNK = 2**20
_UTF8_MARK = b"\xef\xbb\xbf"
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True)
class Content:
    """Bytes with a name. `path` is set for regular files, which are read when first used, because ONNX models may be gigabytes large."""

    where: str
    head: bytes
    path: Path | None = None
    received: bytes | None = field(default=None, repr=False)

    @classmethod
    def from_path(cls, path: Path) -> Content:
        """Read the first bytes of a file, or a pipe to its end."""
        where = str(path)
        try:
            if path.is_dir():
                raise InputError(f"{where}: this is a folder; give a file")
            with path.open("rb") as file:
                if not path.is_file():
                    return cls.from_stream(file, where)
                head = file.read(_HEAD)
        except OSError as error:
            raise _unreadable(where, error) from None
        return cls(where, _not_empty(where, head), path)

    @classmethod
    def from_stream(cls, stream: BinaryIO, where: str = "stdin") -> Content:
        """Read a stream to its end."""
        try:
            chunks: list[bytes] = []
            total = 0
            while chunk := stream.read(_CHUNK):
                chunks.append(chunk)
                total += len(chunk)
                if total > LARGEST_STREAM:
                    raise InputError(f"{where}: more than {LARGEST_STREAM} bytes; give a file instead")
        except OSError as error:
            raise _unreadable(where, error) from None
        data = b"".join(chunks)
        return cls.from_bytes(data, where)

    @classmethod
    def from_bytes(cls, data: bytes, where: str) -> Content:
        return cls(where, _not_empty(where, data[:_HEAD]), None, data)

    @classmethod
    def from_document(cls, document: object, where: str) -> Content:
        """A JSON document in memory, checked as if it came from a file."""
        try:
            return cls.from_bytes(json.dumps(document).encode(), where)
        except (TypeError, ValueError) as error:
            raise InputError(f"{where}: cannot be represented as JSON: {error}") from None

    @property
    def is_json(self) -> bool:
        """True if it starts like a JSON object or list. UTF-16 counts too, so that the error message is about the encoding."""
        start = self.head.removeprefix(_UTF8_MARK).lstrip(b" \t\r\n")[:1]
        return start in (b"{", b"[", b"") or self.head.startswith(_UTF16_MARKS)

    @cached_property
    def document(self) -> object:
        """The content as JSON."""
        size = len(self.received) if self.received is not None else self._file_size()
        if size > LARGEST_JSON:
            raise InputError(f"{self.where}: {size} bytes of JSON are more than the limit of {LARGEST_JSON}")
        return parse_json(self._bytes(), self.where)

    def _file_size(self) -> int:
        assert self.path is not None
        try:
            return self.path.stat().st_size
        except OSError as error:
            raise _unreadable(self.where, error) from None

    def _bytes(self) -> bytes:
        if self.received is not None:
            return self.received
        assert self.path is not None
        try:
            return self.path.read_bytes()
        except OSError as error:
            raise _unreadable(self.where, error) from None


def _not_empty(where: str, head: bytes) -> bytes:
    if len(head) < _HEAD and not head.strip():
        raise InputError(f"{where}: the file is empty")
    return head


def _unreadable(where: str, error: OSError) -> InputError:
    return InputError(f"{where}: cannot be read: {(error.strerror or str(error)).lower()}")
