"""Damage done to good files, the same for the same seed: to bytes, to trees of JSON and YAML, and to the fields of ONNX models."""

from __future__ import annotations

import copy
import io
import json
import random
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from onnx import ModelProto, defs

WHOLE = (0, 1, -1, 2, 3, 7, 255, 1024, 2**16, 2**20, 2**31 - 1, 2**31, 2**32, 2**40, 2**53, 2**60, 2**62, 2**63 - 1, -(2**31), -(2**63))
REAL = (0.0, -0.0, 0.5, 1e-300, 1e30, 1e300, -1e308, float("nan"), float("inf"), float("-inf"))
WORDS = (
    "",
    "a",
    "checkmate-graph",
    "é",
    "\u0000",
    "\ud800",
    "a\nb",
    "\x1b[2J",
    "../../etc/passwd",
    "/etc/passwd",
    "x" * 5000,
    "%s%n{0}",
    "#'" * 40,
)

JSON_SNIPPETS = (
    *("NaN", "Infinity", "-Infinity", "1e400", "-1e999", "0x10", "1" * 400, "1" * 5000, "-", "+1", "01", "1.", ".5", "true", "null"),
    *(
        '"\\ud800"',
        '"\\u0000"',
        '"\\x"',
        "[" * 3000,
        "{" * 50,
        "]",
        "}",
        ",",
        ":",
        '{"a": 1, "a": 2}',
        "[" * 200 + "]" * 200,
        "\ufeff",
        "//",
        "'a'",
    ),
)
YAML_SNIPPETS = (
    *(
        "&a [*a, *a]",
        "*unknown",
        "&a {b: *a}",
        "<<: *a",
        "<<: {budget: 1}",
        "!!python/object/apply:os.system [ls]",
        "!!binary aGk=",
        "!!set {a}",
    ),
    *(
        "2024-13-45",
        "9999-99-99 99:99:99",
        "1:1:1:1:1",
        "1:" * 200 + "1",
        "0o777",
        "0b" + "1" * 600,
        "1_000",
        "1" * 5000,
        "!!int nope",
        "!!float []",
    ),
    *(
        "? [a, b]\n: c",
        "? {a: b}\n: c",
        "- " * 400 + "a",
        "[" * 400,
        "{a: " * 200,
        "---\n",
        "...\n",
        "%YAML 9.9\n",
        "\t",
        "|\n  text",
        ">-\n x",
        "'",
        '"',
    ),
    *(
        "&a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: [*c,*c,*c,*c,*c,*c,*c,*c,*c]",
        "!!null x",
    ),
    *(
        "yes",
        "~",
        "!!timestamp 99999-01-01",
        "@",
        "`",
        "\x00",
        "\ufeff",
        "null: null",
        "true: true",
        "1.0e+400",
        ".inf",
        ".nan",
        "!<tag:x> y",
    ),
)


def damaged_bytes(data: bytes, draw: random.Random) -> bytes:
    """A few bytes changed, added, lost or repeated; sometimes the end is missing."""
    damaged = bytearray(data)
    for _ in range(draw.choice((1, 1, 1, 2, 4, 16))):
        place = draw.randrange(len(damaged) + 1)
        size = draw.choice((1, 1, 1, 2, 8, 64))
        match draw.randrange(6):
            case 0 if place < len(damaged):
                damaged[place] = draw.randrange(256)
            case 1 if place < len(damaged):
                damaged[place] ^= 1 << draw.randrange(8)
            case 2:
                damaged[place:place] = bytes(draw.randrange(256) for _ in range(size))
            case 3:
                del damaged[place : place + size]
            case 4:
                damaged[place:place] = damaged[max(0, place - size) : place] * draw.choice((1, 2, 50))
            case _:
                if draw.random() < 0.2:
                    del damaged[place:]
    return bytes(damaged)


def damaged_text(text: str, snippets: tuple[str, ...], draw: random.Random) -> str:
    """Something strange in place of, or before, a word."""
    for _ in range(draw.choice((1, 1, 2, 3))):
        start = draw.randrange(len(text) + 1)
        stop = start if draw.random() < 0.4 else min(len(text), start + draw.randrange(1, 20))
        if draw.random() < 0.6:
            start = max(text.rfind(" ", 0, start), text.rfind("\n", 0, start)) + 1
            ends = [end for end in (text.find(",", start), text.find("\n", start)) if end >= 0]
            stop = max(start, min(ends)) if ends else len(text)
        text = text[:start] + draw.choice(snippets) + text[stop:]
    return text


