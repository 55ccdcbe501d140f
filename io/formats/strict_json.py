"""A strict JSON parser: every error is one line that names the place, `graph.json: operations[3].bytes: ...`.

Python's parser accepts NaN, keeps the last of two equal keys, raises ValueError for integers of thousands of digits and RecursionError for
deep nesting. Here all of these are an `InputError`. A forbidden literal is first parsed into a marker; only if there is a marker, the
document is searched for its place, so that valid documents are parsed fast.
"""

from __future__ import annotations

import difflib
import json
import math
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import NoReturn

from ...core.errors import InputError
from ...core.model.graph import LARGEST_BYTES

LARGEST_AMOUNT = 1e30
"""Sums of costs up to this stay finite."""
LONGEST_INTEGER = 40
"""Digits; longer integers are mistakes, and Python refuses more than 4300 digits."""
LONGEST_MESSAGE = 400
"""Characters of a name in a message; names can be arbitrarily long."""


@dataclass(frozen=True, slots=True)
class _Unwelcome:
    """A placeholder in a parsed document for something that is not allowed in JSON."""

    problem: str


def parse_json(data: bytes, where: str) -> object:
    """The document in `data`; `where` names it in messages."""
    text = _decode(data, where)
    if not text.strip():
        raise InputError(f"{where}: the file is empty")
    unwelcome: list[_Unwelcome] = []

    def mark(problem: str) -> _Unwelcome:
        unwelcome.append(_Unwelcome(problem))
        return unwelcome[-1]

    def integer(digits: str) -> object:
        if len(digits) > LONGEST_INTEGER:
            return mark(f"an integer of {len(digits.lstrip('-'))} digits is too large")
        return int(digits)

    def real(literal: str) -> object:
        number = float(literal)
        return number if math.isfinite(number) else mark(f"the number {shorten(literal, 40)} is too large")

    def unique(pairs: list[tuple[str, object]]) -> object:
        content = dict(pairs)
        if len(content) == len(pairs):
            return content
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                return mark(f"the key {quote(key)} occurs twice")
            seen.add(key)
        raise AssertionError("fewer keys than pairs, but none twice")

    def constant(literal: str) -> object:
        return mark(f"{literal} is not a number in JSON")

    try:
        document: object = json.loads(text, parse_int=integer, parse_float=real, parse_constant=constant, object_pairs_hook=unique)
    except json.JSONDecodeError as error:
        raise InputError(f"{where}: {_syntax_problem(error)}") from None
    except RecursionError:
        raise InputError(f"{where}: lists and objects are nested too deeply") from None
    if unwelcome:
        _report_unwelcome(document, where)
    return document


def _decode(data: bytes, where: str) -> str:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InputError(f"{where}: the text is UTF-16; save it as UTF-8")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(f"{where}: line {line}: byte {error.start} is not UTF-8 text") from None


def _syntax_problem(error: json.JSONDecodeError) -> str:
    place = f"line {error.lineno} column {error.colno}"
    if error.pos >= len(error.doc.rstrip()):
        return f"{place}: the JSON text ends too early; the file seems to be truncated"
    return f"{place}: not valid JSON: {error.msg[:1].lower()}{error.msg[1:]}"


def _report_unwelcome(document: object, where: str) -> NoReturn:
    pending: list[tuple[str, object]] = [("", document)]
    while pending:
        path, item = pending.pop()
        if isinstance(item, _Unwelcome):
            raise InputError(_message(where, path, item.problem))
        if isinstance(item, dict):
            pending.extend((_below(path, key), item[key]) for key in reversed(item))
        elif isinstance(item, list):
            pending.extend((f"{path}[{index}]", item[index]) for index in reversed(range(len(item))))
    raise AssertionError("a marker was made but is not in the document")


