"""Loading whatever the user points at, told apart by content."""

from __future__ import annotations

import io
import json
import os
import threading
from pathlib import Path
from typing import Any

import onnx
import pytest

from checkmate.core.errors import InputError
from checkmate.io.formats import content
from checkmate.io.formats.graph_json import render_graph
from checkmate.io.load import Loaded, load

OURS: dict[str, Any] = {"format": "checkmate-graph", "version": 1, "operations": [{"name": "a", "bytes": 4}]}
NODE_LINK: dict[str, Any] = {
    "nodes": [{"id": 0, "cost": 1, "bytes": 2}, {"id": 1, "cost": 1, "bytes": 2}],
    "links": [{"source": 0, "target": 1}],
}


def small_model() -> onnx.ModelProto:
    tensor = onnx.TensorProto.FLOAT
    nodes = [onnx.helper.make_node("Relu", ["x"], ["h"], name="relu"), onnx.helper.make_node("Neg", ["h"], ["y"], name="neg")]
    inputs = [onnx.helper.make_tensor_value_info("x", tensor, ["batch", 3])]
    outputs = [onnx.helper.make_tensor_value_info("y", tensor, ["batch", 3])]
    return onnx.helper.make_model(onnx.helper.make_graph(nodes, "small", inputs, outputs))


def loaded(source: str, stdin: bytes | None = None, **sizes: Any) -> Loaded:
    options = {"dims": {}, "batch_size": None, **sizes}
    return load(source, stdin=None if stdin is None else io.BytesIO(stdin), **options)


@pytest.mark.parametrize(("document", "kind", "count"), [(OURS, "checkmate-graph", 1), (NODE_LINK, "node-link", 2)])
@pytest.mark.parametrize("prefix", [b"", b"\xef\xbb\xbf", b" \r\n\t", b" " * 5000])
@pytest.mark.parametrize("name", ["graph.json", "graph.onnx", "graph"])
def test_json_is_told_by_content_from_files_and_stdin(
    tmp_path: Path, document: dict[str, Any], kind: str, count: int, prefix: bytes, name: str
) -> None:
    data = prefix + json.dumps(document).encode()
    path = tmp_path / name
    path.write_bytes(data)
    from_file, from_stdin = loaded(str(path)), loaded("-", data)
    assert (from_file.format, from_file.source, len(from_file.graph.operations), from_file.onnx) == (kind, str(path), count, None)
    assert (from_file.graph.name, from_stdin.graph.name) == ("graph", "stdin")
    assert from_stdin.graph.operations == from_file.graph.operations


def test_a_pipe_is_read_like_stdin(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_text(json.dumps(OURS)))
    writer.start()
    assert loaded(str(pipe)).format == "checkmate-graph"
    writer.join(10)


