"""`checkmate.session`: the settings it opens with, what can be overridden, and what it says when it cannot."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import parser
from places import DOCS

import checkmate
from checkmate.core.errors import InputError, UnavailableError
from checkmate.io.onnx.compile.exact_settings import EXACT_SETTINGS
from checkmate.io.onnx.compile.writer import SETTING_PREFIX, compile_model
from checkmate.io.onnx.read.reader import read_onnx
from checkmate.io.onnxruntime.session import exact_options
from checkmate.sample_graphs.networks import TINY

DOCUMENT = DOCS / "onnxruntime.md"
MODEL = parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]>
g (float[4] x) => (float[4] z) { [left] a = Exp(x) [again] b = Exp(x) [right] c = Neg(x) [sum] d = Add(a, b) [last] z = Mul(c, d) }""")


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.onnx"
    onnx.save(MODEL, path)
    return path


def test_nodes_run_in_the_order_of_the_file_and_none_is_merged(model: Path, tmp_path: Path) -> None:
    session = checkmate.session(model, profile=tmp_path / "profile")
    session.run(None, {"x": np.ones(4, np.float32)})
    events = json.loads(Path(session.end_profiling()).read_text())
    names = [event["name"] for event in events if event.get("cat") == "Node" and event["name"].endswith("_kernel_time")]
    assert [name.removesuffix("_kernel_time") for name in names] == ["left", "again", "right", "sum", "last"]


def test_the_settings_are_those_noted_in_compiled_models() -> None:
    options = exact_options(onnxruntime)
    assert options.execution_order == onnxruntime.ExecutionOrder.PRIORITY_BASED
    assert options.graph_optimization_level == onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    assert (options.enable_mem_pattern, options.enable_mem_reuse, options.enable_cpu_mem_arena) == (False, False, True)
    assert options.get_session_config_entry("session.disable_prepacking") == "1"
    read = read_onnx(MODEL.SerializeToString(), name="test")
    from checkmate.core.model.costs import unit_costs
    from checkmate.core.model.problem import build_problem
    from checkmate.core.schedule.schedule import expand

    compiled = compile_model(read, expand(build_problem(read.graph, unit_costs(read.graph)), range(5)))
    noted = {
        entry.key.removeprefix(SETTING_PREFIX): entry.value for entry in compiled.metadata_props if entry.key.startswith(SETTING_PREFIX)
    }
    assert noted == dict(EXACT_SETTINGS)


def test_settings_can_be_overridden(model: Path) -> None:
    options = onnxruntime.SessionOptions()
    given = checkmate.session(model, session_options=options, threads=1).get_session_options()
    assert given.graph_optimization_level == onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    assert given.intra_op_num_threads == 1
    session = checkmate.session(str(model), providers=[("CPUExecutionProvider", {})], config={"session.intra_op.allow_spinning": "0"})
    assert session.get_providers() == ["CPUExecutionProvider"]
    assert session.get_session_options().get_session_config_entry("session.intra_op.allow_spinning") == "0"


def test_a_model_may_be_bytes() -> None:
    (made,) = checkmate.session(MODEL.SerializeToString()).run(None, {"x": np.zeros(4, np.float32)})
    assert made.tolist() == [0.0] * 4


def test_what_is_not_there_is_told(model: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        checkmate.session(tmp_path / "nothing.onnx")
    with pytest.raises(UnavailableError, match=r"has no TensorrtExecutionProvider.*onnxruntime-gpu"):
        checkmate.session(model, providers=["TensorrtExecutionProvider"])


def test_importing_loads_nothing_and_a_missing_onnxruntime_is_told() -> None:
    code = (
        "import sys\n"
        "import checkmate\n"
        "assert not {'numpy', 'onnx', 'onnxruntime', 'click'} & set(sys.modules)\n"
        "assert 'session' in checkmate.__all__\n"
        "sys.modules['onnxruntime'] = None\n"
        "try:\n"
        "    checkmate.session('x.onnx')\n"
        "except Exception as error:\n"
        "    print(type(error).__name__, error)\n"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert re.match("UnavailableError onnxruntime is not installed: pip install onnxruntime", printed)


def test_there_is_nothing_else() -> None:
    with pytest.raises(AttributeError, match="nothing_like_this"):
        checkmate.nothing_like_this  # noqa: B018


@pytest.mark.slow
def test_the_example_in_the_documentation_trains(tmp_path: Path) -> None:
    """It runs as it stands, beside a compiled model, and the loss falls."""
    example = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text("utf-8"), re.DOTALL)[0]
    source = tmp_path / "model.onnx"
    onnx.save(TINY["chain"](), source)
    command = [sys.executable, "-m", "checkmate", "solve", str(source), "--budget", "80%", "-o", f"{tmp_path}/"]
    subprocess.run(command, check=True, capture_output=True)
    (tmp_path / "train.py").write_text(example)
    printed = subprocess.run([sys.executable, "train.py"], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    losses = [float(line.split()[-1]) for line in printed.splitlines()]
    assert len(losses) == 50
    assert losses[-1] < losses[0]