def damaged_tree(document: object, draw: random.Random) -> object:
    """A tree of lists and mappings with a few of its places changed."""
    tree = [copy.deepcopy(document)]
    for _ in range(draw.choice((1, 1, 1, 2, 3, 6))):
        places = list(_places(tree))
        holder, key = draw.choice(places)
        other_holder, other_key = draw.choice(places)
        match draw.randrange(8):
            case 0 | 1 | 2:
                holder[key] = _strange_leaf(draw)
            case 3:
                holder[key] = copy.deepcopy(other_holder[other_key])
            case 4 if isinstance(holder, dict):
                holder[draw.choice((*WORDS, str(key) + "s", *map(str, holder)))] = holder.pop(key)
            case 5 if holder is not tree:
                del holder[key]
            case 6 if isinstance(holder[key], list):
                holder[key] = holder[key] * draw.choice((0, 2, 30))
                draw.shuffle(holder[key])
            case _:
                holder[key] = _deep(holder[key], draw)
    return tree[0]


def _places(tree: object) -> Iterator[tuple[Any, Any]]:
    pending = [tree]
    while pending:
        item = pending.pop()
        for key, below in item.items() if isinstance(item, dict) else enumerate(item) if isinstance(item, list) else ():
            yield item, key
            if isinstance(below, (dict, list)):
                pending.append(below)


def _strange_leaf(draw: random.Random) -> object:
    return draw.choice((*WHOLE, *REAL, *WORDS, None, True, False, [], {}, [[]], [None], {"": None}, 10**38, 10**300, -(10**39)))


def _deep(item: object, draw: random.Random) -> object:
    for _ in range(draw.choice((1, 2, 30, 200))):
        item = [item] if draw.random() < 0.5 else {"a": item}
    return item


def damaged_json(document: object, draw: random.Random) -> bytes:
    """JSON text of a damaged tree, or damaged JSON text; now and then both, or bytes that are no text."""
    try:
        text = json.dumps(damaged_tree(document, draw) if draw.random() < 0.75 else document, indent=draw.choice((None, 1)))
    except RecursionError:
        text = "[" * 100_000
    if draw.random() < 0.35:
        text = damaged_text(text, JSON_SNIPPETS, draw)
    data = text.encode("utf-8", "surrogatepass")
    return damaged_bytes(data, draw) if draw.random() < 0.15 else data


def damaged_yaml(text: str, document: object, draw: random.Random) -> bytes:
    """YAML of either kind: as people write it, damaged as text, or a damaged tree as JSON, which is YAML too."""
    if draw.random() < 0.4:
        with suppress(RecursionError):
            text = json.dumps(damaged_tree(document, draw))
    if draw.random() < 0.7:
        text = damaged_text(text, YAML_SNIPPETS, draw)
    data = text.encode("utf-8", "surrogatepass")
    return damaged_bytes(data, draw) if draw.random() < 0.2 else data


NPY_HEADERS = (
    *("{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000,)}", "{'descr': '|O', 'fortran_order': False, 'shape': (2, 6)}"),
    *(
        "{'descr': '<f4', 'fortran_order': 1, 'shape': (2, -6)}",
        "{'descr': '<f4'}",
        "__import__('os').abort()",
        "[" * 300,
        "(" * 90,
        "{'a': 1",
    ),
    *("{'descr': '<U999999999', 'fortran_order': True, 'shape': (2, 6)}", "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': ()}"),
)


def damaged_npz(good: bytes, draw: random.Random) -> bytes:
    """Damaged bytes, or an archive whose entries lie about themselves."""
    if draw.random() < 0.5:
        return damaged_bytes(good, draw)
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", draw.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as archive:
        for name in draw.sample(("x.npy", "x", "../x.npy", "y.npy", "x/x.npy"), draw.choice((1, 1, 2))):
            header = draw.choice(NPY_HEADERS) if draw.random() < 0.7 else damaged_text(NPY_HEADERS[0], NPY_HEADERS, draw)
            magic = b"\x93NUMPY" + bytes(draw.choice(((1, 0), (1, 0), (2, 0), (9, 9)))) + len(header).to_bytes(2, "little")
            archive.writestr(name, magic + header.encode() + bytes(draw.choice((0, 48, 10**7))))
    return made.getvalue()


LARGEST_MODEL = 200_000
"""Bytes; graphs put into graphs grow fast."""
OPERATORS = tuple(sorted({schema.name for schema in defs.get_all_schemas_with_history() if schema.domain == ""}))


def damaged_program(good: bytes, draw: random.Random) -> bytes:
    """A PyTorch program: an archive whose JSON is damaged in most cases, its bytes in some."""
    if draw.random() < 0.15:
        return damaged_bytes(good, draw)
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(good)) as archive, zipfile.ZipFile(made, "w") as out:
        names = archive.namelist()
        json_names = [name for name in names if name.endswith(".json")]
        model = next(name for name in json_names if name.endswith("models/model.json"))
        victim = model if draw.random() < 0.85 else draw.choice(json_names)
        for name in names:
            data = archive.read(name)
            if name == victim:
                data = damaged_json(json.loads(data), draw)
            elif draw.random() < 0.01:
                continue
            out.writestr(name, data)
    return made.getvalue()


