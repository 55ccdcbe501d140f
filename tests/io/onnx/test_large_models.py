"""A model that does not fit into an ONNX file keeps its weights next to it, and is the same model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from cli_runs import run
from onnx import numpy_helper, parser
from small_models import Net, tensor

from checkmate.core.errors import InputError
from checkmate.io.onnx.proto import external, large_models
from checkmate.io.onnx.proto.large_models import with_weights_apart
from checkmate.io.onnx.read.reader import read_onnx


def weighty() -> onnx.ModelProto:
    model = parser.parse_model("""<ir_version: 8, opset_import: ["" : 18], producer_name: "me", metadata_props: ["a": "b"]>
    g (float[2,600] x) => (float[2,500] z) { [a] y = MatMul(x, w) [b] z = Add(y, v) }""")
    random = np.random.default_rng(0)
    for name, shape in (("w", (600, 500)), ("v", (500,)), ("unused", (3,))):
        model.graph.initializer.append(numpy_helper.from_array(random.normal(size=shape).astype(np.float32), name))
    return model


def test_weights_go_into_a_file_next_to_the_model(tmp_path: Path) -> None:
    model = weighty()
    lean, weights = with_weights_apart(model, tmp_path / "m.onnx", limit=10_000)
    assert weights == tmp_path / "m.onnx.weights"
    assert lean.ByteSize() < 2_000
    onnx.save(lean, tmp_path / "m.onnx")
    assert [stored.data_location for stored in lean.graph.initializer] == [1, 1, 0]
    assert onnx.load(tmp_path / "m.onnx").graph.node == model.graph.node
    x = np.ones((2, 600), np.float32)
    made = [onnxruntime.InferenceSession(source).run(None, {"x": x})[0] for source in (model.SerializeToString(), tmp_path / "m.onnx")]
    assert made[0].tobytes() == made[1].tobytes()
    assert read_onnx(tmp_path / "m.onnx").graph.fixed == read_onnx(model).graph.fixed
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.onnx", "m.onnx.weights"]


def test_a_model_that_fits_stays_as_it_is(tmp_path: Path) -> None:
    model = weighty()
    assert with_weights_apart(model, tmp_path / "m.onnx") == (model, None)
    assert with_weights_apart(model, tmp_path / "m.onnx", limit=model.ByteSize()) == (model, None)
    assert with_weights_apart(model, tmp_path / "m.onnx", limit=model.ByteSize() - 100)[1] is not None


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot write"):
        with_weights_apart(weighty(), tmp_path / "file" / "m.onnx", limit=10)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_the_commands_write_such_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(external, "with_weights_apart", lambda model, target: large_models.with_weights_apart(model, target, 100_000))
    onnx.save(weighty(), tmp_path / "model.onnx")
    ran = run(tmp_path, "differentiate", "model.onnx", "--loss", "mse", "--keep-initializers", "-o", "train.onnx")
    assert ran.code == 0, ran.err
    ran = run(tmp_path, "solve", "train.onnx", "--budget", "100%", "-o", "out/", "--json")
    assert ran.code == 0, ran.err
    assert run(tmp_path, "verify", "train.onnx", "out/train.remat.onnx", "--repeat", "1", "-q").code == 0


@pytest.mark.parametrize("mode", ["reflect", "edge", "wrap"])
def test_the_gradient_of_a_padded_signal_needs_no_matrix(mode: str, tmp_path: Path) -> None:
    """basic_pitch's nmp.onnx: 230 KB became 2.6 GB."""
    net = Net()
    net.add("Mul", ["signal", net.weight("gain", 1, 20_000)], "loud")
    net.add("Pad", ["loud", net.whole("pads", 0, 128, 0, 128)], "padded", mode=mode)
    net.add("Tanh", ["padded"], "soft")
    onnx.save(net.model([tensor("signal", 1, 20_000)], [tensor("soft", 1, 20_256)]), tmp_path / "m.onnx")
    ran = run(tmp_path, "differentiate", "m.onnx", "--loss", "mse", "-o", "train.onnx")
    assert ran.code == 0, ran.err
    assert (tmp_path / "train.onnx").stat().st_size < 100_000
