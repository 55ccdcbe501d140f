"""An ONNX file becomes the right graph: operations, values, fixed memory, views, names, symbolic sizes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper, parser

from checkmate.core.errors import InputError
from checkmate.core.model.graph import Operation
from checkmate.io.onnx.proto.elements import ELEMENT_BITS, tensor_bytes
from checkmate.io.onnx.read.reader import OnnxModel, read_onnx

LIGHT = sorted((Path(onnx.__file__).parent / "backend/test/data/light").glob("light_*.onnx"))


def read(text: str, opset: int = 18, **options: object) -> OnnxModel:
    proto = parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}, "custom" : 1]> g {text}')
    return read_onnx(proto.SerializeToString(), **options)  # type: ignore[arg-type]


def operation(model: OnnxModel, kind: str) -> Operation:
    return next(operation for operation in model.graph.operations if operation.kind == kind)


def sizes(model: OnnxModel) -> dict[str, int]:
    return {value.name: value.bytes for value in model.graph.values}


def outputs(model: OnnxModel) -> list[str]:
    return [model.graph.values[value].name for value in model.graph.outputs]


def test_a_small_network() -> None:
    model = read(
        "(float[2,3] x) => (float[2,4] y) <float[3,4] w = {0,0,0,0,0,0,0,0,0,0,0,0}> { [dense] h = MatMul(x, w) [act] y = Relu(h) }"
    )
    dense, act = model.graph.operations
    assert (dense.name, dense.kind, dense.inputs, dense.outputs) == ("dense", "MatMul", (), (0,))
    assert (act.name, act.inputs, act.outputs) == ("act", (0,), (1,))
    assert sizes(model) == {"h": 32, "y": 32}
    assert model.graph.fixed == {"parameters": 48, "inputs": 24, "constants": 0, "barriers": 1}
    assert outputs(model) == ["y"]
    assert model.value_names == ("h", "y")
    assert dense.work.flops == 2 * 2 * 3 * 4
    assert dense.work.moved_bytes == 24 + 48 + 32


def test_the_file_stays_as_it_is_and_every_operation_knows_its_node() -> None:
    proto = parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 18]> g (float[N] x) => (float[N] y) {
        y = Neg(b) b = Abs(a) k = Constant<value_int=3>() a = Relu(x) }"""
    )
    model = read_onnx(proto.SerializeToString(), batch_size=5)
    assert model.proto == proto
    assert [proto.graph.node[index].op_type for index in model.node_of] == ["Relu", "Abs", "Neg"]
    assert [operation.kind for operation in model.graph.operations] == ["Relu", "Abs", "Neg"]


def test_constants_are_fixed_memory_and_no_operations() -> None:
    model = read(
        """(float[4] x) => (y) {
        a = Constant<value = float[4] {1, 2, 3, 4}>()
        b = Constant<value_float = 2.0>()
        c = Constant<value_ints = [1, 2]>()
        s = Constant<value_string = "seven b">()
        h = Add(x, a)
        y = Mul(h, b) }"""
    )
    assert [operation.kind for operation in model.graph.operations] == ["Add", "Mul"]
    assert model.graph.fixed["constants"] == 16 + 4 + 16 + 7
    assert operation(model, "Add").work.moved_bytes == 48


def test_an_initializer_listed_as_input_counts_once_and_as_parameter() -> None:
    model = read("(float[4] x, float[4] w) => (y) <float[4] w = {1, 2, 3, 4}> { y = Add(x, w) }")
    assert model.graph.fixed == {"parameters": 16, "inputs": 16, "constants": 0, "barriers": 1}


def test_a_sparse_initializer_is_dense_in_memory() -> None:
    values = helper.make_tensor("w", TensorProto.FLOAT, [2], [1.0, 2.0])
    indices = helper.make_tensor("i", TensorProto.INT64, [2], [0, 7])
    graph = helper.make_graph(
        [helper.make_node("Add", ["x", "w"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [10])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [10])],
        sparse_initializer=[helper.make_sparse_tensor(values, indices, [10])],
    )
    model = read_onnx(helper.make_model(graph).SerializeToString())
    assert model.graph.fixed["parameters"] == 40
    assert sizes(model) == {"y": 40}


