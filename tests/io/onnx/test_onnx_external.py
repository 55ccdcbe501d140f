"""Saving a model with its weights in files of their own: references are kept, files come along, nothing is loaded or overwritten."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from checkmate.core.errors import InputError
from checkmate.core.schedule.schedule import Action, Schedule, Step
from checkmate.io.onnx.compile.writer import compile_model
from checkmate.io.onnx.proto.external import external_copies, external_locations, save_model
from checkmate.io.onnx.read.reader import read_onnx

WEIGHTS = np.arange(6, dtype=np.float32)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A model with one tensor in `data/weights.bin` and one, of a Constant node in a subgraph, in `more.bin`."""
    folder = tmp_path / "source"
    (folder / "data").mkdir(parents=True)
    weights = _external("w", "data/weights.bin", folder)
    inner = helper.make_node("Constant", [], ["i"], value=_external("", "more.bin", folder))
    info = helper.make_tensor_value_info
    then = helper.make_graph([inner], "then", [], [info("i", TensorProto.FLOAT, [6])])
    other = helper.make_graph([helper.make_node("Identity", ["a"], ["j"])], "else", [], [info("j", TensorProto.FLOAT, [6])])
    nodes = [
        helper.make_node("Add", ["x", "w"], ["a"], "add"),
        helper.make_node("If", ["yes"], ["b"], "branch", then_branch=then, else_branch=other),
        helper.make_node("Mul", ["a", "b"], ["z"], "mul"),
    ]
    inputs = [info("x", TensorProto.FLOAT, [6]), info("yes", TensorProto.BOOL, [])]
    graph = helper.make_graph(nodes, "g", inputs, [info("z", TensorProto.FLOAT, [6])], [weights])
    path = folder / "model.onnx"
    path.write_bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8).SerializeToString())
    onnx.checker.check_model(str(path), full_check=True)
    return path


def _external(name: str, location: str, folder: Path) -> onnx.TensorProto:
    tensor = numpy_helper.from_array(WEIGHTS, name)
    (folder / location).write_bytes(tensor.raw_data)
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value=location)
    return tensor


def compiled(source: Path) -> onnx.ModelProto:
    model = read_onnx(source)
    order = [0, 0, 1, 0, 2]
    return compile_model(model, Schedule(tuple(Step(Action.COMPUTE, index) for index in order)))


def values(path: Path) -> list[float]:
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    (z,) = session.run(None, {"x": np.ones(6, np.float32), "yes": np.array(True)})
    return [float(number) for number in z]


def test_beside_the_original_there_is_nothing_to_copy(source: Path) -> None:
    before = sorted(source.parent.rglob("*"))
    target = source.with_name("model.remat.onnx")
    assert save_model(compiled(source), target, source) == (target,)
    assert sorted(source.parent.rglob("*")) == sorted([*before, target])
    onnx.checker.check_model(str(target), full_check=True)
    assert values(target) == values(source)


def test_into_another_folder_the_data_comes_along_under_the_name_of_the_output(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "elsewhere" / "new.onnx"
    target.parent.mkdir()
    proto = compiled(source)
    data = (target.with_name("new.onnx.0.data"), target.with_name("new.onnx.1.data"))
    assert save_model(proto, target, source) == (*data, target)
    assert sorted(map(str, external_locations(proto))) == ["data/weights.bin", "more.bin"], "the model in memory is not changed"
    for folder in (source.parent, target.parent):
        onnx.load(str(next(folder.glob("*.onnx"))))
    onnx.checker.check_model(str(target), full_check=True)
    assert values(target) == values(source)
    assert save_model(proto, target, source) == (target,), "what is there already is not copied again"
    assert sorted(target.parent.rglob("*")) == sorted((*data, target))


@pytest.mark.parametrize("name", [".bashrc", "sub/.profile", "new.onnx"])
def test_a_model_cannot_place_files_under_names_of_its_choice(tmp_path: Path, name: str) -> None:
    folder, target = tmp_path / "source", tmp_path / "elsewhere" / "new.onnx"
    (folder / name).parent.mkdir(parents=True)
    target.parent.mkdir()
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("Add", ["x", "w"], ["z"])],
        "g",
        [info("x", TensorProto.FLOAT, [6])],
        [info("z", TensorProto.FLOAT, [6])],
        [_external("w", name, folder)],
    )
    path = folder / "model.onnx"
    path.write_bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8).SerializeToString())
    save_model(read_onnx(path).proto, target, path)
    assert {found.name for found in target.parent.rglob("*")} == {"new.onnx", "new.onnx.data"}
    onnx.checker.check_model(str(target), full_check=True)


