"""Whatever is given as an ONNX file, the answer is a graph or one clear line."""

from __future__ import annotations

import os
import random
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper, parser

from checkmate.core.errors import InputError
from checkmate.io.onnx.read.reader import read_onnx


def parse(text: str, opset: int = 18) -> ModelProto:
    return parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]> g {text}')


def complaint(source: Path | bytes | ModelProto, **options: object) -> str:
    data = source.SerializeToString() if isinstance(source, ModelProto) else source
    with pytest.raises(InputError) as caught:
        read_onnx(data, **options)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)
    return str(caught.value)


GOOD = parse("(float[2,3] x) => (y) <float[3,4] w = {0,0,0,0,0,0,0,0,0,0,0,0}> { h = MatMul(x, w) y = Relu(h) }")


def test_files_that_are_no_models(tmp_path: Path) -> None:
    assert "no such file" in complaint(tmp_path / "missing.onnx")
    assert "this is a folder" in complaint(tmp_path)
    empty = tmp_path / "empty.onnx"
    empty.write_bytes(b"")
    assert complaint(empty) == f"{empty}: the file is empty"
    assert "looks like JSON" in complaint(b'{"operations": []}')
    assert "not an ONNX file" in complaint(b"\x89PNG\r\n\x1a\n" + bytes(range(256)))
    assert "my model: cannot be read as ONNX" in complaint(b"GIF89a", name="my model")
    assert "has no graph" in complaint(ModelProto(ir_version=8))
    assert "has no graph" in complaint(b"\x08\x08")


def test_a_file_cut_short_anywhere() -> None:
    data = GOOD.SerializeToString()
    for length in range(len(data)):
        complaint(data[:length])


def test_a_file_larger_than_any_protobuf(tmp_path: Path) -> None:
    path = tmp_path / "huge.onnx"
    with path.open("wb") as file:
        file.truncate(2**31)
    assert "external data" in complaint(path)


def test_old_opsets() -> None:
    assert "opset 6 is too old; convert it with onnx.version_converter" in complaint(parse("(float[2] x) => (y) { y = Relu(x) }", 6))
    proto = ModelProto()
    proto.CopyFrom(GOOD)
    del proto.opset_import[:]
    assert "imports no opset" in complaint(proto)
    proto.ir_version = 2
    assert "opset 1 is too old" in complaint(proto)
    proto.opset_import.add(domain="", version=2**40)
    assert "does not exist" in complaint(proto)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("(float[2] x) => (y) { y = Add(x, z) }", "reads 'z', which no operation makes"),
        ("(float[2] x) => (z) { y = Relu(x) }", "no operation makes the graph output 'z'"),
        ("(float[2] x) => (y) { a = Add(x, c) b = Relu(a) c = Relu(b) y = Relu(c) }", "cycle: 'Add_0' -> 'Relu_1' -> 'Relu_2' -> 'Add_0'"),
        ("(float[2] x) => (y) { y = Relu(x) y = Abs(x) }", "'y' is made twice, by 'Relu_0' and by 'Abs_1'"),
        ("(float[2] x) => (y) { x = Relu(x) y = Abs(x) }", "makes 'x', which is already an initializer or input"),
        (
            "(float[2] x) => (y) { k = Constant<value_int=1>() k = Relu(x) y = Abs(k) }",
            "makes 'k', which is already an initializer or input",
        ),
        ("(float[2] x, float[2] x) => (y) { y = Relu(x) }", "'x' is defined twice"),
        ("(float[2] x) => (y) <float[1] w = {1}, float[1] w = {1}> { y = Relu(x) }", "'w' is defined twice"),
        ("(float[2] x) => (x) { }", "no operations"),
        ("(float[2] x) => (k) { k = Constant<value_int=1>() }", "no operations"),
        ("(float[2] x) => (k) { k = Constant() }", "Constant node 'k' has no value"),
        ("(float[-3,2] x) => (y) { y = Relu(x) }", "input 'x' is -3 x 2"),
        ("(float[4000000000,4000000000,4000000000] x) => (y) { y = Relu(x) }", "'x' is larger than any memory"),
        (
            "(float[1] x) => (y) <int64[2] s = {4000000000000000000, 4000000000000000000}> { y = Expand(x, s) }",
            "'y' is larger than any memory",
        ),
        ("(float[6] x) => (y) { y, z, w = Split<num_outputs = 2>(x) }", "num_outputs is 2, but it has 3 outputs"),
        ("(float[2,3] x, float[3] s) => (y) { y, m = LayerNormalization<axis = 4000000000>(x, s) }", "axis is 4000000000"),
        ("(float[2] x) => (y) { y = Relu() }", "cannot make 'y'"),
        ("(float[2] x) => (y) <seq(float[2]) s> { s = SequenceInsert(x) y = Relu(x) }", "cannot make 's'"),
    ],
)
def test_graphs_that_make_no_sense(text: str, words: str) -> None:
    assert words in complaint(parse(text))


