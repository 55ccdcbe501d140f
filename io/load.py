"""Load a graph, whatever format it is in. The format is found by looking at the content, not at the name."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from ..core.errors import InputError
from ..core.graph import Graph
from . import graph_json
from .content import Content
from .graph_json import parse_graph
from .node_link import looks_like_node_link, parse_node_link
from .strict_json import describe, quote

if TYPE_CHECKING:
    from .onnx.reader import OnnxModel


@dataclass(frozen=True, slots=True)
class Loaded:
    """A graph and where it came from; the ONNX model too if it was one."""

    graph: Graph
    format: str
    source: str
    onnx: OnnxModel | None = None


@dataclass(frozen=True, slots=True)
class Sizes:
    """What the user says about free dimensions."""

    dims: Mapping[str, int]
    batch_size: int | None

    @property
    def given(self) -> bool:
        return bool(self.dims) or self.batch_size is not None


@dataclass(frozen=True, slots=True)
class Format:
    """One way to write a graph: how to tell it by its content, and how to read it."""

    detect: Callable[[Content], bool]
    read: Callable[[Content, Sizes], tuple[Graph, OnnxModel | None]]


def load(source: str, *, dims: Mapping[str, int], batch_size: int | None, stdin: BinaryIO | None = None) -> Loaded:
    """Load the graph in a file, or on standard input if the source is `-`."""
    content = Content.from_stream(stdin or sys.stdin.buffer) if source == "-" else Content.from_path(Path(source))
    for name, candidate in FORMATS.items():
        if candidate.detect(content):
            graph, onnx = candidate.read(content, Sizes(dims, batch_size))
            return Loaded(graph, name, source, onnx)
    raise InputError(f"{content.where}: {_unrecognized(content)}")


def _json(parse: Callable[[object, str], Graph], detect: Callable[[dict[str, object]], bool]) -> Format:
    def detected(content: Content) -> bool:
        return content.is_json and isinstance(content.document, dict) and detect(content.document)

    def read(content: Content, sizes: Sizes) -> tuple[Graph, OnnxModel | None]:
        if sizes.given:
            raise InputError(f"{content.where}: JSON graphs have fixed sizes; --dim and --batch-size are for ONNX models")
        return parse(content.document, content.where), None

    return Format(detected, read)


def _is_our_graph(content: dict[str, object]) -> bool:
    return content.get("format") == graph_json.FORMAT or ("operations" in content and "format" not in content)


_MODEL_FIELDS = frozenset((*range(1, 10), 14, 20, 25, 26))
"""Field numbers of an ONNX ModelProto."""


def is_onnx(content: Content) -> bool:
    """Protobuf has no magic number: the first field must be one of a model's, and the bytes must not be text."""
    head = content.head
    tag = head[0] & 0x7F | ((head[1] << 7) if head[0] & 0x80 and len(head) > 1 else 0)
    return tag & 7 in (0, 2) and tag >> 3 in _MODEL_FIELDS and any(byte < 32 and byte not in b"\t\n\r\f" for byte in head)


def _read_onnx(content: Content, sizes: Sizes) -> tuple[Graph, OnnxModel | None]:
    from .onnx.reader import read_onnx

    name = Path(content.where).stem
    model = read_onnx(content.path or content.received or b"", name=name, dims=sizes.dims, batch_size=sizes.batch_size)
    return model.graph, model


FORMATS: Mapping[str, Format] = {
    "checkmate-graph": _json(parse_graph, _is_our_graph),
    "node-link": _json(parse_node_link, looks_like_node_link),
    "onnx": Format(is_onnx, _read_onnx),
}
"""All formats, in the order they are tried. To add one, add a line."""


def _unrecognized(content: Content) -> str:
    if not content.is_json:
        return "neither JSON nor an ONNX model"
    document = content.document
    if not isinstance(document, dict):
        return f"expected a graph, an object {{...}}, found {describe(document)}"
    kind = document.get("format")
    if isinstance(kind, str):
        return f"expected a graph, found a file of format {quote(kind)}"
    return f"JSON, but not a graph: neither \"format\": {graph_json.FORMAT!r} nor node-link JSON with 'nodes' and 'links'"
