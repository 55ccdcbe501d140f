"""`checkmate profile`: what it writes is what `solve --costs` reads."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import pytest
from cli_runs import files_in, run, write_chain
from onnx import TensorProto, helper

from checkmate.io.formats.costs_json import match_costs, read_costs
from checkmate.io.onnx.read.reader import read_onnx
from checkmate.io.onnxruntime.pieces import cut, piece_of
from checkmate.sample_graphs.networks import TINY


@pytest.fixture
def unet(tmp_path: Path) -> Path:
    (tmp_path / "unet.onnx").write_bytes(TINY["unet"]().SerializeToString())
    return tmp_path


def test_every_operation_is_measured_and_solve_reads_it(unet: Path) -> None:
    ran = run(unet, "profile", "unet.onnx", "--repeat", "3", "--threads", "1", "-o", "costs.json", "--json")
    assert ran.code == 0, ran.err
    graph = read_onnx(unet / "unet.onnx").graph
    file = read_costs(unet / "costs.json")
    priced, costs = match_costs(graph, file)
    assert set(file.costs) == {operation.name for operation in graph.operations if not operation.view}
    assert costs.unit == "s"
    assert all(amount > 0 for amount in costs.amounts)
    assert "1 threads, shortest of 3 runs" in file.comment
    assert (ran.json["threads"], ran.json["pieces"], ran.json["operations"]) == (1, 1, len(file.costs))
    if ran.json["workspace_measured"]:
        assert any(operation.workspace for operation in priced.operations), "convolutions take workspace"
    solved = run(unet, "solve", "unet.onnx", "--costs", "costs.json", "--budget", "100%", "--strategy", "keep-all", "--json")
    assert solved.json["cost_model"] == "measured", solved.out


def test_a_model_too_large_is_profiled_in_pieces(unet: Path) -> None:
    ran = run(unet, "profile", "unet.onnx", "--repeat", "1", "--memory", "6kB", "--json")
    assert ran.code == 0, ran.err
    assert ran.json["pieces"] > 1
    graph = read_onnx(unet / "unet.onnx").graph
    assert set(read_costs(unet / "unet.costs.json").costs) == {operation.name for operation in graph.operations if not operation.view}


@pytest.mark.parametrize("name", TINY)
@pytest.mark.parametrize("limit", [0, 300, 10**9])
def test_pieces_are_sound_models_that_hold_every_node_once(name: str, limit: int) -> None:
    model = read_onnx(TINY[name]().SerializeToString(), name=name)
    runs = cut(model, limit)
    assert [node.name for run in runs for node in run] == [node.name for node in model.proto.graph.node]
    count = len(model.proto.graph.node)
    assert {0: len(runs) == count, 300: 1 < len(runs) <= count, 10**9: len(runs) == 1}[limit]
    for nodes in runs:
        piece = piece_of(model, nodes)
        onnx.checker.check_model(piece.model, full_check=True)
        assert set(piece.inputs) == {value.name for value in piece.model.graph.input}


def test_missing_weights_are_generated(tmp_path: Path) -> None:
    weight = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[64, 64], data_location=TensorProto.EXTERNAL)
    for key, value in (("location", "nowhere.bin"), ("offset", "0"), ("length", str(64 * 64 * 4))):
        weight.external_data.add(key=key, value=value)
    inputs, outputs = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [8, 64]) for name in ("x", "z"))
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["z"], name="product")], "g", [inputs], [outputs], [weight])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    (tmp_path / "model.onnx").write_bytes(model.SerializeToString())
    for limit in ("1GB", "1kB"):
        ran = run(tmp_path, "profile", "model.onnx", "--repeat", "1", "--memory", limit, "-o", "-")
        assert ran.code == 0, ran.err
        assert list(json.loads(ran.out)["costs"]) == ["product"]


def test_a_gpu_that_is_not_there_is_exit_5_in_one_line(unet: Path) -> None:
    ran = run(unet, "profile", "unet.onnx", "--provider", "cuda")
    assert ran.code == 5
    assert ran.err == "error: this onnxruntime cannot run on cuda, only on cpu; install onnxruntime-gpu\n"
    assert files_in(unet) == {"unet.onnx"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["chain.json"], "only models can be profiled"),
        (["nothing.onnx"], "nothing.onnx"),
        (["unet.onnx", "--provider", "cud"], "did you mean 'cuda'?"),
        (["unet.onnx", "-o", "unet.onnx"], "overwrite the input"),
        (["unet.onnx", "-o", "-", "--json"], "both write to stdout"),
        (["unet.onnx", "--memory", "1kB", "--inputs", "x.npz"], "in pieces cannot use --inputs"),
    ],
)
def test_bad_input_is_one_line(unet: Path, arguments: list[str], words: str) -> None:
    write_chain(unet)
    ran = run(unet, "profile", *arguments)
    assert ran.code == 2
    assert words in ran.err
    assert len(ran.err.splitlines()) == 1
