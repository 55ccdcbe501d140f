"""Load a graph in any format. The format is recognized by the content, not by the name of the file."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from ..core.errors import InputError
from ..core.model.graph import Graph
from .formats import graph_json
from .formats.content import Content
from .formats.graph_json import parse_graph
from .formats.node_link import looks_like_node_link, parse_node_link
from .formats.strict_json import describe, quote

if TYPE_CHECKING:
    from .onnx.read.reader import OnnxModel
    from .torch.files.program_graph import TorchProgram


@dataclass(frozen=True, slots=True)
class Read:
    """A graph, and the model it was read from, if any."""

    graph: Graph
    onnx: OnnxModel | None = None
    torch: TorchProgram | None = None


@dataclass(frozen=True, slots=True)
class Loaded:
    """A graph and its origin, and the ONNX model or PyTorch program it was read from, if any."""

    graph: Graph
    format: str
    source: str
    onnx: OnnxModel | None = None
    torch: TorchProgram | None = None


@dataclass(frozen=True, slots=True)
class Sizes:
    """The sizes of free dimensions that the user set."""

    dims: Mapping[str, int]
    batch_size: int | None
    threads: int | None = None
    """Threads of the session that will run the model."""

    @property
    def given(self) -> bool:
        return bool(self.dims) or self.batch_size is not None


@dataclass(frozen=True, slots=True)
class Format:
    """A file format: how to recognize it by its content, and how to read it."""

    detect: Callable[[Content], bool]
    read: Callable[[Content, Sizes], Read]


def load(
    source: Any,
    *,
    dims: Mapping[str, int] | None = None,
    batch_size: int | None = None,
    threads: int | None = None,
    stdin: BinaryIO | None = None,
) -> Loaded:
    """Load a graph from a path (`-` is standard input), from bytes, from an `onnx.ModelProto` or from a dict of graph JSON."""
    sizes = Sizes(dict(dims or {}), batch_size, threads)
    if isinstance(source, Mapping):
        content = Content.from_document(dict(source), "graph")
    elif hasattr(source, "SerializeToString"):
        from .onnx.read.reader import read_onnx

        model = read_onnx(source, dims=sizes.dims, batch_size=sizes.batch_size, threads=threads)
        return Loaded(model.graph, "onnx", "", model)
    elif isinstance(source, bytes):
        content = Content.from_bytes(source, "bytes")
    elif source == "-":
        content = Content.from_stream(stdin or sys.stdin.buffer)
    else:
        content = Content.from_path(Path(source))
    for name, candidate in FORMATS.items():
        if candidate.detect(content):
            read = candidate.read(content, sizes)
            return Loaded(read.graph, name, "" if isinstance(source, (bytes, Mapping)) else str(source), read.onnx, read.torch)
    raise InputError(f"{content.where}: {_unrecognized(content)}")


def _json(parse: Callable[[object, str], Graph], detect: Callable[[dict[str, object]], bool]) -> Format:
    def detected(content: Content) -> bool:
        return content.is_json and isinstance(content.document, dict) and detect(content.document)

    def read(content: Content, sizes: Sizes) -> Read:
        if sizes.given:
            raise InputError(f"{content.where}: JSON graphs have fixed sizes; --dim and --batch-size are for models")
        return Read(parse(content.document, content.where))

    return Format(detected, read)


def _is_our_graph(content: dict[str, object]) -> bool:
    return content.get("format") == graph_json.FORMAT or ("operations" in content and "format" not in content)


_MODEL_FIELDS = frozenset((*range(1, 10), 14, 20, 25, 26))
"""Field numbers of an ONNX ModelProto."""


def is_onnx(content: Content) -> bool:
    """Protobuf has no magic number: the first field must be a field of a model, and the bytes must not be text."""
    head = content.head
    tag = head[0] & 0x7F | ((head[1] << 7) if head[0] & 0x80 and len(head) > 1 else 0)
    return tag & 7 in (0, 2) and tag >> 3 in _MODEL_FIELDS and any(byte < 32 and byte not in b"\t\n\r\f" for byte in head)


def _read_onnx(content: Content, sizes: Sizes) -> Read:
    from .onnx.read.reader import read_onnx

    name = Path(content.where).stem
    source = content.path or content.received or b""
    model = read_onnx(source, name=name, dims=sizes.dims, batch_size=sizes.batch_size, threads=sizes.threads)
    return Read(model.graph, model)


def is_torch(content: Content) -> bool:
    """A zip file; whether it is a PyTorch program is said when it is read."""
    return content.head.startswith(b"PK\x03\x04")


def _read_torch(content: Content, sizes: Sizes) -> Read:
    from .torch_files import read_torch_program

    program = read_torch_program(content, sizes.dims, sizes.batch_size)
    return Read(program.traced.graph, torch=program)


FORMATS: Mapping[str, Format] = {
    "checkmate-graph": _json(parse_graph, _is_our_graph),
    "node-link": _json(parse_node_link, looks_like_node_link),
    "onnx": Format(is_onnx, _read_onnx),
    "torch": Format(is_torch, _read_torch),
}
"""All formats, in the order in which they are tried. To add one, add a line."""


def _unrecognized(content: Content) -> str:
    if not content.is_json:
        return "neither JSON nor an ONNX model nor a PyTorch program (.pt2)"
    document = content.document
    if not isinstance(document, dict):
        return f"expected a graph (an object {{...}}), found {describe(document)}"
    kind = document.get("format")
    if isinstance(kind, str):
        return f"expected a graph, found a file of format {quote(kind)}"
    return f"JSON, but not a graph: it has neither \"format\": {graph_json.FORMAT!r} nor 'nodes' and 'links' of node-link JSON"
