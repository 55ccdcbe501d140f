"""Sizes: from inference, from shapes computed inside the graph, from value_info; and what is said when none of them helps."""

from __future__ import annotations

import pytest
from onnx import TensorProto, ValueInfoProto, helper, parser

from checkmate.core.errors import InputError
from checkmate.io.onnx.read.reader import OnnxModel, read_onnx


def read(text: str, opset: int = 18, **options: object) -> OnnxModel:
    proto = parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}, "custom" : 1]> g {text}')
    return read_onnx(proto.SerializeToString(), **options)  # type: ignore[arg-type]


def sizes(model: OnnxModel) -> dict[str, int]:
    return {value.name: value.bytes for value in model.graph.values}


def test_a_reshape_to_a_shape_computed_in_the_graph() -> None:
    """What torch writes for x.view(x.size(0), -1)."""
    model = read(
        """(float[N,4,6] x) => (y) <int64 zero = {0}, int64[1] axis = {0}, int64[1] rest = {-1}> {
        h = Relu(x)
        s = Shape(h) n = Gather(s, zero) m = Unsqueeze(n, axis) to = Concat<axis=0>(m, rest)
        v = Reshape(h, to) y = Relu(v) }""",
        batch_size=3,
    )
    assert sizes(model)["y"] == 3 * 4 * 6 * 4


def test_an_expand_by_where_equal_and_constant_of_shape() -> None:
    """What torch writes for x.expand(-1, 7): onnx's own data propagation does not know these operators."""
    model = read(
        """(float[N,1] x) => (y) <int64[1] two = {2}, int64[2] wish = {-1, 7}, int64[2] minus = {-1, -1}> {
        ones = ConstantOfShape<value = int64[1] {1}>(two)
        any = Equal(wish, minus)
        to = Where(any, ones, wish)
        y = Expand(x, to) }""",
        batch_size=3,
    )
    assert sizes(model)["y"] == 3 * 7 * 4


def test_a_range_a_tile_and_a_slice_by_computed_numbers() -> None:
    model = read(
        """(float[N,12] x) => (y, t, r) <int64 zero = {0}, int64 one = {1}, int64[1] first = {0}, int64 half = {2}, int64[1] ax = {0}> {
        s = Shape<start = 1>(x) n = Squeeze(s) h = Div(n, half) end = Unsqueeze(h, ax)
        r = Range(zero, h, one)
        y = Slice(x, first, end, end_axis)
        end_axis = Constant<value_ints = [1]>()
        reps = Concat<axis=0>(end, end)
        t = Tile(x, reps) }""",
        batch_size=2,
    )
    assert sizes(model)["r"] == 6 * 8
    assert sizes(model)["y"] == 2 * 6 * 4
    assert sizes(model)["t"] == 12 * 72 * 4


def test_the_indices_of_known_numbers_are_known() -> None:
    model = read(
        """(float one) => (y) <int64[5] k = {0, 3, 0, 1, 1}, int64[1] a = {0}> {
        i = NonZero(k) z = Size(i) s = Unsqueeze(z, a) y = Expand(one, s) }"""
    )
    assert sizes(model)["i"] == 3 * 8
    assert sizes(model)["y"] == 3 * 4


def test_numbers_are_not_followed_into_large_tensors() -> None:
    """A hostile constant must not make us allocate what it describes."""
    model = read(f"(float[4] x) => (y) <int64[2] k = {{{2**20}, {2**20}}}> {{ y = ConstantOfShape(k) }}")
    assert sizes(model)["y"] == 2**42


def test_size_of_a_data_dependent_shape_from_value_info() -> None:
    text = "(float[4,5] x) => (y) <{info}> {{ [find] i = NonZero(x) y = Transpose(i) }}"
    assert sizes(read(text.format(info="int64[2,20] i"))) == {"i": 320, "y": 320}
    assert sizes(read(text.format(info="int64[2,found] i"), dims={"found": 3})) == {"i": 48, "y": 48}
    with pytest.raises(InputError) as caught:
        read(text.format(info="int64[2,found] i"))
    assert str(caught.value) == (
        "the size of tensor 'i', made by node 'find' (NonZero), is unknown: its shape is 2 x found; give --dim found=..."
    )
    with pytest.raises(InputError) as caught:
        read(text.format(info="int64[2,20] unrelated"))
    assert str(caught.value) == (
        "the size of tensor 'i', made by node 'find' (NonZero), is unknown: its shape 2 x ? depends on the data; "
        "add value_info with its shape to the model"
    )


def test_an_operator_of_a_custom_domain_has_its_sizes_from_value_info() -> None:
    text = """(float[N,5] x) => (float[N,2] y) <{info}, float[3,2] w = {{0, 0, 0, 0, 0, 0}}> {{
        [mine] h, k = custom.Thing(x) y = MatMul(h, w) }}"""
    model = read(text.format(info="float[N,3] h, int8[N] k"), batch_size=4)
    assert sizes(model) == {"h": 48, "k": 4, "y": 32}
    thing = model.graph.operations[0]
    assert (thing.kind, thing.work.flops, thing.work.moved_bytes, thing.pinned) == ("custom.Thing", None, 80 + 48 + 4, False)
    with pytest.raises(InputError) as caught:
        read(text.format(info="float[N,3] h"), batch_size=4)
    assert "'k', made by node 'mine' (custom.Thing)" in str(caught.value)
    assert "value_info" in str(caught.value)


def test_value_info_for_another_batch_size_does_not_matter() -> None:
    text = "(float[N,3] x) => (float[1,3] y) <float[1,3] h> { h = Relu(x) y = Relu(h) }"
    assert sizes(read(text, batch_size=5)) == {"h": 60, "y": 60}