def test_onnx_is_told_by_content_and_sized(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    path.write_bytes(small_model().SerializeToString())
    for found in (loaded(str(path), batch_size=4), loaded(str(path), dims={"batch": 4}), loaded("-", path.read_bytes(), batch_size=4)):
        assert found.format == "onnx"
        assert found.onnx is not None
        assert found.onnx.graph == found.graph
        assert [value.bytes for value in found.graph.values] == [48, 48]


def test_a_converted_model_loads_back_equal(tmp_path: Path) -> None:
    model, graph = tmp_path / "model.onnx", tmp_path / "graph.json"
    model.write_bytes(small_model().SerializeToString())
    first = loaded(str(model), batch_size=4).graph
    graph.write_text(json.dumps(render_graph(first, None)))
    assert loaded(str(graph)).graph == first


@pytest.mark.parametrize("sizes", [{"dims": {"batch": 4}}, {"batch_size": 4}])
def test_json_has_no_free_dimensions(sizes: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"^stdin: JSON graphs have fixed sizes; --dim and --batch-size are for models$"):
        loaded("-", json.dumps(OURS).encode(), **sizes)


def ours(*operations: str) -> bytes:
    return f'{{"format": "checkmate-graph", "version": 1, "operations": [{", ".join(operations)}]}}'.encode()


A = '{"name": "a", "bytes": 1, "inputs": ["b"]}'
B = '{"name": "b", "bytes": 1, "inputs": ["a"]}'
C = '{"name": "c", "bytes": 1}'

HOSTILE: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "stdin: the file is empty"),
    "blank": (b"\n \n", "stdin: the file is empty"),
    "long blank": (b"\n" * 5000, "stdin: the file is empty"),
    "cyclic": (ours(A, B), "stdin: the graph has a cycle: "),
    "dangling": (ours(A), "stdin: operation 'a' reads 'b', which no operation makes"),
    "duplicate": (ours(C, C), "stdin: operation 'c' is defined twice"),
    "duplicate key": (ours('{"name": "c", "bytes": 1, "bytes": 2}'), "stdin: operations[0]: the key 'bytes' occurs twice"),
    "negative": (ours('{"name": "c", "bytes": -1}'), "stdin: operations[0].bytes: -1 is negative"),
    "NaN": (ours('{"name": "c", "bytes": 1, "cost": NaN}'), "stdin: operations[0].cost: NaN is not a number in JSON"),
    "huge integer": (ours(f'{{"name": "c", "bytes": {"9" * 5000}}}'), "stdin: operations[0].bytes: an integer of 5000 digits"),
    "no operations": (ours(), "stdin: operations: the graph has no operations"),
    "truncated": (ours(C)[:-5], "stdin: line 1 column "),
    "list": (b"[]", "stdin: expected a graph (an object {...}), found a list"),
    "a schedule": (b'{"format": "checkmate-schedule"}', "stdin: expected a graph, found a file of format 'checkmate-schedule'"),
    "other JSON": (b'{"a": 1}', "stdin: JSON, but not a graph"),
    "no format": (b'{"operations": []}', "stdin: the key 'format' is missing"),
    "UTF-16": ('{"a": 1}'.encode("utf-16"), "stdin: the text is UTF-16; save it as UTF-8"),
    "text": (b"hello\n", "stdin: neither JSON nor an ONNX model"),
    "text that starts like a field": (b"# Notes\n(see README)\n", "stdin: neither JSON nor an ONNX model"),
    "quoted text": (b'"{}"', "stdin: neither JSON nor an ONNX model"),
    "zip": (b"PK\x03\x04\x14\x00\x00\x00", "stdin: a damaged zip file"),
    "png": (b"\x89PNG\r\n\x1a\n\x00\x00", "stdin: neither JSON nor an ONNX model"),
    "gzip": (b"\x1f\x8b\x08\x00\x00", "stdin: neither JSON nor an ONNX model"),
    "zeros": (bytes(100), "stdin: neither JSON nor an ONNX model"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_content_gets_one_clear_line(case: str) -> None:
    data, message = HOSTILE[case]
    with pytest.raises(InputError) as caught:
        loaded("-", data)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "data", [small_model().SerializeToString()[:-9], b"\x08\x0a" + b"\xff" * 50, b"\x08\x0a"], ids=["cut", "noise", "bare"]
)
def test_broken_onnx_gets_one_clear_line(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "broken.onnx"
    path.write_bytes(data)
    with pytest.raises(InputError) as caught:
        loaded(str(path))
    assert "broken" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_places_that_hold_no_file(tmp_path: Path) -> None:
    for place, message in (
        (tmp_path, "this is a folder; give a file"),
        (tmp_path / "none", "cannot be read: no such file or directory"),
    ):
        with pytest.raises(InputError) as caught:
            loaded(str(place))
        assert str(caught.value) == f"{place}: {message}"


def test_what_is_too_large_is_refused_before_it_is_parsed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "large.json"
    path.write_text(json.dumps(OURS))
    monkeypatch.setattr(content, "LARGEST_JSON", 10)
    with pytest.raises(InputError, match=r"large\.json: \d+ bytes of JSON are more than the limit"):
        loaded(str(path))
    monkeypatch.setattr(content, "LARGEST_STREAM", 20)
    with pytest.raises(InputError, match=r"^stdin: more than 20 bytes; give a file instead$"):
        loaded("-", path.read_bytes())
