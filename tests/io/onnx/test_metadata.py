"""The metadata of a file, read without the model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper, parser

from checkmate.io.onnx.read.metadata import read_metadata


def model(**notes: str) -> onnx.ModelProto:
    proto = parser.parse_model('<ir_version: 8, opset_import: ["" : 18], model_version: 7> g (float[4] x) => (float[4] z) { z = Relu(x) }')
    proto.graph.initializer.append(numpy_helper.from_array(np.arange(1000.0), "w"))
    for key, value in notes.items():
        proto.metadata_props.add(key=key, value=value)
    return proto


@pytest.mark.parametrize("notes", [{}, {"a": "b"}, {"checkmate.threads": "3", "author": "me", "empty": "", "long": "x" * 5000, "ü": "ß"}])
def test_it_is_what_onnx_reads(notes: dict[str, str], tmp_path: Path) -> None:
    proto = model(**notes)
    assert read_metadata(proto.SerializeToString()) == notes
    onnx.save(proto, tmp_path / "m.onnx")
    assert read_metadata(tmp_path / "m.onnx") == read_metadata(str(tmp_path / "m.onnx")) == notes


@pytest.mark.parametrize(
    "data", [b"", b"\xff" * 40, b"{}", b"\x72\xff\xff\xff\xff\x0f", b"\x72\x02\x0a\x05", b"\x0b\x0c", b"\x72\x03\x0a\x01\xff"]
)
def test_damaged_files_have_none(data: bytes) -> None:
    assert not any(read_metadata(data).values())


def test_truncated_files_never_raise(tmp_path: Path) -> None:
    data = model(a="b", c="d").SerializeToString()
    for length in range(0, len(data), 7):
        assert set(read_metadata(data[:length])) <= {"", "a", "c"}
    assert read_metadata(tmp_path / "missing.onnx") == {}
    assert read_metadata(tmp_path) == {}
