"""A strict YAML parser: no objects, no duplicate keys, limited size, and every error is one line.

Aliases are allowed, but each use counts with its full size: otherwise nine lines of aliases can expand to gigabytes.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from pathlib import Path
from typing import BinaryIO

import yaml

from ...core.errors import InputError
from .strict_json import shorten

LARGEST_YAML = 250_000
"""Bytes, far more than people write by hand; the parser needs up to ten seconds for this many."""
MOST_NODES = 200_000
"""Words, lists and mappings, with aliases expanded."""
LONGEST_WORD = 200
"""Characters of a value that is not text: numbers of thousands of digits are slow to parse, and surely a mistake."""
_TEXT = "tag:yaml.org,2002:str"


class _Loader(yaml.SafeLoader):
    """Accepts plain data only, and refuses duplicate keys, of which YAML would keep the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, object]:
        seen: set[object] = set()
        for key_node, _ in node.value if isinstance(node, yaml.MappingNode) else ():
            if not isinstance(key_node, yaml.ScalarNode):
                raise yaml.constructor.ConstructorError(None, None, "a key must be a plain word", key_node.start_mark)
            key = (key_node.tag, key_node.value)
            if key in seen:
                raise yaml.constructor.ConstructorError(None, None, f"the key {key_node.value!r:.80} occurs twice", key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep)


def read_yaml(path: Path) -> object:
    """The document in a file."""
    try:
        with path.open("rb") as file:
            return parse_yaml_stream(file, str(path))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {(error.strerror or str(error)).lower()}") from None


def parse_yaml_stream(stream: BinaryIO, where: str) -> object:
    """The document in a stream; `where` names it in messages."""
    data = stream.read(LARGEST_YAML + 1)
    if len(data) > LARGEST_YAML:
        raise InputError(f"{where}: more than {LARGEST_YAML} bytes of YAML; this is not a file of options")
    return parse_yaml(data, where)


def parse_yaml(data: bytes, where: str) -> object:
    """The document in `data`."""
    try:
        loader = _Loader(data)
        try:
            node = loader.get_single_node()
            if node is None:
                return None
            _check_size(node)
            return loader.construct_document(node)
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        place = f"line {error.problem_mark.line + 1}: " if error.problem_mark else ""
        raise InputError(f"{where}: {place}not valid YAML: {shorten(str(error.problem))}") from None
    except UnicodeDecodeError:
        raise InputError(f"{where}: not UTF-8 text") from None
    except (yaml.YAMLError, ValueError, OverflowError, AttributeError, TypeError, LookupError):
        # The constructors of explicit tags raise these if a value does not match its tag.
        raise InputError(f"{where}: not valid YAML") from None
    except RecursionError:
        raise InputError(f"{where}: nested too deeply") from None


def _check_size(top: yaml.Node) -> None:
    """Count nodes with aliases expanded, before anything is built. An alias that contains itself is an error."""
    sizes: dict[int, int] = {}
    open_: set[int] = set()

    def size(node: yaml.Node) -> int:
        if id(node) in open_:
            raise yaml.constructor.ConstructorError(None, None, "an alias refers to a value that contains it", node.start_mark)
        if id(node) not in sizes:
            open_.add(id(node))
            sizes[id(node)] = 1 + sum(map(size, _below(node)))
            open_.discard(id(node))
        if sizes[id(node)] > MOST_NODES:
            raise yaml.constructor.ConstructorError(None, None, "too large after expanding aliases", node.start_mark)
        return sizes[id(node)]

    size(top)


def _below(node: yaml.Node) -> Iterator[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield from (key, value)
    elif isinstance(node, yaml.SequenceNode):
        yield from node.value
    elif isinstance(node, yaml.ScalarNode) and any("\ud800" <= character <= "\udfff" for character in node.value):
        raise yaml.constructor.ConstructorError(None, None, "half of a character (a lone surrogate)", node.start_mark)
    elif isinstance(node, yaml.ScalarNode) and node.tag != _TEXT and len(node.value) > LONGEST_WORD:
        raise yaml.constructor.ConstructorError(None, None, f"a number of {len(node.value)} characters is too long", node.start_mark)
