"""Generated inputs are what the operators accept; the user's own are checked."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import parser

from checkmate.core.errors import InputError
from checkmate.io.onnx.read.reader import OnnxModel, read_onnx
from checkmate.io.onnxruntime.inputs import feeds_for
from checkmate.sample_graphs.networks import TINY

HEADER = '<ir_version: 8, opset_import: ["" : 18]>\n'


def model_of(text: str, **sizes: int) -> OnnxModel:
    return read_onnx(parser.parse_model(HEADER + text).SerializeToString(), name="test", dims=sizes)


@pytest.mark.parametrize(
    ("body", "below"),
    [
        ("g (int64[200] i, float[5,3] t) => (float[200,3] z) { z = Gather(t, i) }", 5),
        ("g (int64[200] i, float[5,3] t) => (float[5,200] z) { z = Gather<axis=1>(t, i) }", 3),
        (
            "g (int64[200] i, float[200,7] t) => (float[200,1] z) "
            "{ a = Constant<value_ints=[1]>() u = Unsqueeze(i, a) z = GatherElements<axis=-1>(t, u) }",
            7,
        ),
        ("g (int32[200] i, float[4,3] t) => (float[200,3] z) { u = Cast<to=7>(i) z = Gather(t, u) }", 4),
        ("g (int64[200] i, float[200,6] t) => (float z) { z = SoftmaxCrossEntropyLoss(t, i) }", 6),
        ("g (int64[200] i, float[2] t) => (float[200,9] z) { d = Constant<value_int=9>() z = OneHot(i, d, t) }", 9),
        ("g (int64[200,2] i, float[8,3,5] t) => (float[200,5] z) { z = GatherND(t, i) }", 3),
        ("g (int64[200] i, float[9,3] t, float[4,3] s) => (float[200,3] y, float[200,3] z) { y = Gather(t, i) z = Gather(s, i) }", 4),
        ("g (int64[200] i, int64[200] t) => (int64[200] z) { z = Add(i, t) }", 2),
    ],
)
def test_indices_and_labels_stay_below_what_every_use_allows(body: str, below: int) -> None:
    element, numbers = feeds_for(model_of(body))["i"]
    assert (numbers.min(), numbers.max()) == (0, below - 1), "and all of the range is used"
    assert numbers.dtype == {6: np.int32, 7: np.int64}[element]


def test_types_and_shapes_are_the_models_and_the_seed_decides() -> None:
    model = model_of("g (float[n,2] a, float16[3] b, bool[4] c, uint8[n] d) => (float[n,2] z) { z = Relu(a) }", n=6)
    feeds = feeds_for(model)
    assert {name: (array.dtype, array.shape) for name, (_, array) in feeds.items()} == {
        "a": (np.float32, (6, 2)),
        "b": (np.float16, (3,)),
        "c": (np.bool_, (4,)),
        "d": (np.uint8, (6,)),
    }
    again, other = feeds_for(model), feeds_for(model, seed=1)
    np.testing.assert_array_equal(again["a"][1], feeds["a"][1])
    assert not np.array_equal(other["a"][1], feeds["a"][1])


def test_bfloat16_travels_as_its_upper_bits() -> None:
    element, bits = feeds_for(model_of("g (bfloat16[500] a) => (bfloat16[500] z) { z = Identity(a) }"))["a"]
    numbers = (bits.astype(np.uint32) << 16).view(np.float32)
    assert element == onnx.TensorProto.BFLOAT16
    assert 0.3 < numbers.std() < 0.7


def test_what_must_be_positive_is() -> None:
    body = "g (float[2,3] x, float[3] s, float[3] b, float[3] m, float[3] v, float[50] w) => (float[2,3] y, float[50] z) {"
    feeds = feeds_for(model_of(body + " y = BatchNormalization(x, s, b, m, v) z = Sqrt(w) }"))
    assert feeds["v"][1].min() > 0
    assert feeds["w"][1].min() > 0


def test_what_decides_shapes_cannot_be_made_up(tmp_path: Path) -> None:
    model = model_of("g (float[6] x, int64[2] s) => (float[2,3] z) <float[2,3] y> { [fold] z = Reshape(x, s) }")
    with pytest.raises(InputError, match=r"input 's' determines shapes in node 'fold'.*--inputs"):
        feeds_for(model)
    np.savez(tmp_path / "i.npz", s=np.array([2, 3]))
    assert feeds_for(model, tmp_path / "i.npz")["s"][1].tolist() == [2, 3]


@pytest.mark.parametrize("name", TINY)
def test_every_sample_can_be_fed(name: str) -> None:
    model = read_onnx(TINY[name]().SerializeToString(), name=name)
    assert list(feeds_for(model)) == [value.name for value in model.proto.graph.input]


def test_what_the_user_gives_is_checked_and_the_rest_generated(tmp_path: Path) -> None:
    model = model_of("g (float[2,3] a, int64[4] b) => (float[2,3] z) { z = Relu(a) }")
    path = tmp_path / "inputs.npz"
    mine = np.full((2, 3), 7, np.float32)
    np.savez(path, a=mine)
    feeds = feeds_for(model, path)
    np.testing.assert_array_equal(feeds["a"][1], mine)
    assert feeds["b"][1].shape == (4,)
    for arrays, words in (
        ({"a": mine.astype(np.float64)}, "input 'a' is float64, but the model takes float32"),
        ({"a": mine[0]}, r"input 'a' has shape \[3\], but the model takes \[2, 3\]"),
        ({"q": mine}, "the model has no input 'q'; its inputs are a, b"),
    ):
        np.savez(path, **arrays)
        with pytest.raises(InputError, match=words):
            feeds_for(model, path)


@pytest.mark.parametrize("content", [b"", b"not a zip", b"PK\x03\x04 cut off"])
def test_a_file_that_is_no_npz_is_bad_input(tmp_path: Path, content: bytes) -> None:
    model = model_of("g (float[2,3] a) => (float[2,3] z) { z = Relu(a) }")
    (tmp_path / "x.npz").write_bytes(content)
    with pytest.raises(InputError, match=r"x\.npz: not an \.npz file"):
        feeds_for(model, tmp_path / "x.npz")
    with pytest.raises(InputError, match=r"y\.npz: cannot be read"):
        feeds_for(model, tmp_path / "y.npz")


def test_arrays_of_objects_are_never_unpickled(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", a=np.array([{}], dtype=object))
    with pytest.raises(InputError, match="plain arrays"):
        feeds_for(model_of("g (float[1] a) => (float[1] z) { z = Relu(a) }"), tmp_path / "x.npz")
