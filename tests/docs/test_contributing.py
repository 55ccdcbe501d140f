"""CONTRIBUTING.md and docs/architecture.md: what they name is there, and each recipe works."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chains import unit_chain
from cli_runs import run, write_chain
from onnx import TensorProto, helper
from places import DOCS, ROOT

from checkmate.core.baselines import BASELINES
from checkmate.core.engine.run import run_strategy
from checkmate.core.events import Watch
from checkmate.core.settings import Settings
from checkmate.core.solvers import SOLVERS
from checkmate.io import load as loading
from checkmate.io.onnx.build.gradient_context import GradientContext, Gradients
from checkmate.io.onnx.gradients import GRADIENTS

TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
PATHS = re.compile(r"`((?:core|io|cli|tests|docs|benchmarks|\.ci)/[\w./*-]*)`")


def registered(registry: Any) -> dict[str, Any]:
    assert isinstance(registry, dict)
    return registry


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "docs/architecture.md", "docs/concepts.md", "docs/solver.md", "docs/robustness.md"])
def test_what_is_named_is_there(page: str) -> None:
    for path in PATHS.findall((ROOT / page).read_text(encoding="utf-8")):
        assert list(ROOT.glob(path)), f"{page} names {path}"


def test_a_layer_of_the_architecture_is_a_folder_or_a_module() -> None:
    text = (DOCS / "architecture.md").read_text(encoding="utf-8")
    for package in ("core", "io"):
        section = text.split(f"## {package}: ")[1].split("## ")[0]
        for layer in re.findall(r"^\| (`.*?`) \|", section, re.MULTILINE):
            for name in re.findall(r"`([\w/]+)`", layer):
                assert (ROOT / package / name).is_dir() or (ROOT / package / f"{name}.py").is_file(), f"{package}/{name}"


def test_a_strategy_is_one_file_and_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = TEXT.split("## Add a strategy")[1].split("```python")[1].split("```")[0]
    code = "\n".join(line.removeprefix("   ") for line in recipe.splitlines())
    imports = (
        "from checkmate.core.events import Watch\nfrom checkmate.core.model.problem import Problem\n"
        "from checkmate.core.result import Result, Status, Stop\nfrom checkmate.core.settings import Settings\n"
    )
    (tmp_path / "my_strategy.py").write_text(imports + code)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setitem(registered(BASELINES), "my-strategy", "my_strategy:my_strategy")
    problem = unit_chain(4, 100)
    result = run_strategy(problem, "my-strategy", Settings(), Watch(10))
    assert result.fits
    assert result.cost == problem.ideal_cost


def test_a_solver_is_one_file_and_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mysolver.py").write_text("from checkmate.core.solvers.highs import Highs\nclass MySolver(Highs):\n    name = 'mysolver'\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setitem(registered(SOLVERS), "mysolver", "mysolver:MySolver")
    result = run_strategy(unit_chain(8, 6), "optimal", Settings(solver="mysolver"), Watch(30))
    assert result.fits
    assert result.provenance["solver"] == "mysolver"
    assert "mysolver" in sys.modules


def test_a_format_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def read(content: loading.Content, sizes: loading.Sizes) -> loading.Read:
        document = {"format": "checkmate-graph", "version": 1, "operations": [{"name": "only", "bytes": 4, "cost": 1}]}
        return loading.Read(loading.parse_graph(document, content.where))

    monkeypatch.setitem(registered(loading.FORMATS), "mine", loading.Format(lambda content: content.head.startswith(b"MINE"), read))
    (tmp_path / "graph.mine").write_bytes(b"MINE!")
    loaded = loading.load(tmp_path / "graph.mine")
    assert (loaded.format, len(loaded.graph.operations)) == ("mine", 1)


def test_a_gradient_is_one_function_and_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def celu(context: GradientContext) -> Gradients:
        return context.only_first(lambda: context.gradient)

    monkeypatch.setitem(registered(GRADIENTS), "Celu", celu)
    weight = helper.make_tensor("w", TensorProto.FLOAT, [4, 3], np.ones(12, np.float32).tobytes(), raw=True)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("Celu", ["h"], ["y"])]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, size]) for name, size in (("x", 4), ("y", 3))]
    model = helper.make_model(helper.make_graph(nodes, "g", ends[:1], ends[1:], [weight]), opset_imports=[helper.make_opsetid("", 18)])
    (tmp_path / "model.onnx").write_bytes(model.SerializeToString())
    assert run(tmp_path, "differentiate", "model.onnx", "--loss", "mse").code == 0


def test_the_main_command_still_works_with_all_of_that_undone(tmp_path: Path) -> None:
    write_chain(tmp_path)
    assert run(tmp_path, "solve", "chain.json", "--budget", "9", "--strategy", "chen-greedy").code == 0
