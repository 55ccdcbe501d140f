"""PyTorch programs on the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from cli_runs import run

needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed: pip install torch==2.13.0")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    from torch_files import gpt_file, logits_file, resnet_file

    (tmp_path / "gpt.pt2").write_bytes(gpt_file())
    (tmp_path / "drop.pt2").write_bytes(gpt_file(0.1))
    (tmp_path / "logits.pt2").write_bytes(logits_file())
    (tmp_path / "resnet.pt2").write_bytes(resnet_file())
    return tmp_path


@needs_torch
@pytest.mark.slow
def test_solve_and_verify(folder: Path) -> None:
    """With measured workspace, every check is exact."""
    ran = run(folder, "solve", "drop.pt2", "--budget", "70%", "--profile", "--verify", "--time-limit", "20s", "--gap", "30%", "--json")
    assert ran.code == 0, ran.err
    told = json.loads(ran.out)
    assert told["outputs"] == ["drop.schedule.json", "drop.remat.pt2", "drop.costs.json"]
    assert told["graph"]["format"] == "torch"
    assert told["recomputed"] > 0
    checks = {check["name"]: check for check in told["verification"]["checks"]}
    assert {name: check["status"] for name, check in checks.items()} == dict.fromkeys(
        ("outputs", "order", "memory", "budget", "time"), "passed"
    )
    assert checks["memory"]["peak_bytes"] == checks["memory"]["predicted_peak_bytes"] == told["peak_bytes"]
    ran = run(folder, "verify", "drop.pt2", "drop.schedule.json", "--costs", "drop.costs.json")
    assert ran.code == 0, ran.err
    ran = run(folder, "verify", "gpt.pt2", "drop.remat.pt2")
    assert ran.code == 6
    assert "differs" in ran.out


@needs_torch
@pytest.mark.slow
def test_a_loss_is_added(folder: Path) -> None:
    """What was added is known to the compiled file, so that it can be compared with the original."""
    ran = run(
        folder, "solve", "logits.pt2", "--loss", "cross-entropy", "--budget", "75%", "--time-limit", "20s", "--gap", "30%", "-o", "out/"
    )
    assert ran.code == 0, ran.err
    ran = run(folder, "verify", "logits.pt2", "out/logits.remat.pt2", "--repeat", "2")
    assert ran.code == 0, ran.out
    ran = run(folder, "differentiate", "logits.pt2", "--loss", "cross-entropy", "--json")
    assert json.loads(ran.out)["outputs"] == ["logits.train.pt2"]
    ran = run(folder, "solve", "logits.train.pt2", "--budget", "75%", "--time-limit", "20s", "--gap", "30%", "-q")
    assert ran.code == 0, ran.err
    assert (folder / "logits.train.remat.pt2").exists()


@needs_torch
@pytest.mark.slow
def test_where_tracing_is_not_eager_mode(tmp_path: Path) -> None:
    """nn.LSTM: the compiled program is bit-identical to what torch traces, which is close to eager mode."""
    from torch_files import program_file
    from torch_zoo import LSTM, sequences

    (tmp_path / "lstm.pt2").write_bytes(program_file(LSTM(), sequences()))
    ran = run(tmp_path, "solve", "lstm.pt2", "--budget", "90%", "--time-limit", "20s", "--gap", "30%", "--verify", "--json")
    assert ran.code == 0, ran.err
    (outputs,) = (check for check in json.loads(ran.out)["verification"]["checks"] if check["name"] == "outputs")
    assert outputs["equal"] < outputs["compared"]
    assert 0 < outputs["tracing_difference"] < 1e-5


@needs_torch
@pytest.mark.slow
def test_the_other_commands(folder: Path) -> None:
    for arguments in (
        ("inspect", "gpt.pt2", "--batch-size", "3", "--costs-table"),
        ("profile", "gpt.pt2", "-o", "costs.json", "--repeat", "2"),
        ("min-budget", "gpt.pt2", "--time-limit", "2s", "-o", "small/"),
        ("sweep", "gpt.pt2", "--budgets", "70%,100%", "--time-limit", "2s", "-o", "curve.csv"),
        ("max-batch", "gpt.pt2", "--budget", "1MB", "--strategies", "keep-all,chen-sqrt", "-o", "large/"),
        ("compare", "gpt.pt2", "--budgets", "80%", "--strategies", "chen-greedy"),
        ("convert", "gpt.pt2", "gpt.json"),
        ("solve", "gpt.pt2", "--costs", "costs.json", "--budget", "70%", "--time-limit", "20s", "--gap", "30%"),
        ("report", "gpt.schedule.json"),
        ("explain", "gpt.schedule.json"),
    ):
        ran = run(folder, *arguments)
        assert ran.code == 0, (arguments, ran.err)
    for path in ("small/gpt.remat.pt2", "large/gpt.remat.pt2", "gpt.remat.pt2", "gpt.report.html", "curve.csv"):
        assert (folder / path).exists(), path
    (folder / "jobs.yaml").write_text("jobs:\n  - graph: '*net.pt2'\n    budget: 90%\n    time-limit: 2s\n")
    ran = run(folder, "batch", "jobs.yaml", "--no-cache")
    assert ran.code == 0, ran.err
    assert (folder / "schedules" / "resnet-90pct.remat.pt2").exists()


@needs_torch
def test_what_is_refused(folder: Path) -> None:
    for arguments, words in (
        (("solve", "gpt.pt2", "--budget", "80%", "-o", "x.onnx"), "a PyTorch program is compiled to one"),
        (("solve", "gpt.pt2", "--budget", "80%", "--loss", "mse", "--optimizer", "sgd"), "optimizer is for ONNX models"),
        (("profile", "gpt.pt2", "--provider", "cuda"), "the program was exported for cpu"),
        (("max-batch", "logits.pt2", "--budget", "1GB"), "its sizes are fixed"),
        (("verify", "gpt.pt2", "gpt.pt2", "--enforce"), "--enforce is for ONNX models"),
    ):
        ran = run(folder, *arguments)
        assert ran.code == 2, arguments
        assert words in ran.err


def test_without_torch(tmp_path: Path) -> None:
    """Exit 5, and what to install. An archive by hand, so that this runs where torch is not installed; where it is, it is hidden."""
    import zipfile

    with zipfile.ZipFile(tmp_path / "model.pt2", "w") as archive:
        for name, content in (("archive_format", "pt2"), ("archive_version", "0"), ("models/model.json", "{}")):
            archive.writestr(f"model/{name}", content)
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden" / "torch.py").write_text("raise ImportError('hidden')")
    variables = {**os.environ, "PYTHONPATH": str(tmp_path / "hidden")}
    for arguments in (("inspect", "model.pt2"), ("solve", "model.pt2", "--budget", "8GB")):
        ran = subprocess.run(
            [sys.executable, "-m", "checkmate", *arguments], cwd=tmp_path, env=variables, capture_output=True, text=True, check=False
        )
        assert ran.returncode == 5, ran.stderr
        assert "pip install 'checkmate-remat[torch]'" in ran.stderr
    code = "import checkmate.torch\ncheckmate.torch.compile"
    ran = subprocess.run([sys.executable, "-c", code], env=variables, capture_output=True, text=True, check=False)
    assert "UnavailableError: PyTorch is not installed" in ran.stderr
