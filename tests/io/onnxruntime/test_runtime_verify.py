"""`checkmate verify model.onnx model.remat.onnx`, end to end: what is right passes, and each lie is found by its check."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from cli_runs import Ran, run
from onnx import parser

SAMPLES = resources.files("checkmate.sample_graphs")


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with chain.onnx and chain.remat.onnx, compiled for 60 % of the keep-all peak."""
    folder = tmp_path_factory.mktemp("chain")
    (folder / "chain.onnx").write_bytes((SAMPLES / "chain.onnx").read_bytes())
    assert run(folder, "solve", "chain.onnx", "--budget", "60%", "--strategy", "chen-sqrt", "-q").code == 0
    return folder


def checks(ran: Ran) -> dict[str, dict[str, Any]]:
    return {check["name"]: check for check in ran.json["checks"]}


def lie(folder: Path, change: Callable[[onnx.ModelProto], object]) -> Path:
    model = onnx.load(folder / "chain.remat.onnx")
    change(model)
    (folder / "lie.onnx").write_bytes(model.SerializeToString())
    return folder / "lie.onnx"


def note(model: onnx.ModelProto, key: str, value: str) -> None:
    next(entry for entry in model.metadata_props if entry.key == key).value = value


@pytest.mark.slow
def test_a_compiled_model_passes_and_a_limit_proves_it(chain: Path) -> None:
    ran = run(chain, "verify", "chain.onnx", "chain.remat.onnx", "--enforce", "--repeat", "2", "--costs", "unit", "--json")
    assert ran.code == 0, ran.out
    found = checks(ran)
    assert list(found) == ["outputs", "order", "memory", "budget", "process", "enforced", "time"]
    assert {check["status"] for check in found.values()} == {"passed"}
    assert found["outputs"]["equal"] == 2
    assert found["order"]["recomputations"] > 0
    assert found["memory"]["differing"] == 0
    assert found["budget"]["peak_bytes"] <= ran.json["budget_bytes"]
    assert found["enforced"]["original"] == "out of memory"
    assert found["time"]["predicted_overhead"] > 0


def test_the_table_names_every_check(chain: Path) -> None:
    ran = run(chain, "verify", "chain.onnx", "chain.remat.onnx", "--repeat", "1")
    assert ran.code == 0
    assert ran.out.startswith("verdict  passed\n")
    assert "bit-identical; plain session close" in ran.out
    assert "nodes as predicted, to the byte" in ran.out


def test_other_numbers_are_found(chain: Path) -> None:
    def halve(model: onnx.ModelProto) -> None:
        tensor = next(tensor for tensor in model.graph.initializer if tensor.name == "number/0.5")
        tensor.CopyFrom(onnx.numpy_helper.from_array(np.array(0.25, np.float32), tensor.name))

    lie(chain, halve)
    ran = run(chain, "verify", "chain.onnx", "lie.onnx", "--repeat", "1", "--json")
    assert ran.code == 6
    assert ran.json["status"] == "failed"
    assert (checks(ran)["outputs"]["status"], checks(ran)["outputs"]["details"][0]) == ("failed", "output 'loss' differs")
    assert checks(ran)["order"]["status"] == "passed"


def test_a_budget_it_does_not_keep_is_found_with_and_without_a_limit(chain: Path) -> None:
    lie(chain, lambda model: note(model, "checkmate.budget_bytes", "6000000"))
    ran = run(chain, "verify", "chain.onnx", "lie.onnx", "--repeat", "1", "--enforce", "--json")
    assert ran.code == 6
    found = checks(ran)
    assert [found[name]["status"] for name in ("outputs", "order", "memory", "budget", "enforced")] == ["passed"] * 3 + ["failed"] * 2
    assert "bytes above 6 MB" in found["budget"]["summary"]


def test_the_original_under_a_limit_it_fits_is_no_failure(chain: Path) -> None:
    ran = run(chain, "verify", "chain.onnx", "chain.remat.onnx", "--repeat", "1", "--enforce", "--budget", "200%", "--json")
    assert ran.code == 0, ran.out
    assert checks(ran)["enforced"]["original"] == "runs"


def test_a_compiled_model_that_onnxruntime_refuses_is_a_finding(chain: Path) -> None:
    lie(chain, lambda model: setattr(model, "ir_version", 99))
    ran = run(chain, "verify", "chain.onnx", "lie.onnx", "--repeat", "1", "--json")
    assert ran.code == 6
    assert "the compiled model fails: error:" in checks(ran)["outputs"]["summary"]
    assert "IR version: 99" in checks(ran)["outputs"]["summary"]


def test_own_inputs_are_used(tmp_path: Path) -> None:
    header = '<ir_version: 8, opset_import: ["" : 18]>\n'
    one, other = ("g (float[4] x) => (float[4] z) { [n] z = " + body + " }" for body in ("Relu(x)", "Identity(x)"))
    for name, text in (("a.onnx", one), ("b.onnx", other)):
        (tmp_path / name).write_bytes(parser.parse_model(header + text).SerializeToString())
    np.savez(tmp_path / "x.npz", x=np.ones(4, np.float32))
    assert run(tmp_path, "verify", "a.onnx", "b.onnx", "--repeat", "1", "-q").code == 6, "some generated numbers are negative"
    assert run(tmp_path, "verify", "a.onnx", "b.onnx", "--repeat", "1", "--inputs", "x.npz", "-q") == Ran(0, "", "")


def test_options_for_running_are_refused_for_schedules(chain: Path) -> None:
    ran = run(chain, "verify", "chain.onnx", "chain.schedule.json", "--enforce")
    assert ran.code == 2
    assert ran.err == "error: --enforce is for compiled models; a schedule file is not run: leave it out\n"


def test_models_with_other_inputs_or_from_json_are_bad_input(chain: Path, tmp_path: Path) -> None:
    ran = run(chain, "verify", str(SAMPLES / "vgg.onnx"), "chain.remat.onnx")
    assert ran.code == 2
    assert "its inputs differ from those of" in ran.err
    ran = run(chain, "verify", str(SAMPLES / "chain.json"), "chain.remat.onnx")
    assert ran.code == 2
    assert "compare a compiled model with the model" in ran.err


def test_without_onnxruntime_it_says_what_to_install(chain: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    for command in (("verify", "chain.onnx", "chain.remat.onnx"), ("profile", "chain.onnx", "-o", "c.json")):
        ran = run(chain, *command)
        assert ran.code == 5
        assert "pip install onnxruntime" in ran.err
        assert len(ran.err.splitlines()) == 1
