"""YAML read as carefully as JSON: no objects, no key twice, nothing too large, and every failure is one line."""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path
from typing import BinaryIO

import yaml

from ..core.errors import InputError

LARGEST_YAML = 10**7
"""Bytes; what people write is far below, and the parser is slow."""


class _Loader(yaml.SafeLoader):
    """Knows plain data only, and sees a key that stands twice, which YAML would let the last one win."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, object]:
        seen: set[object] = set()
        for key_node, _ in node.value if isinstance(node, yaml.MappingNode) else ():
            if not isinstance(key_node, yaml.ScalarNode):
                raise yaml.constructor.ConstructorError(None, None, "a key must be a plain word", key_node.start_mark)
            key = (key_node.tag, key_node.value)
            if key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key_node.value!r:.80} stands here twice", key_node.start_mark
                )
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
    """The document in a stream; `where` is what messages call it."""
    data = stream.read(LARGEST_YAML + 1)
    if len(data) > LARGEST_YAML:
        raise InputError(f"{where}: more than {LARGEST_YAML} bytes of YAML; this is no file of options")
    return parse_yaml(data, where)


def parse_yaml(data: bytes, where: str) -> object:
    """The document in `data`."""
    try:
        loader = _Loader(data)
        try:
            return loader.get_single_data()
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        place = f"line {error.problem_mark.line + 1}: " if error.problem_mark else ""
        raise InputError(f"{where}: {place}not valid YAML: {error.problem}") from None
    except UnicodeDecodeError:
        raise InputError(f"{where}: not UTF-8 text") from None
    except (yaml.YAMLError, ValueError, OverflowError):
        raise InputError(f"{where}: not valid YAML") from None
    except RecursionError:
        raise InputError(f"{where}: nested too deeply") from None
