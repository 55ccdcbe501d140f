"""`--count`: what the budget limits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import onnx
import pytest
from cli_runs import run
from onnx import parser

import checkmate


def branching(folder: Path) -> Path:
    """Tensors of different sizes, so that gaps are left between them."""
    forward, back = "", ""
    for number in range(1, 9):
        rows = 64 + 40 * (number % 3)
        forward += f"[a{number}] v{number} = Sin(v{number - 1}) [p{number}] w{number} = Slice(v{number}, zero, r{rows}, zero)\n"
        forward += f"[q{number}] u{number} = Exp(w{number})\n"
        back = f"[h{number}] s{number} = ReduceSum<keepdims = 0>(u{number}) [g{number}] g{number} = Mul(g{number + 1}, v{number}) " + (
            f"[k{number}] k{number} = Add(k{number + 1}, s{number})\n" + back
        )
    numbers = ", ".join(f"int64[1] r{rows} = {{{rows}}}" for rows in (64, 104, 144))
    body = f"g (float[256,256] v0, float[256,256] g9, float k9) => (float[256,256] g1, float k1) <int64[1] zero = {{0}}, {numbers}>"
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]>\n{body} {{ {forward}{back} }}')
    onnx.save(model, folder / "m.onnx")
    return folder


def solve(folder: Path, *options: str) -> dict[str, Any]:
    ran = run(folder, "solve", "m.onnx", *options, "--time-limit", "20s", "--json")
    assert ran.code == 0, ran.err
    assert isinstance(ran.json, dict)
    return ran.json


@pytest.mark.slow
def test_what_counts_fits(tmp_path: Path) -> None:
    """The same number of bytes allows less and less for tensors."""
    branching(tmp_path)
    tensors = solve(tmp_path, "--budget", "70%")
    assert tensors["arena_bytes"] > tensors["peak_bytes"], "there are gaps"
    assert tensors["process_bytes"] > tensors["arena_bytes"] + 12_000_000
    limit = (tensors["arena_bytes"] + tensors["peak_bytes"]) // 2
    arena = solve(tmp_path, "--budget", str(limit), "--count", "arena")
    assert arena["peak_bytes"] <= arena["arena_bytes"] <= arena["budget_bytes"] == limit
    assert arena["count"] == "arena"
    assert arena["bound"] <= arena["cost"]
    notes = {entry.key: entry.value for entry in onnx.load(tmp_path / "m.remat.onnx").metadata_props}
    assert (notes["checkmate.count"], int(notes["checkmate.budget_bytes"])) == ("arena", limit)
    limit = tensors["process_bytes"] - 200_000
    process = solve(tmp_path, "--budget", str(limit), "--count", "process")
    assert process["process_bytes"] <= limit
    assert json.loads((tmp_path / "m.schedule.json").read_text())["session"]["count"] == "process"
    assert run(tmp_path, "verify", "m.onnx", "m.schedule.json").code == 0
    verified = run(tmp_path, "verify", "m.onnx", "m.remat.onnx", "--repeat", "1", "--json")
    assert verified.code == 0, verified.out
    assert [check["status"] for check in verified.json["checks"] if check["name"] == "process"] == ["passed"]


def test_percentages_are_of_what_counts(tmp_path: Path) -> None:
    branching(tmp_path)
    found = {count: solve(tmp_path, "--budget", "100%", "--count", count) for count in ("tensors", "arena", "process")}
    budgets = [found[count]["budget_bytes"] for count in ("tensors", "arena", "process")]
    assert budgets == sorted(budgets)
    assert budgets[0] == found["tensors"]["keep_all_peak_bytes"] < budgets[1] < budgets[2] - 10_000_000
    ran = run(tmp_path, "solve", "m.onnx", "--budget", "100%", "--count", "process")
    assert "100% of the process without recomputation" in ran.out
    assert "with checkmate.session, 1 thread" in ran.out


@pytest.mark.slow
def test_what_cannot_fit_is_proven_or_told(tmp_path: Path) -> None:
    branching(tmp_path)
    ran = run(tmp_path, "solve", "m.onnx", "--budget", "5MB", "--count", "process", "--json")
    assert (ran.code, ran.json["status"]) == (3, "infeasible")
    assert "if the process counts: the smallest budget that could work is" in ran.err
    smallest = ran.json["smallest_budget_bytes"]
    assert smallest > 12_000_000
    ran = run(tmp_path, "solve", "m.onnx", "--budget", str(smallest + 450_000), "--count", "process", "--time-limit", "6s")
    assert ran.code == 4
    assert "the smallest found takes" in ran.err
    assert "--anchor none" in ran.err
    assert not list(tmp_path.glob("*.json"))


def test_only_models_have_a_process(tmp_path: Path) -> None:
    document = {"format": "checkmate-graph", "version": 1, "operations": [{"name": "a", "cost": 1, "outputs": [{"name": "a", "bytes": 1}]}]}
    (tmp_path / "g.json").write_text(json.dumps(document))
    ran = run(tmp_path, "solve", "g.json", "--budget", "100%", "--count", "arena")
    assert (ran.code, ran.err) == (2, "error: g: --count arena needs an ONNX model; this graph is checkmate-graph: leave it out\n")
    ran = run(tmp_path, "solve", "g.json", "--budget", "100%", "--count", "proces")
    assert (ran.code, "did you mean" in ran.err) == (2, True)


def test_from_python(tmp_path: Path) -> None:
    graph = checkmate.load(branching(tmp_path) / "m.onnx")
    result = checkmate.solve(graph, "100%", count="arena", time_limit=20)
    memory = result.memory("none")
    assert memory is not None
    assert memory.arena_bytes <= result.budget_bytes
    assert memory.process_bytes < (result.memory() or memory).process_bytes, "barriers take memory"
    with pytest.raises(checkmate.InputError, match="no count 'proces'"):
        checkmate.solve(graph, "100%", count="proces")
