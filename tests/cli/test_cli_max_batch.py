"""`checkmate max-batch`: known answers, verified schedules, what solve says of the next size, and models that have no size to vary."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import onnx
import pytest
from cli_runs import files_in, interrupted, run, write_chain
from onnx import TensorProto, helper
from places import DOCS

from checkmate.sample_graphs.forward import classifier

DOCUMENTED = (DOCS / "cli.md").read_text(encoding="utf-8")
FAST = ("--strategies", "keep-all,ap-greedy")


@pytest.fixture
def forward(tmp_path: Path) -> Path:
    onnx.save(classifier(size=8, widths=[4, 4], classes=3), str(tmp_path / "forward.onnx"))
    return tmp_path


def elementwise(folder: Path, shape: list[Any], count: int = 4, name: str = "x.onnx") -> Path:
    """Tanh after Tanh, and gradients as a training graph has them: each reads a forward value again."""
    nodes = [helper.make_node("Tanh", [f"v{number}" if number else "x"], [f"v{number + 1}"]) for number in range(count)]
    last = f"v{count}"
    for number in reversed(range(1, count + 1)):
        nodes.append(helper.make_node("Mul", [last, f"v{number}"], [f"grad/v{number}"], f"grad/v{number}"))
        last = f"grad/v{number}"
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)]
    outputs = [helper.make_tensor_value_info(last, TensorProto.FLOAT, None)]
    model = helper.make_model(helper.make_graph(nodes, "g", inputs, outputs), opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    onnx.save(model, str(folder / name))
    return folder / name


def rows(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {row["strategy"]: row for row in document["rows"]}


@pytest.mark.slow
def test_each_answer_is_the_largest_that_solve_accepts(forward: Path) -> None:
    command = ("--loss", "cross-entropy", "--budget", "150kB")
    ran = run(forward, "max-batch", "forward.onnx", *command, *FAST, "--overhead", "30%", "--json")
    assert ran.code == 0, ran.err
    found = ran.json
    assert (found["dimension"], found["budget_bytes"], found["format"]) == ("batch", 150_000, "checkmate-max-batch")
    for strategy, row in rows(found).items():
        assert row["failed_size"] == row["size"] + 1
        for size, fits in ((row["size"], True), (row["failed_size"], False)):
            solved = run(
                forward, "solve", "forward.onnx", *command, "--batch-size", str(size), "--strategy", strategy, "--json", "--no-onnx"
            )
            works = solved.code == 0 and solved.json["overhead"] <= 0.3
            assert works == fits, (strategy, size)
            if fits:
                assert (solved.json["cost"], solved.json["peak_bytes"]) == (row["cost"], row["peak_bytes"])
    assert rows(found)["keep-all"]["ratio"] == 1.0
    assert rows(found)["ap-greedy"]["size"] > rows(found)["keep-all"]["size"]
    keys = {*found, *found["rows"][0]} - {"format", "version"}
    assert [key for key in keys if f"`{key}`" not in DOCUMENTED] == []


@pytest.mark.slow
def test_auto_is_at_least_as_large_as_the_others_and_is_written(forward: Path) -> None:
    ran = run(
        *(forward, "max-batch", "forward.onnx", "--loss", "cross-entropy", "--budget", "110kB", "--time-limit", "1s"),
        *("--strategies", "keep-all,ap-greedy,auto", "-o", "out/", "--json"),
    )
    assert ran.code == 0, ran.err
    found = rows(ran.json)
    assert found["auto"]["size"] >= found["ap-greedy"]["size"] >= found["keep-all"]["size"] > 0
    assert found["auto"]["size"] < ran.json["impossible_size"]
    assert [Path(path).name for path in ran.json["outputs"]] == [
        *("forward.schedule.json", "forward.remat.onnx", "forward.train.onnx", "forward.train.params.npz")
    ]
    schedule = json.loads((forward / "out" / "forward.schedule.json").read_text())
    assert schedule["peak_bytes"] == found["auto"]["peak_bytes"] <= 110_000
    assert run(forward, "verify", "out/forward.train.onnx", "out/forward.schedule.json").code == 0


def test_a_training_graph_and_a_dimension_by_its_name(tmp_path: Path) -> None:
    """Keeping everything takes 4 values, the input and one gradient: 4 bytes each for rows x columns; a barrier takes 1."""
    elementwise(tmp_path, ["rows", "columns"])
    common = (
        "max-batch",
        "x.onnx",
        "--budget",
        "24001",
        "--strategies",
        "keep-all,auto",
        "--costs",
        "unit",
        "--runtime",
        "generic",
        "--json",
    )
    for vary, fixed in (("rows", "columns"), ("columns", "rows")):
        ran = run(tmp_path, *common, "--dim", vary, "--dim", f"{fixed}=10")
        assert ran.code == 0, ran.err
        found = rows(ran.json)
        assert ran.json["dimension"] == vary
        assert found["keep-all"]["size"] == 24000 // (6 * 4 * 10)
        assert found["auto"]["size"] > found["keep-all"]["size"]
        assert found["auto"]["overhead"] <= 0.5


def test_the_table_says_what_comes_next(forward: Path) -> None:
    ran = run(forward, "max-batch", "forward.onnx", "--loss", "cross-entropy", "--budget", "100kB", "--strategies", "keep-all,griewank")
    lines = {line.split()[0]: line for line in ran.out.splitlines() if line.strip()}
    size = int(lines["keep-all"].split()[1])
    assert f"{size + 1}: its schedule does not fit" in lines["keep-all"]
    assert "not a chain" in lines["griewank"]
    assert f"{size}" in lines["largest"]


def test_nothing_fits_at_all(forward: Path) -> None:
    ran = run(forward, "max-batch", "forward.onnx", "--loss", "cross-entropy", "--budget", "1kB", *FAST, "-o", "out/", "--json")
    assert (ran.code, ran.json["status"], ran.json["impossible_size"], ran.json["outputs"]) == (3, "infeasible", 1, [])
    assert {row["size"] for row in ran.json["rows"]} == {0}
    assert "out" not in files_in(forward)


@pytest.mark.slow
def test_a_strategy_that_has_no_size_proves_nothing(forward: Path) -> None:
    ran = run(forward, "max-batch", "forward.onnx", "--loss", "cross-entropy", "--budget", "100kB", "--strategies", "griewank", "--json")
    assert (ran.code, ran.json["status"], ran.json["rows"][0]["size"]) == (4, "unknown", 0)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["chain.json", "--budget", "5"], ["chain.json", "fixed sizes"]),
        (["-", "--budget", "5"], ["give a file"]),
        (["fixed.onnx", "--budget", "5"], ["fixed.onnx", "no input has a free dimension", "x: 3 x 4"]),
        (["x.onnx", "--budget", "50%"], ["--budget 50%", "16GB"]),
        (["x.onnx", "--budget", "5", "--dim", "height"], ["height", "rows"]),
        (["x.onnx", "--budget", "5"], ["columns"]),
        (["x.onnx", "--budget", "5", "--dim", "rows", "--dim", "rows=3"], ["leave out one"]),
        (["x.onnx", "--budget", "5", "--dim", "rows", "--dim", "columns"], ["only one"]),
        (["x.onnx", "--budget", "5", "--overhead", "much"], ["--overhead", "one-forward"]),
        (["forward.onnx", "--budget", "100kB"], ["one-forward", "--loss"]),
        (["x.onnx", "--budget", "5", "-o", "-"], ["--json"]),
    ],
)
def test_a_bad_command_is_one_line(forward: Path, arguments: list[str], words: list[str]) -> None:
    write_chain(forward)
    elementwise(forward, ["rows", "columns"])
    elementwise(forward, [3, 4], name="fixed.onnx")
    ran = run(forward, "max-batch", *arguments, *FAST)
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert [word for word in words if word not in ran.err] == []


def test_a_forward_model_of_fixed_batch_is_given_others(tmp_path: Path) -> None:
    """As `solve --loss --batch-size` does."""
    weight = onnx.numpy_helper.from_array(__import__("numpy").ones((4, 3), "float32"), "w")
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"], "y"), helper.make_node("Relu", ["y"], ["z"], "z")]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4])]
    outputs = [helper.make_tensor_value_info("z", TensorProto.FLOAT, [1, 3])]
    graph = helper.make_graph(nodes, "g", inputs, outputs, [weight])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8), str(tmp_path / "m.onnx"))
    ran = run(tmp_path, "max-batch", "m.onnx", "--loss", "cross-entropy", "--budget", "10kB", "--strategies", "keep-all", "--json")
    assert ran.code == 0, ran.err
    assert ran.json["rows"][0]["size"] > 10


@pytest.mark.slow
def test_ctrl_c_gives_the_largest_so_far(forward: Path) -> None:
    command = ["max-batch", "forward.onnx", "--loss", "cross-entropy", "--budget", "250kB", "--strategies", "keep-all,auto"]
    ran = interrupted(forward, lambda line: "auto: batch" in line, *command, "--time-limit", "10m", "--json")
    assert ran.code == 130
    assert "sizes not tried may work" in ran.err
    assert ran.json["status"] == "interrupted"
    assert rows(ran.json)["keep-all"]["size"] > 0