@pytest.mark.parametrize(
    ("element", "expected"),
    [
        *(("FLOAT", 12), ("FLOAT16", 6), ("BFLOAT16", 6), ("DOUBLE", 24), ("BOOL", 3), ("COMPLEX64", 24), ("COMPLEX128", 48)),
        *(("INT4", 2), ("UINT4", 2), ("FLOAT4E2M1", 2), ("FLOAT8E4M3FN", 3), ("FLOAT8E5M2FNUZ", 3), ("UINT8", 3), ("INT64", 24)),
    ],
)
def test_bytes_of_three_elements(element: str, expected: int) -> None:
    number = TensorProto.DataType.Value(element)
    graph = helper.make_graph(
        [helper.make_node("Identity", ["x"], ["h"]), helper.make_node("Transpose", ["h"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", number, [3])],
        [helper.make_tensor_value_info("y", number, [3])],
    )
    model = read_onnx(helper.make_model(graph).SerializeToString())
    assert sizes(model)["y"] == expected
    assert model.graph.fixed["inputs"] == expected


def test_narrow_types_are_packed_and_every_type_of_this_onnx_has_a_width() -> None:
    assert [tensor_bytes(25, (count,)) for count in (1, 4, 5)] == [1, 1, 2]
    assert tensor_bytes(27, (4,)) == 3
    assert tensor_bytes(TensorProto.INT4, ()) == 1
    unsized = {name for name, number in TensorProto.DataType.items() if number not in ELEMENT_BITS}
    assert unsized == {"UNDEFINED", "STRING"}


def test_views_share_the_buffer_of_their_first_input() -> None:
    model = read(
        """(float[2,6] x) => (y) <int64[1] axes = {0}, int64[2] shape = {3, 4}> {
        a = Relu(x) b = Reshape(a, shape) c = Unsqueeze(b, axes) d = Squeeze(c, axes) e = Flatten(d) f = Identity(e) y = Relu(f) }"""
    )
    kinds = {operation.kind for operation in model.graph.operations if operation.view}
    assert kinds == {"Reshape", "Unsqueeze", "Squeeze", "Flatten", "Identity"}
    names = [value.name for value in model.graph.values]
    assert {value.name: names[value.alias_of] for value in model.graph.values if value.alias_of is not None} == {
        "b": "a",
        "c": "b",
        "d": "c",
        "e": "d",
        "f": "e",
    }
    assert operation(model, "Reshape").work.moved_bytes == 0


def test_a_view_of_fixed_memory_takes_nothing() -> None:
    model = read("(float[2,6] x) => (y) <int64[1] shape = {-1}> { a = Reshape(x, shape) b = Identity(a) y = Relu(b) }")
    first, second, _ = model.graph.values
    assert (first.bytes, first.alias_of) == (0, None)
    assert (second.bytes, second.alias_of) == (48, 0)


def test_a_view_that_makes_a_graph_output_is_a_copy() -> None:
    model = read("(float[2,6] x) => (y, z) <int64[1] shape = {-1}> { a = Relu(x) y = Reshape(a, shape) z = Identity(x) }")
    assert not any(operation.view for operation in model.graph.operations)
    assert sizes(model) == {"a": 48, "y": 48, "z": 48}
    assert operation(model, "Reshape").work.moved_bytes == 48 + 8 + 48


def test_dropout_is_no_view_and_blank_outputs_are_no_values() -> None:
    model = read("(float[4] x) => (y) { h = Dropout(x) y = Relu(h) }")
    assert not operation(model, "Dropout").view
    with_mask = read("(float[4] x) => (y) { h, mask = Dropout(x) y = Relu(h) }")
    assert sizes(with_mask) == {"h": 16, "mask": 4, "y": 16}
    proto = with_mask.proto
    proto.graph.node[0].output[1] = ""
    assert sizes(read_onnx(proto.SerializeToString())) == {"h": 16, "y": 16}


def test_several_outputs_are_values_of_their_own() -> None:
    model = read("(float[6,2] x) => (y) { a, b, c = Split<axis=0, num_outputs=3>(x) y = Concat<axis=0>(a, c) }")
    assert model.graph.operations[0].outputs == (0, 1, 2)
    assert sizes(model) == {"a": 16, "b": 16, "c": 16, "y": 32}
    assert model.graph.operations[1].inputs == (0, 2)


def test_graph_outputs_that_nothing_computes_need_nothing() -> None:
    model = read(
        "(float[4] x) => (float[4] x, float[4] w, y, y, k) <float[4] w = {1, 2, 3, 4}> { y = Relu(x) k = Constant<value_int=1>() }"
    )
    assert outputs(model) == ["y"]


def test_names_are_unique_and_stable() -> None:
    text = '(float[4] x) => (y) { [a] h = Relu(x) [a] i = Relu(h) j = Abs(i) [Neg_4] k = Abs(j) l = Neg(k) ["a#2"] y = Relu(l) }'
    names = [operation.name for operation in read(text).graph.operations]
    assert names == ["a", "a#3", "Abs_2", "Neg_4", "Neg_4_", "a#2"]


@pytest.mark.parametrize("name", ["grad/h", "h_grad", "ReluGrad_1", "relu_backward"])
def test_the_backward_pass_is_known_by_its_names(name: str) -> None:
    model = read(f'(float[4] x) => (y) {{ h = Relu(x) ["{name}"] y = Relu(h) }}')
    assert [operation.backward for operation in model.graph.operations] == [False, True]
    model.proto.graph.node[1].name = "plain"
    model.proto.graph.node[1].output[0] = model.proto.graph.output[0].name = name
    assert [operation.backward for operation in read_onnx(model.proto.SerializeToString()).graph.operations] == [False, True]


def test_dims_by_name_hold_everywhere() -> None:
    text = "(float[batch,seq,8] x, int64[batch,seq] m) => (float[batch,seq,8] y) { y = Relu(x) }"
    model = read(text, dims={"batch": 3, "seq": 5})
    assert sizes(model) == {"y": 480}
    assert model.graph.fixed["inputs"] == 480 + 120
    assert sizes(read(text, dims={"seq": 5}, batch_size=2)) == {"y": 320}
    assert sizes(read(text, dims={"batch": 2}, batch_size=7)) == {"y": 448}


def test_batch_size_settles_the_first_free_dimension_of_any_input() -> None:
    model = read("(float[3] w, float[3,n,2] x, float[n] b) => (y) { y = Relu(x) z = Add(b, b) }", batch_size=4)
    assert sizes(model) == {"y": 96, "z": 16}


def test_batch_size_settles_dimensions_without_a_name_on_the_same_axis() -> None:
    model = read("(float[?,3] x, float[?] z) => (y) { y = Relu(x) w = Relu(z) }", batch_size=4)
    assert sizes(model) == {"y": 48, "w": 16}
    minus_one = read("(float[1,3] x) => (y) { y = Relu(x) }").proto
    minus_one.graph.input[0].type.tensor_type.shape.dim[0].dim_value = -1
    assert sizes(read_onnx(minus_one.SerializeToString(), batch_size=4)) == {"y": 48}


def test_expressions_of_dimensions_follow() -> None:
    proto = read("(float[1] x, float[1] z) => (y) { y = Add(x, x) }").proto
    proto.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "2*(seq + 1)"
    proto.graph.input[1].type.tensor_type.shape.dim[0].dim_param = "seq // 2"
    model = read_onnx(proto.SerializeToString(), dims={"seq": 5})
    assert sizes(model) == {"y": 48}
    assert model.graph.fixed["inputs"] == 48 + 8


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"dims": {"bach": 3}}, ["'bach'", "batch, seq"]),
        ({"dims": {"batch": -1}}, ["--dim batch=-1", "from 0"]),
        ({"dims": {"batch": 10**30}}, ["--dim batch"]),
        ({"batch_size": 0}, ["--batch-size 0", "from 1"]),
        ({"dims": {"batch": 1, "seq": 2}, "batch_size": 2}, ["--batch-size 2", "no graph input has a free dimension", "x: batch x seq"]),
        ({}, ["'x' is batch x seq", "add --dim batch=... --dim seq=..."]),
        ({"batch_size": 2}, ["'x' is 2 x seq", "add --dim seq=..."]),
        ({"dims": {"x[0]": 2, "x[4]": 3}}, ["--dim x[4]=3: the input 'x' has no axis 4; its shape is batch x seq"]),
        ({"dims": {"z[0]": 2}}, ["the model has no dimension 'z[0]'"]),
    ],
)
def test_sizes_that_do_not_fit_the_model_are_explained(options: dict[str, object], words: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        read("(float[batch,seq] x) => (y) { y = Relu(x) }", **options)
    message = str(caught.value)
    assert all(word in message for word in words), message
    assert "\n" not in message


def test_without_symbolic_dimensions_dims_are_an_error() -> None:
    with pytest.raises(InputError, match="the model has no free dimensions"):
        read("(float[3] x) => (y) { y = Relu(x) }", dims={"N": 3})


def test_all_missing_sizes_are_one_line_to_paste() -> None:
    """Also those without a name, those of all inputs, and names that a shell would not take as they are."""
    text = '(float[batch,3,height,"my width"] images, float[batch,rest] mask, int64[2,batch] ids) => (y) { y = Relu(images) }'
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["" : 18]> g {text.replace(chr(34) + "my width" + chr(34), "width")}')
    model.graph.input[0].type.tensor_type.shape.dim[3].dim_param = "my width"
    model.graph.input[1].type.tensor_type.shape.dim[1].ClearField("dim_param")
    with pytest.raises(InputError) as caught:
        read_onnx(model)
    assert str(caught.value).endswith("add --dim batch=... --dim height=... --dim 'my width=...' --dim 'mask[1]=...'")
    sizes_given = {"batch": 2, "height": 4, "my width": 5, "mask[1]": 6}
    assert read_onnx(model, dims=sizes_given).graph.fixed["inputs"] == 4 * 2 * 3 * 4 * 5 + 4 * 2 * 6 + 8 * 2 * 2


def test_dimensions_without_a_name_by_input_and_axis() -> None:
    model = parser.parse_model('<ir_version: 8, opset_import: ["" : 18]> g (float[a,3,b] x, float[2,c] state) => (y) { y = Relu(x) }')
    for value in model.graph.input:
        for dimension in value.type.tensor_type.shape.dim:
            dimension.ClearField("dim_param")
    with pytest.raises(InputError, match=r"add --batch-size \.\.\. --dim 'x\[2\]=\.\.\.' --dim 'state\[1\]=\.\.\.'$"):
        read_onnx(model)
    with pytest.raises(InputError, match=r"'state' is 2 x \?\); add --dim 'state\[1\]=\.\.\.'$"):
        read_onnx(model, dims={"x[2]": 5}, batch_size=4)
    assert read_onnx(model, dims={"x[2]": 5, "state[1]": 7}, batch_size=4).graph.fixed["inputs"] == 4 * 4 * 3 * 5 + 4 * 2 * 7
    with pytest.raises(InputError, match=r"axis 1 of 'x' is 3 in the file \(\? x 3 x \?\)"):
        read_onnx(model, dims={"x[1]": 4})


@pytest.mark.parametrize("path", LIGHT, ids=lambda path: path.stem)
def test_the_models_inside_the_onnx_wheel(path: Path) -> None:
    model = read_onnx(path)
    constants = sum(node.op_type == "Constant" for node in model.proto.graph.node)
    assert len(model.graph.operations) == len(model.proto.graph.node) - constants
    assert model.graph.fixed["inputs"] == 3 * 224 * 224 * 4
    assert model.graph.name == path.stem
    with pytest.raises(InputError, match="no graph input has a free dimension"):
        read_onnx(path, batch_size=4)


@pytest.mark.parametrize(("name", "billions"), [("light_vgg19", 39.3), ("light_resnet50", 8.2), ("light_squeezenet", 0.70)])
def test_flops_of_known_networks(name: str, billions: float) -> None:
    """Twice the multiplications that are published for them: 19.6, 4.1 and 0.35 billion."""
    model = read_onnx(next(path for path in LIGHT if path.stem == name))
    assert sum(operation.work.flops or 0 for operation in model.graph.operations) == pytest.approx(billions * 1e9, rel=0.03)


@pytest.mark.parametrize("opset", [7, 8, 9, 10, 11, 12, 13, 15, 17, 18, 21, 22, onnx.defs.onnx_opset_version()])
def test_every_opset_from_seven_on(opset: int) -> None:
    model = read(
        "(float[2,3,8,8] x, float[4,3,3,3] w) => (y) { c = Conv(x, w) r = Relu(c) p = MaxPool<kernel_shape=[2,2]>(r) y = Softmax(p) }",
        opset,
    )
    assert sizes(model) == {"c": 2 * 4 * 36 * 4, "r": 2 * 4 * 36 * 4, "p": 2 * 4 * 25 * 4, "y": 2 * 4 * 25 * 4}


def test_an_opset_and_ir_version_of_the_future() -> None:
    proto = read("(float[2] x) => (y) { y = Relu(x) }").proto
    proto.ir_version = 99
    proto.opset_import[0].version = 1000
    assert sizes(read_onnx(proto.SerializeToString())) == {"y": 8}


def test_weights_of_many_gigabytes_are_never_needed(tmp_path: Path) -> None:
    """10 GB by its shape; the file with the weights is not even there."""
    weights = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[50000, 50000], data_location=TensorProto.EXTERNAL)
    weights.external_data.add(key="location", value="weights.bin")
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 50000])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 50000])],
        [weights],
    )
    path = tmp_path / "big.onnx"
    path.write_bytes(helper.make_model(graph).SerializeToString())
    model = read_onnx(path, batch_size=2)
    assert model.graph.fixed["parameters"] == 10_000_000_000
    assert sizes(model) == {"y": 400_000}
    assert model.path == path
    assert not model.proto.graph.initializer[0].raw_data