def test_value_info_of_the_wrong_rank_does_not_matter() -> None:
    assert sizes(read("(float[2,3] x) => (float[7] y) <float[4,4,4] h> { h = Relu(x) y = Relu(h) }")) == {"h": 24, "y": 24}


def test_a_size_written_into_the_model_contradicts_the_one_given() -> None:
    text = "(float[N,3,2] x) => (y) <float[1,6] h, int64[2] s = {1, 6}> { [flat] h = Reshape(x, s) y = Relu(h) }"
    assert sizes(read(text, batch_size=1))["y"] == 24
    with pytest.raises(InputError) as caught:
        read(text, batch_size=4)
    assert str(caught.value) == (
        "node 'flat' (Reshape) cannot make 'h' with these sizes: a tensor of 4 x 3 x 2 cannot be reshaped to 1 x 6; "
        "check --dim and --batch-size"
    )


def test_inputs_that_do_not_fit_are_reported_with_their_node() -> None:
    with pytest.raises(InputError, match=r"node 'mm' \(MatMul\) cannot make 'y': Incompatible dimensions.*correct the model"):
        read("(float[2,3] x, float[4,5] w) => (y) { [mm] y = MatMul(x, w) }")


def test_an_image_too_small_for_its_kernel() -> None:
    with pytest.raises(InputError, match=r"'y', made by node 'c' \(Conv\).*1 x 1 x -2 x -2.*too small"):
        read("(float[1,1,4,4] x, float[1,1,7,7] w) => (y) { [c] y = Conv(x, w) }")


def test_an_operator_this_onnx_does_not_know() -> None:
    text = "(float[4] x) => (y) <{info}> {{ [g] h = ReluGrad(x) y = Relu(h) }}"
    assert sizes(read(text.format(info="float[4] h"))) == {"h": 16, "y": 16}
    with pytest.raises(InputError, match=r"'h', made by node 'g' \(ReluGrad\), is unknown: neither onnx nor the file has its type"):
        read(text.format(info="float[4] unrelated"))


@pytest.mark.parametrize(
    ("text", "opset"),
    [
        ("y = GroupNormalization<num_groups = 2>(x, s, s)", 21),
        ("y = MeanVarianceNormalization(x)", 13),
        ("y, m = Dropout(x)", 7),
        ("m = GreaterOrEqual(x, x) y = Cast<to = 1>(m)", 12),
    ],
)
def test_standard_operators_onnx_infers_only_partly(text: str, opset: int) -> None:
    assert sizes(read(f"(float[2,4,5] x, float[4] s) => (y) {{ {text} }}", opset))["y"] == 160


def test_a_deprecated_operator_is_inferred_by_its_last_version() -> None:
    model = read("(float[1,1,2,2] x) => (y) <float[4] k = {1, 1, 3, 3}> { y = Upsample(x, k) }", 11)
    assert sizes(model) == {"y": 144}


def test_sequences_whose_content_is_known() -> None:
    model = read(
        """(float[2,3] a, float[2,4] b) => (y) <int64 at = {0}> {
        s = SequenceConstruct(a, b) t = SequenceInsert(s, a) c = ConcatFromSequence<axis=1>(t) e = SequenceAt(s2, at)
        s2 = SplitToSequence<axis=0>(b) y = Relu(c) z = Relu(e) }"""
    )
    assert sizes(model) == {"s": 56, "t": 80, "c": 80, "s2": 32, "e": 16, "y": 80, "z": 16}


def test_optionals_are_views_of_what_they_hold() -> None:
    model = read("(float[2,3] a) => (y) { h = Relu(a) o = Optional(h) g = OptionalGetElement(o) y = Relu(g) }")
    assert [operation.kind for operation in model.graph.operations if operation.view] == ["Optional", "OptionalGetElement"]
    assert sizes(model) == {"h": 24, "o": 24, "g": 24, "y": 24}


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (helper.make_tensor_type_proto(TensorProto.STRING, [3]), "'x' is unknown: it contains strings"),
        (
            helper.make_sequence_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, [3])),
            "'x' is unknown: the contents of this sequence",
        ),
        (helper.make_tensor_type_proto(TensorProto.FLOAT, None), "'x' is unknown: it has no shape; state it in the model"),
    ],
)
def test_graph_inputs_without_a_size(kind: object, words: str) -> None:
    value = ValueInfoProto(name="x", type=kind)  # type: ignore[arg-type]
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "g", [value], [ValueInfoProto(name="y", type=kind)])  # type: ignore[arg-type]
    with pytest.raises(InputError, match=words):
        read_onnx(helper.make_model(graph).SerializeToString())


def test_strings_made_inside() -> None:
    with pytest.raises(InputError, match=r"'s', made by node 'c' \(Cast\), is unknown: it contains strings"):
        read("(float[2] x) => (y) { [c] s = Cast<to = 8>(x) y = Cast<to = 1>(s) }")


def test_stft_is_one_sided_unless_it_says_otherwise() -> None:
    """onnx's inference takes the default of the attribute for 0; onnxruntime makes 9 frequencies of 16 samples."""
    text = "(float[1,128] x) => (y) <int64 step = {8}, int64 length = {16}> { y = STFT<ATTRIBUTE>(x, step, , length) }"
    for attribute, frequencies in (("", 9), ("onesided = 1", 9), ("onesided = 0", 16)):
        chosen = text.replace("<ATTRIBUTE>", f"<{attribute}>" if attribute else "")
        model = read(chosen)
        assert [value.bytes for value in model.graph.values] == [15 * frequencies * 2 * 4]
