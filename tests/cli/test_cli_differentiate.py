"""`checkmate differentiate`, and `solve --loss` in one go."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from cli_runs import files_in, run
from small_models import Net, cnn, mlp, tensor

from checkmate.io.onnx.gradients import GRADIENTS


def test_writes_the_graph_and_what_it_is_fed(tmp_path: Path) -> None:
    onnx.save(cnn(), str(tmp_path / "cnn.onnx"))
    ran = run(tmp_path, "differentiate", "cnn.onnx", "--loss", "cross-entropy", "--optimizer", "adamw", "--json")
    assert (ran.code, ran.err) == (0, "")
    assert files_in(tmp_path) == {"cnn.onnx", "cnn.train.onnx", "cnn.train.params.npz"}
    fields = ran.json
    assert fields["gradients"]["stem"] == "grad/stem"
    session = onnxruntime.InferenceSession(str(tmp_path / "cnn.train.onnx"), providers=["CPUExecutionProvider"])
    feeds = dict(np.load(tmp_path / "cnn.train.params.npz"))
    feeds |= {"image": np.ones((2, 2, 6, 6), np.float32), "labels": np.asarray([0, 1])}
    assert {value.name for value in session.get_inputs()} == feeds.keys()
    results = dict(zip((value.name for value in session.get_outputs()), session.run(None, feeds), strict=True))
    assert results.keys() == {"loss", *fields["gradients"].values(), *fields["updates"].values()}
    assert np.isfinite(results["loss"])


def test_tells_what_was_made(tmp_path: Path) -> None:
    onnx.save(mlp(), str(tmp_path / "m.onnx"))
    ran = run(tmp_path, "differentiate", "m.onnx", "--loss", "mse", "-o", "out/")
    assert ran.code == 0
    assert [word for word in ("7 forward nodes", "4 trained", "4 gradients", "out/m.train.onnx", "x, targets") if word not in ran.out] == []
    assert files_in(tmp_path / "out") == {"m.train.onnx", "m.train.params.npz"}


def test_lists_operators(tmp_path: Path) -> None:
    ran = run(tmp_path, "differentiate", "--list")
    assert ran.out.split() == sorted(GRADIENTS)
    assert "Attention" in ran.err
    assert run(tmp_path, "differentiate", "--list", "--json").json["operators"] == sorted(GRADIENTS)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], ["missing MODEL", "--list"]),
        (["m.onnx"], ["--loss cross-entropy", "--loss-output"]),
        (["m.onnx", "--loss", "crossentropy"], ["did you mean 'cross-entropy'?"]),
        (["m.onnx", "--loss", "mse", "--loss-output", "y"], ["choose one"]),
        (["m.onnx", "--loss", "mse", "--freeze", "w7"], ["m.onnx: --freeze", "'w7'"]),
        (["m.onnx", "--loss", "mse", "-o", "m.onnx"], ["overwrite the input"]),
        (["m.onnx", "--loss", "mse", "-o", "-"], ["stdout"]),
        (["m.onnx", "--loss", "mse", "--no-gradient-outputs"], ["--optimizer"]),
        (["m.onnx", "--loss", "mse", "--momentum", "2"], ["--momentum", "'2'"]),
        (["hard.onnx", "--loss", "mse"], ["Hardmax", "'z_node'", "--freeze"]),
    ],
)
def test_what_is_wrong_is_one_line(tmp_path: Path, arguments: list[str], words: list[str]) -> None:
    onnx.save(mlp(), str(tmp_path / "m.onnx"))
    net = Net()
    net.add("MatMul", ["x", net.weight("w", 3, 3)], "y")
    net.add("Hardmax", ["y"], "z")
    onnx.save(net.model([tensor("x", 3, 3)], [tensor("z", 3, 3)]), str(tmp_path / "hard.onnx"))
    ran = run(tmp_path, "differentiate", *arguments)
    assert ran.code == 2
    assert ran.err.count("\n") == 1
    assert [word for word in words if word not in ran.err] == []
    assert files_in(tmp_path) == {"m.onnx", "hard.onnx"}


def test_parameters_without_a_gradient_are_told_in_one_line(tmp_path: Path) -> None:
    net = Net()
    net.add("MatMul", ["x", net.weight("w", 3, 2)], "y")
    for number in range(5):
        net.add("MatMul", ["x", net.weight(f"other{number}", 3, 2)], f"z{number}")
    net.add("Ceil", [net.weight("step", 2)], "up")
    net.add("Add", ["y", "up"], "s")
    onnx.save(net.model([tensor("x", 2, 3)], [tensor("s", 2, 2), tensor("z0", 2, 2)]), str(tmp_path / "m.onnx"))
    for arguments in (("differentiate", "m.onnx"), ("solve", "m.onnx", "--budget", "100%", "--strategy", "keep-all")):
        ran = run(tmp_path, *arguments, "--loss", "mse")
        assert ran.code == 0
        assert ran.err.count("\n") == 1
        assert (
            "note: 6 parameters without a gradient: other0, other1, other2 and 2 more (the loss does not depend on them); step (" in ran.err
        )


def test_solve_in_one_go(tmp_path: Path) -> None:
    onnx.save(cnn(), str(tmp_path / "cnn.onnx"))
    arguments = ["--loss", "cross-entropy", "--batch-size", "4", "--budget", "100%", "--strategy", "keep-all"]
    ran = run(tmp_path, "solve", "cnn.onnx", *arguments, "--json")
    assert (ran.code, ran.err) == (0, "")
    expected = {"cnn.onnx", "cnn.schedule.json", "cnn.remat.onnx", "cnn.train.onnx", "cnn.train.params.npz"}
    assert files_in(tmp_path) == expected
    assert set(ran.json["outputs"]) == expected - {"cnn.onnx"}
    assert run(tmp_path, "verify", "cnn.train.onnx", "cnn.schedule.json").code == 0
    feeds = dict(np.load(tmp_path / "cnn.train.params.npz"))
    feeds |= {"image": np.ones((4, 2, 6, 6), np.float32), "labels": np.asarray([0, 1, 2, 0])}
    losses = []
    for name in ("cnn.train.onnx", "cnn.remat.onnx"):
        session = onnxruntime.InferenceSession(str(tmp_path / name), providers=["CPUExecutionProvider"])
        losses.append(float(session.run(["loss"], feeds)[0]))
    assert losses[0] == pytest.approx(losses[1], rel=1e-6)


def test_solving_a_forward_model_says_what_to_add(tmp_path: Path) -> None:
    onnx.save(cnn(), str(tmp_path / "cnn.onnx"))
    ran = run(tmp_path, "solve", "cnn.onnx", "--batch-size", "4", "--budget", "100%", "--strategy", "keep-all")
    assert ran.code == 0
    assert "no backward pass" in ran.err
    assert "--loss cross-entropy" in ran.err
    assert run(tmp_path, "solve", "cnn.onnx", "--budget", "100%", "--freeze", "x").code == 2


def test_external_data_that_is_missing_linked_or_no_file(tmp_path: Path) -> None:
    """Each is one line; a model whose shapes are external too is differentiated like any other."""
    net = Net()
    net.add("MatMul", ["x", net.weight("w", 30, 20)], "h")
    net.add("Reshape", ["h", net.whole("shape", 0, 4, 5)], "y")
    model = net.model([tensor("x", 2, 30)], [onnx.ValueInfoProto(name="y")])
    (tmp_path / "in").mkdir()
    onnx.save(model, str(tmp_path / "in" / "m.onnx"), save_as_external_data=True, location="w.bin", size_threshold=0)
    arguments = ("differentiate", "in/m.onnx", "--loss", "mse", "-q")
    assert run(tmp_path, *arguments).code == 0
    written = {"in", "m.train.onnx", "m.train.params.npz"}
    assert files_in(tmp_path) == written
    data = tmp_path / "in" / "w.bin"
    data.rename(tmp_path / "secret.bin")
    onnx_only = (tmp_path / "in" / "m.onnx").read_bytes()
    for prepare, words in (
        (lambda: None, "'y', made by node 'y_node' (Reshape)"),
        (lambda: data.symlink_to(tmp_path / "secret.bin"), "is not inside the model's folder"),
        (lambda: os.mkfifo(data), "is not a regular file"),
        (lambda: data.write_bytes(b"short"), "external data ends after 5 of"),
        (lambda: (tmp_path / "in" / "m.onnx").write_bytes(onnx_only.replace(b"w.bin", b"w\0bin")), "is not inside the model's folder"),
    ):
        data.unlink(missing_ok=True)
        prepare()
        ran = run(tmp_path, *arguments)
        assert (ran.code, ran.err.count("\n")) == (2, 1)
        assert words in ran.err
    assert files_in(tmp_path) == {*written, "secret.bin"}