def test_stored_tensors_that_make_no_sense() -> None:
    proto = ModelProto()
    proto.CopyFrom(GOOD)
    weights = proto.graph.initializer[0]
    weights.dims[0] = -3
    assert "'w' has a negative dimension: [-3, 4]" in complaint(proto)
    weights.dims[0] = 3
    weights.data_type = 99
    assert "'w' has element type 99, which is unknown" in complaint(proto)
    short = parse("(float[2] x) => (y) <int64[1] s = {2}> { y = Reshape(x, s) }")
    short.graph.initializer[0].dims[0] = 3
    assert "tensor 's' is damaged" in complaint(short)


def test_names_that_are_not_text() -> None:
    data = parse("(float[2] x) => (y) { [first] y = Relu(x) }").SerializeToString()
    assert "not UTF-8" in complaint(data.replace(b"first", b"f\xff\xffst"))
    assert "not UTF-8" in complaint(data.replace(b"Relu", b"R\xff\xffu"))


def test_a_name_with_a_line_break_stays_on_one_line() -> None:
    proto = parse("(float[N] x) => (y) { y = Relu(x) }")
    proto.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "two\nlines"
    proto.graph.input[0].name = "also\nhere"
    assert "two lines" in complaint(proto)


def stored_outside(location: str, folder: Path) -> Path:
    shape = numpy_helper.from_array(np.array([2, 3], np.int64), "shape")
    (folder / "secret.bin").write_bytes(shape.raw_data)
    shape.ClearField("raw_data")
    shape.data_location = TensorProto.EXTERNAL
    shape.external_data.add(key="location", value=location)
    graph = helper.make_graph(
        [helper.make_node("Reshape", ["x", "shape"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [6])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [shape],
    )
    (folder / "inner").mkdir()
    path = folder / "inner" / "model.onnx"
    path.write_bytes(helper.make_model(graph).SerializeToString())
    return path


@pytest.mark.parametrize("location", ["../secret.bin", "/etc/passwd", "a/../../secret.bin", "..\\secret.bin", "C:\\secret.bin", ""])
def test_external_data_outside_the_folder_is_refused(location: str, tmp_path: Path) -> None:
    path = stored_outside(location, tmp_path)
    assert "'shape': external data at" in complaint(path)
    assert "not inside the model's folder" in complaint(path)
    assert "not inside the model's folder" in complaint(path.read_bytes())


def test_a_link_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    path = stored_outside("link.bin", tmp_path)
    (path.parent / "link.bin").symlink_to(tmp_path / "secret.bin")
    assert "not inside the model's folder" in complaint(path)
    (path.parent / "link.bin").unlink()
    (path.parent / "link.bin").write_bytes((tmp_path / "secret.bin").read_bytes())
    assert read_onnx(path).graph.values[0].bytes == 24


def test_external_data_that_is_missing_or_short(tmp_path: Path) -> None:
    path = stored_outside("data.bin", tmp_path)
    assert "'y', made by node 'Reshape_0' (Reshape)" in complaint(path)
    (path.parent / "data.bin").write_bytes(b"1234")
    assert "'shape': external data ends after 4 of 16 bytes" in complaint(path)


def stored_weights(folder: Path, *, offset: str = "0", length: str = "24", location: str = "w.bin") -> Path:
    """A weight that determines no shape: its contents are never read, but they must be there."""
    weight = numpy_helper.from_array(np.zeros((2, 3), np.float32), "w")
    weight.ClearField("raw_data")
    weight.data_location = TensorProto.EXTERNAL
    for key, value in (("location", location), ("offset", offset), ("length", length)):
        weight.external_data.add(key=key, value=value)
    info = helper.make_tensor_value_info
    node = helper.make_node("Add", ["x", "w"], ["y"])
    graph = helper.make_graph([node], "g", [info("x", TensorProto.FLOAT, [2, 3])], [info("y", TensorProto.FLOAT, [2, 3])], [weight])
    path = folder / "model.onnx"
    path.write_bytes(helper.make_model(graph).SerializeToString())
    return path


@pytest.mark.parametrize(
    ("part", "words"),
    [
        ({"offset": "4080"}, "external data ends after 16 of 24 bytes: 'w.bin' has 4096 bytes, and the tensor starts at 4080"),
        ({"offset": "-8"}, "external data of 24 bytes at -8"),
        ({"offset": "here"}, "is not a number"),
        ({"offset": "99999999999999999999"}, "external data ends after 0 of 24 bytes"),
        ({"length": "12"}, "external data of 12 bytes at 0, but its shape takes 24"),
        ({"location": "w\0.bin"}, "is not inside the model's folder"),
    ],
)
def test_truncated_weights_and_bad_offsets_are_refused(tmp_path: Path, part: dict[str, str], words: str) -> None:
    (tmp_path / "w.bin").write_bytes(bytes(4096))
    assert words in complaint(stored_weights(tmp_path, **part))


def test_weights_that_are_missing_are_no_error_but_a_pipe_is(tmp_path: Path) -> None:
    """Opening the pipe would wait forever."""
    path = stored_weights(tmp_path)
    assert read_onnx(path).graph.fixed["parameters"] == 24
    os.mkfifo(tmp_path / "w.bin")
    assert "external data at 'w.bin' is not a regular file" in complaint(path)
    shape = stored_outside("pipe.bin", tmp_path)
    os.mkfifo(shape.parent / "pipe.bin")
    assert "is not a regular file" in complaint(shape)


def test_damaged_files_never_do_worse_than_a_complaint() -> None:
    """Bytes changed, added and lost at random, in a model with most kinds of things in it."""
    data = (
        parse(
            """(float[N,3,8,8] x, bool c) => (y) <float[4,3,3,3] w, int64[2] s = {0, -1}, float[N,4,6,6] h> {
            h = Conv<pads = [0, 0, 0, 0]>(x, w2) w2 = ConstantOfShape(d) d = Constant<value_ints = [4, 3, 3, 3]>()
            r = Reshape(h, s) t = Transpose(r)
            y = If (c) <then_branch = a () => (p) { p = Relu(t) }, else_branch = b () => (q) { q = Neg(t) }> }"""
        )
    ).SerializeToString()
    generator = random.Random(3)
    graphs = 0
    for _ in range(1500):
        damaged = bytearray(data)
        for _ in range(generator.choice((1, 1, 2, 5))):
            position = generator.randrange(len(damaged))
            match generator.randrange(3):
                case 0:
                    damaged[position] = generator.randrange(256)
                case 1:
                    damaged.insert(position, generator.randrange(256))
                case _:
                    del damaged[position]
        try:
            graphs += bool(read_onnx(bytes(damaged), batch_size=2).graph.operations)
        except InputError as error:
            complaint_lines = str(error).splitlines()
            if len(complaint_lines) != 1:
                pytest.fail(str(error))
    assert 10 < graphs < 1000


def test_numbers_at_the_edge_never_do_worse_than_a_complaint() -> None:
    edges = (0, -1, 1, 7, 2**31, 2**62, -(2**63), 2**63 - 1)
    for operator, name in (
        ("Concat", "axis"),
        ("Flatten", "axis"),
        ("Softmax", "axis"),
        ("Split", "num_outputs"),
        ("ArgMax", "axis"),
        ("EyeLike", "k"),
    ):
        for edge in edges:
            node = helper.make_node(operator, ["x"], ["y"], **{name: edge})  # type: ignore[arg-type]
            graph = helper.make_graph([node], "g", [helper.make_tensor_value_info("x", 1, [2, 3])], [onnx.ValueInfoProto(name="y")])
            model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
            try:
                assert read_onnx(model.SerializeToString()).graph.values[0].bytes <= 48
            except InputError as error:
                if len(str(error).splitlines()) != 1:
                    pytest.fail(str(error))
