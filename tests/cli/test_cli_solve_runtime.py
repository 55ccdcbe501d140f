"""`solve --profile` and `solve --verify`: measured before, run afterwards."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path

import numpy as np
import pytest
from cli_runs import files_in, run, write_chain
from onnx import TensorProto, helper, numpy_helper

SAMPLES = resources.files("checkmate.sample_graphs")


def write_forward(folder: Path) -> None:
    """Four dense layers with weights in the file, of any batch size."""
    random = np.random.default_rng(0)
    nodes, weights, x = [], [], "x"
    for layer in range(4):
        weights.append(numpy_helper.from_array(random.normal(0, 0.1, (16, 16)).astype(np.float32), f"w{layer}"))
        nodes.append(helper.make_node("MatMul", [x, f"w{layer}"], [f"m{layer}"], name=f"product{layer}"))
        nodes.append(helper.make_node("Tanh", [f"m{layer}"], [f"t{layer}"], name=f"tanh{layer}"))
        x = f"t{layer}"
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 16]) for name in ("x", x)]
    graph = helper.make_graph(nodes, "forward", ends[:1], ends[1:], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    (folder / "forward.onnx").write_bytes(model.SerializeToString())


@pytest.mark.slow
def test_both_in_one_go(tmp_path: Path) -> None:
    (tmp_path / "chain.onnx").write_bytes((SAMPLES / "chain.onnx").read_bytes())
    ran = run(tmp_path, "solve", "chain.onnx", "--budget", "60%", "--strategy", "chen-sqrt", "--profile", "--verify", "--json")
    assert ran.code == 0, ran.out + ran.err
    assert (ran.json["cost_model"], ran.json["cost_unit"]) == ("measured", "s")
    assert ran.json["outputs"] == ["chain.schedule.json", "chain.remat.onnx", "chain.costs.json"]
    checks = {check["name"]: check for check in ran.json["verification"]["checks"]}
    assert {check["status"] for check in checks.values()} == {"passed"}
    assert checks["time"]["predicted_overhead"] == pytest.approx(ran.json["overhead"])
    assert run(tmp_path, "verify", "chain.onnx", "chain.schedule.json", "--costs", "chain.costs.json", "-q").code == 0


@pytest.mark.slow
def test_a_training_graph_made_on_the_way_is_measured_and_run(tmp_path: Path) -> None:
    write_forward(tmp_path)
    arguments = ("--loss", "mse", "--batch-size", "64", "--budget", "101%", "--strategy", "keep-all", "--profile", "--verify", "--json")
    ran = run(tmp_path, "solve", "forward.onnx", *arguments)
    assert ran.code == 0, ran.out + ran.err
    assert {check["name"]: check["status"] for check in ran.json["verification"]["checks"]}["outputs"] == "passed"
    costs = json.loads((tmp_path / "forward.costs.json").read_text())["costs"]
    assert len(costs) > 8, "the backward pass too"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["forward.onnx", "--profile", "--costs", "unit"], "--profile measures the costs"),
        (["forward.onnx", "--verify", "--no-onnx"], "not written with --no-onnx"),
        (["forward.onnx", "--verify", "-o", "-"], "not written with -o -"),
        (["-", "--profile"], "give a file"),
        (["chain.json", "--profile"], "--profile needs a model"),
        (["chain.json", "--verify"], "--verify needs an ONNX model"),
    ],
)
def test_what_cannot_be_is_said_before_anything_is_written(tmp_path: Path, arguments: list[str], words: str) -> None:
    write_forward(tmp_path)
    write_chain(tmp_path)
    ran = run(tmp_path, "solve", *arguments, "--budget", "100%", "--strategy", "keep-all")
    assert ran.code == 2
    assert words in ran.err
    assert len(ran.err.splitlines()) == 1
    assert files_in(tmp_path) == {"forward.onnx", "chain.json"}