def test_a_shape_in_external_data_is_read(tmp_path: Path) -> None:
    shape = numpy_helper.from_array(np.array([3, 8], np.int64), "shape")
    graph = helper.make_graph(
        [helper.make_node("Reshape", ["x", "shape"], ["h"]), helper.make_node("Relu", ["h"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [24])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [shape],
    )
    path = tmp_path / "model.onnx"
    onnx.save(helper.make_model(graph), path, save_as_external_data=True, location="data.bin", size_threshold=0)
    assert onnx.load(path, load_external_data=False).graph.initializer[0].external_data
    assert sizes(read_onnx(path))["y"] == 96


JOINT = """(float[4,8] x, float[4,5] t) => (OUTPUTS) <float[8,5] w> {
    y = MatMul(x, w)
    d = Sub(y, t)
    s = Mul(d, d)
    loss = ReduceMean<keepdims = 0>(s)
    xt = Transpose(x)
    g = MatMul(xt, d)
    flipped = Transpose(g)
    decoded = Relu(y) }"""


@pytest.mark.parametrize(
    ("outputs", "backward"),
    [("loss, g", {"MatMul", "Transpose"}), ("loss, flipped", {"MatMul", "Transpose"}), ("loss, decoded", set()), ("y, g", set())],
)
def test_the_backward_pass_of_graphs_whose_names_do_not_say_so(outputs: str, backward: set[str]) -> None:
    """A loss and something of the shape of the parameters; a forward model with several outputs has none."""
    text = JOINT.replace("OUTPUTS", outputs).replace("<float[8,5] w>", "").replace("(float[4,8] x,", "(float[8,5] w, float[4,8] x,")
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["" : 18]> g {text}')
    weights = numpy_helper.from_array(np.zeros((8, 5), np.float32), "w")
    model.graph.initializer.append(weights)
    found = {operation.kind for operation in read_onnx(model).graph.operations if operation.backward}
    assert found - {"Relu"} == backward