class Fields:
    """One object of a document; every error message names the place."""

    __slots__ = ("content", "path", "where")

    def __init__(self, document: object, where: str, path: str = "") -> None:
        if not isinstance(document, dict):
            raise InputError(_message(where, path, f"expected an object {{...}}, found {describe(document)}"))
        self.content: dict[str, object] = document
        self.where = where
        self.path = path

    def __contains__(self, key: str) -> bool:
        return key in self.content

    def fail(self, key: str, problem: str) -> NoReturn:
        """The error for the value at a key, or for the object itself if the key is empty."""
        raise InputError(_message(self.where, _below(self.path, key) if key else self.path, problem))

    def only(self, allowed: Collection[str]) -> None:
        """Refuse other keys than these."""
        for key in self.content:
            if key not in allowed:
                self.fail("", f"unknown key {quote(key)}{suggestion(key, allowed)}")

    def get(self, key: str) -> object:
        """The value of a required key."""
        if key not in self.content:
            self.fail("", f"the key {key!r} is missing")
        return self.content[key]

    def text(self, key: str, default: str | None = None, *, empty: bool = False) -> str:
        if default is not None and key not in self.content:
            return default
        return self._text(key, self.get(key), empty=empty)

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of names; none if the key is absent."""
        return tuple(self._text(f"{key}[{index}]", item) for index, item in enumerate(self.items(key, default=[])))

    def flag(self, key: str, default: bool = False) -> bool:
        found = self.content.get(key, default)
        if not isinstance(found, bool):
            self.fail(key, f"expected true or false, found {describe(found)}")
        return found

    def number(self, key: str, *, least: float | None = 0) -> float:
        """A finite number, not below `least`."""
        return self._number(key, self.get(key), least)

    def number_in(self, key: str, index: int) -> float:
        """An entry of a list of numbers."""
        return self._number(f"{key}[{index}]", self.items(key)[index], 0)

    def number_or_none(self, key: str, *, least: float | None = 0) -> float | None:
        """A number, or null."""
        return None if self.get(key) is None else self.number(key, least=least)

    def whole(self, key: str, default: int | None = None, *, least: int | None = 0) -> int:
        """An integer; a float is accepted if it is whole (`1e9`)."""
        if default is not None and key not in self.content:
            return default
        found = self._number(key, self.get(key), least)
        exact = self.content[key]
        if isinstance(exact, int):
            return exact
        if not found.is_integer():
            self.fail(key, f"{found!r} is not a whole number")
        return int(found)

    def size(self, key: str, default: int | None = None) -> int:
        """Bytes."""
        size = self.whole(key, default)
        if size > LARGEST_BYTES:
            self.fail(key, f"{size:.4g} bytes is larger than any memory")
        return size

    def items(self, key: str, default: list[object] | None = None) -> list[object]:
        found = self.get(key) if default is None else self.content.get(key, default)
        if not isinstance(found, list):
            self.fail(key, f"expected a list [...], found {describe(found)}")
        return found

    def objects(self, key: str) -> Iterator[Fields]:
        """The objects of a list."""
        base = _below(self.path, key)
        return (Fields(item, self.where, f"{base}[{index}]") for index, item in enumerate(self.items(key)))

    def child(self, key: str) -> Fields:
        return Fields(self.get(key), self.where, _below(self.path, key))

    def sizes(self) -> dict[str, int]:
        """The whole object as a table of bytes by name."""
        return {self._key(key): self.size(key) for key in self.content}

    def amounts(self) -> dict[str, float]:
        """The whole object as a table of costs by name."""
        table = {self._key(key): self.number(key) for key in self.content}
        for key, amount in table.items():
            if amount > LARGEST_AMOUNT:
                self.fail(key, f"{amount} is larger than {LARGEST_AMOUNT}")
        return table

    def _key(self, key: str) -> str:
        return self._text("", key)

    def _text(self, key: str, found: object, *, empty: bool = False) -> str:
        if not isinstance(found, str):
            self.fail(key, f"expected text, found {describe(found)}")
        if not found and not empty:
            self.fail(key, "a name cannot be empty")
        if not found.isascii() and any("\ud800" <= character <= "\udfff" for character in found):
            self.fail(key, f"{quote(found)} has a lone surrogate, which is not valid text")
        return found

    def _number(self, key: str, found: object, least: float | None) -> float:
        if isinstance(found, bool) or not isinstance(found, (int, float)):
            self.fail(key, f"expected a number, found {describe(found)}")
        if least is not None and found < least:
            self.fail(key, f"{found} is negative" if least == 0 else f"{found} is below {least}")
        return float(found)


def check_header(top: Fields, kind: str, version: int) -> None:
    """Check the first two keys of our own formats: the kind, and a version up to this one."""
    found = top.text("format")
    if found != kind:
        top.fail("format", f"expected {kind!r}, found {quote(found)}: this is another kind of file")
    check_version(top, version)


def check_version(top: Fields, newest: int, default: int | None = None) -> int:
    """Check the version of a file: all versions up to the newest known one are accepted."""
    number = top.whole("version", default)
    if number > newest:
        top.fail("version", f"the file has version {number}, but this checkmate reads versions up to {newest}: update checkmate")
    if number < 1:
        top.fail("version", f"versions begin with 1, the file has {number}")
    return number


def describe(found: object) -> str:
    """A description of a JSON value."""
    if found is None:
        return "null"
    if isinstance(found, bool):
        return "true" if found else "false"
    if isinstance(found, (int, float)):
        return f"the number {found}"
    if isinstance(found, str):
        return f"the text {quote(found)}"
    return "a list" if isinstance(found, list) else "an object"


def suggestion(word: str, choices: Iterable[str]) -> str:
    """A suggestion for the end of a message; empty if no known word is near."""
    near = difflib.get_close_matches(word[:200], list(choices), n=1)
    return f"; did you mean {quote(near[0])}?" if near else ""


def quote(text: str) -> str:
    """In quotes, on one line, shortened."""
    return repr(shorten(text, 80))


def shorten(text: str, limit: int = LONGEST_MESSAGE) -> str:
    """Remove the middle of a text that is too long."""
    half = (limit - 3) // 2
    return text if len(text) <= limit else f"{text[:half]}...{text[-half:]}"


def _below(path: str, key: str) -> str:
    shown = key if key.isascii() and key.isprintable() else quote(key)
    return f"{path}.{shorten(shown, 80)}" if path else shorten(shown, 80)


def _message(where: str, path: str, problem: str) -> str:
    return shorten(f"{where}: {path}: {problem}" if path else f"{where}: {problem}", LONGEST_MESSAGE + len(where))