def damaged_model(model: ModelProto, draw: random.Random) -> bytes:
    """A model with some of its fields changed; now and then bytes too."""
    if draw.random() < 0.25:
        return damaged_bytes(model.SerializeToString(), draw)
    damaged = ModelProto()
    damaged.CopyFrom(model)
    for _ in range(draw.choice((1, 1, 1, 2, 3, 6))):
        if damaged.ByteSize() > LARGEST_MODEL:
            break
        messages = list(_messages(damaged))
        _damage_field(draw.choice(messages), messages, draw)
    data: bytes = damaged.SerializeToString()
    return damaged_bytes(data, draw) if draw.random() < 0.05 else data


def _messages(top: Message) -> Iterator[Message]:
    pending = [top]
    while pending:
        message = pending.pop()
        yield message
        for field, content in message.ListFields():
            if field.type == FieldDescriptor.TYPE_MESSAGE:
                pending.extend([content] if isinstance(content, Message) else content)


def _damage_field(message: Message, messages: list[Message], draw: random.Random) -> None:
    field = draw.choice(message.DESCRIPTOR.fields)
    present = [found for found, _ in message.ListFields()]
    if present and draw.random() < 0.8:
        field = draw.choice(present)
    content = getattr(message, field.name)
    if draw.random() < 0.1:
        message.ClearField(field.name)
    elif field.type == FieldDescriptor.TYPE_MESSAGE:
        _damage_message(message, field, content, messages, draw)
    elif hasattr(content, "append"):
        _damage_list(content, _scalar(field, messages, draw), draw)
    else:
        setattr(message, field.name, _scalar(field, messages, draw)())


def _damage_message(message: Message, field: FieldDescriptor, content: Any, messages: list[Message], draw: random.Random) -> None:
    alike = [other for other in messages if other.DESCRIPTOR is field.message_type]
    if not hasattr(content, "add"):
        if alike and draw.random() < 0.7:
            content.CopyFrom(_copied(draw.choice(alike)))
        else:
            message.ClearField(field.name)
        return
    match draw.randrange(4):
        case 0 if content:
            del content[draw.randrange(len(content))]
        case 1 if alike:
            content.extend([_copied(draw.choice(alike)) for _ in range(draw.choice((1, 1, 2, 20)))])
        case 2 if len(content) > 1:
            kept = [_copied(item) for item in content]
            draw.shuffle(kept)
            del content[:]
            content.extend(kept)
        case _:
            content.add()


def _copied(message: Message) -> Message:
    """A copy: a message cannot be put into itself."""
    double = type(message)()
    double.CopyFrom(message)
    return double


def _damage_list(content: Any, scalar: Callable[[], Any], draw: random.Random) -> None:
    match draw.randrange(4):
        case 0 if content:
            content[draw.randrange(len(content))] = scalar()
        case 1 if content:
            del content[draw.randrange(len(content))]
        case 2:
            content.extend([scalar()] * draw.choice((1, 1, 3, 300)))
        case _:
            content.append(scalar())


def _scalar(field: FieldDescriptor, messages: list[Message], draw: random.Random) -> Callable[[], Any]:
    """A maker of values for a field: strange ones, and ones that stand elsewhere in the model."""
    kinds = FieldDescriptor
    if field.type == kinds.TYPE_STRING:
        known = [
            getattr(message, found.name)
            for message in draw.sample(messages, min(20, len(messages)))
            for found, _ in message.ListFields()
            if found.type == kinds.TYPE_STRING
        ]
        names = [name for item in known for name in ([item] if isinstance(item, str) else list(item))]
        printable = [word for word in WORDS if word.isprintable()]
        pool = OPERATORS if field.name == "op_type" and draw.random() < 0.7 else names if names and draw.random() < 0.6 else printable
        return lambda: draw.choice(pool)
    if field.type == kinds.TYPE_BYTES:
        return lambda: draw.randbytes(draw.choice((0, 1, 8, 16, 4096)))
    if field.type in (kinds.TYPE_FLOAT, kinds.TYPE_DOUBLE):
        return lambda: draw.choice(REAL) if field.type == kinds.TYPE_DOUBLE or draw.random() < 0.5 else draw.uniform(-9, 9)
    if field.type == kinds.TYPE_ENUM:
        values = [value.number for value in field.enum_type.values]
        return lambda: draw.choice(values)
    low, high = (
        (-(2**31), 2**31 - 1)
        if field.type == kinds.TYPE_INT32
        else (0, 2**64 - 1)
        if field.type == kinds.TYPE_UINT64
        else (-(2**63), 2**63 - 1)
    )
    return lambda: max(low, min(high, draw.choice((*WHOLE, *range(10), *range(-4, 0)))))