def test_a_different_file_is_never_overwritten(source: Path, tmp_path: Path) -> None:
    (tmp_path / "new.onnx.1.data").write_bytes(b"precious")
    with pytest.raises(InputError, match="a different file exists"):
        save_model(compiled(source), tmp_path / "new.onnx", source)
    assert (tmp_path / "new.onnx.1.data").read_bytes() == b"precious"
    assert not (tmp_path / "new.onnx").exists()
    assert not (tmp_path / "new.onnx.0.data").exists()


@pytest.mark.parametrize("linked", ["file", "folder"])
def test_weights_outside_the_folder_are_not_copied_through_a_link(source: Path, tmp_path: Path, linked: str) -> None:
    proto, secret = compiled(source), tmp_path / "secret"
    secret.mkdir()
    (secret / "weights.bin").write_bytes(WEIGHTS.tobytes())
    (source.parent / "data" / "weights.bin").unlink()
    if linked == "file":
        (source.parent / "data" / "weights.bin").symlink_to(secret / "weights.bin")
    else:
        (source.parent / "data").rmdir()
        (source.parent / "data").symlink_to(secret)
    (tmp_path / "elsewhere").mkdir()
    with pytest.raises(InputError, match="it is a link out of it; copy the file there instead"):
        save_model(proto, tmp_path / "elsewhere" / "new.onnx", source)
    assert list((tmp_path / "elsewhere").iterdir()) == []
    assert save_model(proto, source.with_name("new.onnx"), source) == (source.with_name("new.onnx"),), "nothing is copied here"


@pytest.mark.parametrize("name", ["more.bin", "data/weights.bin", "data/../more.bin"])
def test_the_model_is_not_written_over_the_weights(source: Path, name: str) -> None:
    with pytest.raises(InputError, match="holds the weights"):
        save_model(compiled(source), source.parent / name, source)
    assert (source.parent / name).read_bytes() == WEIGHTS.tobytes()


def test_missing_data_is_an_error_only_if_it_has_to_come_along(source: Path, tmp_path: Path) -> None:
    (source.parent / "more.bin").unlink()
    proto = compiled(source)
    assert external_copies(proto, source.with_name("new.onnx"), source) == ()
    with pytest.raises(InputError, match=r"more\.bin is missing"):
        external_copies(proto, tmp_path / "new.onnx", source)


def test_a_place_where_something_else_is(source: Path, tmp_path: Path) -> None:
    (tmp_path / "new.onnx.0.data").mkdir()
    with pytest.raises(InputError, match="cannot copy the weights"):
        save_model(compiled(source), tmp_path / "new.onnx", source)
    assert not (tmp_path / "new.onnx").exists()


def test_without_a_file_there_is_nothing_to_bring_along(source: Path, tmp_path: Path) -> None:
    proto = read_onnx(source.read_bytes(), name="stdin").proto
    assert sorted(map(str, external_locations(proto))) == ["data/weights.bin", "more.bin"]
    assert save_model(proto, tmp_path / "new.onnx", None) == (tmp_path / "new.onnx",)


def test_data_outside_the_folder_is_refused(source: Path, tmp_path: Path) -> None:
    proto = compiled(source)
    proto.graph.initializer[0].external_data[0].value = "../secret"
    with pytest.raises(InputError, match="not inside the model's folder"):
        save_model(proto, tmp_path / "new.onnx", source)
