"""JSON text that must not be taken as it is: one line each, with the place."""

from __future__ import annotations

import pytest

from checkmate.core.errors import InputError
from checkmate.io.formats.json_text import json_text
from checkmate.io.formats.strict_json import parse_json

HOSTILE: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "f.json: the file is empty"),
    "blank": (b" \n\t", "f.json: the file is empty"),
    "NaN": (b'{"a": [0, NaN]}', "f.json: a[1]: NaN is not a number in JSON"),
    "Infinity": (b'{"a": {"b": Infinity}}', "f.json: a.b: Infinity is not a number in JSON"),
    "-Infinity": (b"[-Infinity]", "f.json: [0]: -Infinity is not a number in JSON"),
    "overflow": (b'{"a": 1e999}', "f.json: a: the number 1e999 is too large"),
    "huge integer": (b'{"a": ' + b"9" * 5000 + b"}", "f.json: a: an integer of 5000 digits is too large"),
    "huge negative": (b'{"a": -' + b"9" * 5000 + b"}", "f.json: a: an integer of 5000 digits is too large"),
    "duplicate key": (b'{"a": [{"b": 1, "c": 2, "b": 3}]}', "f.json: a[0]: the key 'b' occurs twice"),
    "duplicate at the top": (b'{"a": 1, "a": 1}', "f.json: the key 'a' occurs twice"),
    "deep lists": (b"[" * 200_000, "f.json: lists and objects are nested too deeply"),
    "deep objects": (b'{"a":' * 200_000, "f.json: lists and objects are nested too deeply"),
    "not UTF-8": (b'{"a":\n "\xff"}', "f.json: line 2: byte 8 is not UTF-8 text"),
    "UTF-16": ('{"a": 1}'.encode("utf-16"), "f.json: the text is UTF-16; save it as UTF-8"),
    "truncated": (b'{"a": [1,\n 2', "f.json: line 2 column 3: the JSON text ends too early; the file seems to be truncated"),
    "truncated key": (b'{"a": 1,\n "b', "f.json: line 2 column 2: not valid JSON: unterminated string starting at"),
    "trailing comma": (b'{"a": 1,}', "f.json: line 1 column "),
    "two documents": (b"{}\n{}", "f.json: line 2 column 1: not valid JSON: extra data"),
    "comment": (b"{// no\n}", "f.json: line 1 column 2: not valid JSON: expecting property name enclosed in double quotes"),
    "single quotes": (b"{'a': 1}", "f.json: line 1 column 2: not valid JSON: expecting property name enclosed in double quotes"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_text_gets_one_clear_line(case: str) -> None:
    data, message = HOSTILE[case]
    with pytest.raises(InputError) as caught:
        parse_json(data, "f.json")
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_the_mark_windows_editors_put_first_is_skipped() -> None:
    assert parse_json(b"\xef\xbb\xbf[1]", "f.json") == [1]


def test_numbers_keep_their_kind() -> None:
    document = parse_json(b"[1, 1.0, 1e3, -5, 12345678901234567890]", "f.json")
    assert document == [1, 1.0, 1000.0, -5, 12345678901234567890]
    assert [type(number) for number in document] == [int, float, float, int, int]  # type: ignore[attr-defined]


def test_text_has_one_item_a_line_and_wraps_plain_lists() -> None:
    document = {"steps": [["compute", "a"], ["free", "ä"]], "amounts": list(range(100)), "none": {}, "short": [1, 2], "sub": {"x": None}}
    text = json_text(document)
    assert parse_json(text.encode(), "f.json") == document
    assert '\n    ["compute", "a"],\n    ["free", "ä"]\n  ],\n' in text
    assert '"none": {},\n  "short": [1, 2],\n  "sub": {\n    "x": null\n  }\n}\n' in text
    assert max(map(len, text.splitlines())) <= 130
    assert len(text.splitlines()) < 20


def test_what_json_cannot_say_is_not_written() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        json_text({"a": float("inf")})
