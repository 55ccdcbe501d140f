"""What a user points at: a file, a pipe or standard input. Read once, and only as far as needed; every failure is one line."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import BinaryIO

from ..core.errors import InputError
from .strict_json import parse_json

LARGEST_JSON = 10**9
"""Bytes; parsed, JSON takes about ten times its size."""
LARGEST_STREAM = 2**31
"""Bytes; protobuf messages are no larger, and an endless stream must not fill the memory."""
_HEAD = 1024
_CHUNK = 2**20
_UTF8_MARK = b"\xef\xbb\xbf"
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True)
class Content:
    """Bytes with a name. `path` is set for regular files, whose bytes are read when first asked for: ONNX models may hold gigabytes."""

    where: str
    head: bytes
    path: Path | None = None
    received: bytes | None = field(default=None, repr=False)

    @classmethod
    def from_path(cls, path: Path) -> Content:
        """Look at the first bytes of a file; read a pipe to its end."""
        where = str(path)
        try:
            if path.is_dir():
                raise InputError(f"{where}: this is a directory; give a file")
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
        return cls(where, _not_empty(where, data[:_HEAD]), None, data)

    @property
    def is_json(self) -> bool:
        """Does it start like a JSON object or list? UTF-16 counts too, so that the complaint is about the encoding."""
        start = self.head.removeprefix(_UTF8_MARK).lstrip(b" \t\r\n")[:1]
        return start in (b"{", b"[", b"") or self.head.startswith(_UTF16_MARKS)

    @cached_property
    def document(self) -> object:
        """The content as JSON."""
        size = len(self.received) if self.received is not None else self._file_size()
        if size > LARGEST_JSON:
            raise InputError(f"{self.where}: {size} bytes of JSON are more than checkmate reads ({LARGEST_JSON})")
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
