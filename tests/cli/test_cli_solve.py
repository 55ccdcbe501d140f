"""`checkmate solve`, end to end on small graphs: answers, files, exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import highspy
import onnx
import pytest
from cli_runs import chain_document, files_in, run, write_chain
from onnx import TensorProto, helper

from checkmate.cli.options.destinations import choose_destinations

PROMISED = {
    *("format", "version", "status", "strategy", "cost", "ideal_cost", "overhead", "bound", "gap", "peak_bytes", "budget_bytes"),
    *("keep_all_peak_bytes", "operations", "recomputed", "seconds", "outputs"),
}


def write_onnx(folder: Path, name: str = "model.onnx", batch: int | str = 4) -> Path:
    """Eight layers forward and something to read them all again, as a backward pass would."""
    nodes = [helper.make_node("Relu", [f"x{index}"], [f"x{index + 1}"], name=f"relu{index}") for index in range(8)]
    nodes += [
        helper.make_node("Add", [f"g{index + 1}" if index < 7 else "x8", f"x{index}"], [f"g{index}"], name=f"grad{index}")
        for index in range(7, 0, -1)
    ]
    shape = [batch, 256]
    graph = helper.make_graph(
        nodes,
        "model",
        [helper.make_tensor_value_info("x0", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("g1", TensorProto.FLOAT, shape)],
    )
    path = folder / name
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
    return path


def test_the_chain_of_eight_layers_within_four_bytes_costs_26(tmp_path: Path) -> None:
    write_chain(tmp_path)
    ran = run(tmp_path, "solve", "chain.json", "--budget", "4", "--json")
    assert ran.code == 0, ran.err
    assert ran.json.keys() >= PROMISED
    assert (ran.json["status"], ran.json["cost"], ran.json["ideal_cost"], ran.json["peak_bytes"]) == ("optimal", 26, 17, 4)
    assert ran.json["recomputed"] == 9
    assert ran.json["gap"] == pytest.approx(0, abs=1e-6)
    assert ran.json["overhead"] == pytest.approx(9 / 17)
    assert ran.json["outputs"] == ["chain.schedule.json"]
    assert ran.err == ""
    assert run(tmp_path, "verify", "chain.json", "chain.schedule.json").code == 0


@pytest.mark.parametrize("formulation", ["paper", "liveness"])
def test_the_model_that_is_written_has_the_same_optimum(tmp_path: Path, formulation: str) -> None:
    write_chain(tmp_path, layers=4)
    for name in ("m.lp", "m.mps"):
        arguments = ("--write-model", name, "--formulation", formulation, "--json")
        ran = run(tmp_path, "solve", "chain.json", "--budget", "4", *arguments)
        assert ran.json["outputs"] == ["chain.schedule.json", name]
        solver = highspy.Highs()
        solver.setOptionValue("output_flag", False)
        assert solver.readModel(str(tmp_path / name)) != highspy.HighsStatus.kError
        solver.run()
        assert solver.getObjectiveValue() == pytest.approx(ran.json["cost"])


def test_a_share_is_of_the_peak_of_keeping_everything_and_its_bytes_are_told(tmp_path: Path) -> None:
    write_chain(tmp_path)
    ran = run(tmp_path, "solve", "chain.json", "--budget", "80%", "--strategy", "ap-sqrt", "--json")
    assert ran.json["keep_all_peak_bytes"] == 10
    assert ran.json["budget_bytes"] == 8
    assert "8 bytes" in run(tmp_path, "solve", "chain.json", "--budget", "80%", "--strategy", "ap-sqrt").out


def test_enough_memory_makes_keeping_everything_optimal_whatever_the_strategy(tmp_path: Path) -> None:
    write_chain(tmp_path)
    ran = run(tmp_path, "solve", "chain.json", "--budget", "100%", "--strategy", "keep-all", "--json")
    assert (ran.json["status"], ran.json["overhead"], ran.json["gap"]) == ("optimal", 0, 0)


def test_infeasible_is_exit_3_with_the_smallest_budget_and_what_binds(tmp_path: Path) -> None:
    write_chain(tmp_path)
    ran = run(tmp_path, "solve", "chain.json", "--budget", "2", "--json")
    assert ran.code == 3
    assert ran.json["status"] == "infeasible"
    assert ran.json["smallest_budget_bytes"] == 3
    assert ran.json["works_at_bytes"] == 3
    assert ran.err.endswith("this works: checkmate solve chain.json --budget 3 --json\n")
    assert ran.json["binding_operation"].startswith("op")
    assert "3 bytes" in ran.err
    assert ran.json["binding_operation"] in ran.err
    assert ran.err.count("\n") == 1
    assert files_in(tmp_path) == {"chain.json"}


def test_infeasible_above_the_floor_is_proven_by_the_solver(tmp_path: Path) -> None:
    """Nothing takes more than 4 bytes with what is wanted at the same time, but in this order p2 must be kept while q is made: 5 bytes."""
    operations = [
        {"name": "large", "bytes": 3, "cost": 1},
        {"name": "p", "inputs": ["large"], "bytes": 1, "cost": 1},
        {"name": "p2", "inputs": ["p"], "bytes": 1, "cost": 1},
        {"name": "q", "inputs": ["large"], "bytes": 1, "cost": 1},
        {"name": "q2", "inputs": ["q"], "bytes": 1, "cost": 1},
        {"name": "sum", "inputs": ["p2", "q2"], "bytes": 1, "cost": 1},
    ]
    document = {"format": "checkmate-graph", "version": 1, "outputs": ["sum"], "operations": operations}
    (tmp_path / "g.json").write_text(json.dumps(document))
    assert run(tmp_path, "inspect", "g.json", "--json").json["smallest_budget_bytes"] == 4
    ran = run(tmp_path, "solve", "g.json", "--budget", "4", "--order", "given", "--json")
    assert ran.code == 3
    assert ran.json["smallest_budget_bytes"] == 5
    assert ran.json["works_at_bytes"] == 5
    assert ran.err.count("\n") == 1
    assert files_in(tmp_path) == {"g.json"}


def test_the_floor_counts_what_the_last_input_is_made_beside(tmp_path: Path) -> None:
    """Whichever of p and q is made last, the other is kept beside it and what it is made of."""
    operations = [
        {"name": "large", "bytes": 3, "cost": 1},
        {"name": "p", "inputs": ["large"], "bytes": 1, "cost": 1},
        {"name": "q", "inputs": ["large"], "bytes": 1, "cost": 1},
        {"name": "sum", "inputs": ["p", "q"], "bytes": 1, "cost": 1},
    ]
    document = {"format": "checkmate-graph", "version": 1, "outputs": ["sum"], "operations": operations}
    (tmp_path / "g.json").write_text(json.dumps(document))
    ran = run(tmp_path, "solve", "g.json", "--budget", "4", "--json")
    assert (ran.code, ran.json["smallest_budget_bytes"], ran.json["works_at_bytes"]) == (3, 5, 5)
    assert ran.json["binding_reason"] == "making the last of its inputs beside the others"


def test_a_baseline_that_does_not_fit_is_exit_4_with_its_peak_and_advice(tmp_path: Path) -> None:
    write_chain(tmp_path)
    ran = run(tmp_path, "solve", "chain.json", "--budget", "5", "--strategy", "keep-all", "--json")
    assert ran.code == 4
    assert ran.json["status"] == "unknown"
    for word in ("strategy keep-all", "10 bytes", "try --strategy auto"):
        assert word in ran.err
    assert ran.err.endswith("this works: checkmate solve chain.json --budget 10 --strategy keep-all --json\n")
    assert run(tmp_path, "solve", "chain.json", "--budget=5", "--strategy", "keep-all").err.endswith("--budget=10 --strategy keep-all\n")
    assert run(tmp_path, "solve", "chain.json", "--strategy", "keep-all", CHECKMATE_BUDGET="5").err.endswith("; --budget 10 works\n")
    assert files_in(tmp_path) == {"chain.json"}


def test_a_strategy_that_does_not_apply_is_exit_4_and_says_why(tmp_path: Path) -> None:
    document = chain_document(4)
    document["operations"][3]["inputs"].append("op1")
    (tmp_path / "g.json").write_text(json.dumps(document))
    ran = run(tmp_path, "solve", "g.json", "--budget", "5", "--strategy", "griewank")
    assert ran.code == 4
    assert "not a chain" in ran.err


@pytest.mark.parametrize(
    ("source", "output", "schedule", "model"),
    [
        ("in/model.onnx", None, "model.schedule.json", "model.remat.onnx"),
        ("in/my.graph.json", None, "my.graph.schedule.json", "my.graph.remat.onnx"),
        ("-", None, "graph.schedule.json", "graph.remat.onnx"),
        ("model.onnx", "out/", "out/model.schedule.json", "out/model.remat.onnx"),
        ("model.onnx", "here", "here/model.schedule.json", "here/model.remat.onnx"),
        ("model.onnx", "a/b.json", "a/b.json", "a/b.remat.onnx"),
        ("model.onnx", "b.schedule.json", "b.schedule.json", "b.remat.onnx"),
        ("model.onnx", "b.onnx", "b.schedule.json", "b.onnx"),
        ("model.onnx", "b.remat.onnx", "b.schedule.json", "b.remat.onnx"),
        ("model.onnx", "a/prefix", "a/prefix.schedule.json", "a/prefix.remat.onnx"),
        ("model.onnx", "/dev/null", "/dev/null", None),
    ],
)
def test_where_files_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, output: str | None, schedule: str, model: str | None
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here").mkdir()
    found = choose_destinations(source, output)
    assert found.schedule == Path(schedule)
    assert found.model == (None if model is None else Path(model))


def test_an_onnx_model_becomes_a_schedule_and_a_model(tmp_path: Path) -> None:
    write_onnx(tmp_path, batch="n")
    arguments = ("--dim", "n=4", "--budget", "70%", "--strategy", "ap-greedy", "-o", "new/folder/", "--json")
    ran = run(tmp_path, "solve", "model.onnx", *arguments)
    assert ran.code == 0, ran.err
    assert ran.json["outputs"] == ["new/folder/model.schedule.json", "new/folder/model.remat.onnx"]
    assert files_in(tmp_path / "new" / "folder") == {"model.schedule.json", "model.remat.onnx"}
    compiled = onnx.load(tmp_path / "new" / "folder" / "model.remat.onnx")
    onnx.checker.check_model(compiled)
    computed = [node for node in compiled.graph.node if not node.name.startswith("checkmate/")]
    assert len(computed) == ran.json["operations"] + ran.json["recomputed"]
    assert {entry.key: entry.value for entry in compiled.metadata_props}["checkmate.budget_bytes"] == str(ran.json["budget_bytes"])
    assert run(tmp_path, "verify", "model.onnx", "new/folder/model.schedule.json", "--batch-size", "4").code == 0


def test_no_onnx_writes_the_schedule_only(tmp_path: Path) -> None:
    write_onnx(tmp_path)
    assert run(tmp_path, "solve", "model.onnx", "--budget", "100%", "--no-onnx").code == 0
    assert files_in(tmp_path) == {"model.onnx", "model.schedule.json"}


def test_a_dash_writes_the_schedule_to_stdout_and_the_summary_to_stderr(tmp_path: Path) -> None:
    graph = write_chain(tmp_path).read_bytes()
    ran = run(tmp_path, "solve", "-", "--budget", "6", "--strategy", "ap-sqrt", "-o", "-", stdin=graph)
    assert ran.code == 0
    assert ran.json["format"] == "checkmate-schedule"
    assert "status" in ran.err
    assert files_in(tmp_path) == {"chain.json"}
    assert run(tmp_path, "verify", "chain.json", "-", stdin=ran.out.encode()).code == 0


def test_json_and_a_dash_cannot_share_stdout(tmp_path: Path) -> None:
    write_chain(tmp_path)
    ran = run(tmp_path, "solve", "chain.json", "--budget", "5", "--json", "-o", "-")
    assert ran.code == 2
    assert "both write to stdout" in ran.err


def test_the_input_is_never_overwritten(tmp_path: Path) -> None:
    path = write_chain(tmp_path)
    before = path.read_bytes()
    (tmp_path / "link.json").symlink_to(path)
    for output in ("chain.json", "./chain.json", str(path), "link.json"):
        ran = run(tmp_path, "solve", "chain.json", "--budget", "5", "-o", output)
        assert ran.code == 2
        assert "overwrite the input" in ran.err
    assert path.read_bytes() == before


def test_a_place_that_cannot_be_written_is_found_before_the_graph_is_even_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    ran = run(tmp_path, "solve", "nowhere.json", "--budget", "5", "-o", "file/out.json")
    assert ran.code == 2
    assert "file/out.json" in ran.err
    assert "nowhere" not in ran.err


def test_equal_runs_write_equal_bytes_but_for_the_run_block(tmp_path: Path) -> None:
    write_chain(tmp_path, layers=5)
    documents = []
    for name in ("one.json", "two.json"):
        assert run(tmp_path, "solve", "chain.json", "--budget", "4", "-o", name).code == 0
        document = json.loads((tmp_path / name).read_text())
        del document["run"]
        documents.append(json.dumps(document))
    assert documents[0] == documents[1]


def test_reserve_counts_against_the_budget(tmp_path: Path) -> None:
    write_chain(tmp_path)
    assert run(tmp_path, "solve", "chain.json", "--budget", "4", "--reserve", "2").code == 3
    ran = run(tmp_path, "solve", "chain.json", "--budget", "6", "--reserve", "2", "--json")
    assert (ran.json["cost"], ran.json["peak_bytes"]) == (26, 6)
    assert run(tmp_path, "verify", "chain.json", "chain.schedule.json").code == 0


def test_pinned_operations_run_once(tmp_path: Path) -> None:
    write_chain(tmp_path)
    ran = run(tmp_path, "solve", "chain.json", "--budget", "7", "--pin", "op[0-3]", "--pin", "op16", "--json")
    assert ran.code == 0, ran.err
    recomputed = json.loads((tmp_path / "chain.schedule.json").read_text())["recomputations"]
    assert recomputed
    assert not {"op0", "op1", "op2", "op3", "op16"} & recomputed.keys()


def test_costs_can_be_chosen(tmp_path: Path) -> None:
    document = chain_document(3)
    for operation in document["operations"]:
        operation["cost"] = 2
    (tmp_path / "g.json").write_text(json.dumps(document))
    (tmp_path / "costs.json").write_text(json.dumps({f"op{number}": 3 for number in range(7)}))

    def ideal(*arguments: str) -> float:
        return float(run(tmp_path, "solve", "g.json", "--budget", "100%", "--json", *arguments).json["ideal_cost"])

    assert ideal() == ideal("--costs", "given") == 14
    assert ideal("--costs", "unit") == 7
    assert ideal("--costs", "costs.json") == 21
    assert ideal("--device", "a100") != ideal("--costs", "roofline", "--device", "t4")


@pytest.mark.slow
def test_a_pipe_gets_aligned_text_without_decoration_and_verbose_tells_the_story(tmp_path: Path) -> None:
    write_chain(tmp_path)
    ran = run(tmp_path, "solve", "chain.json", "--budget", "4")
    labels = [line.split("  ")[0] for line in ran.out.splitlines()]
    assert labels == ["status", "graph", "budget", "peak", "cost", "bound", "recomputed", "strategy", "time", "written"]
    assert ran.out.isascii()
    assert ran.err == ""
    verbose = run(tmp_path, "solve", "chain.json", "--budget", "4", "-v")
    assert "best 26" in verbose.err
    assert "no model is written" in verbose.err
    assert run(tmp_path, "solve", "chain.json", "--budget", "4", "-q").out == ""
