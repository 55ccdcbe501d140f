"""docs/torch.md: its examples run as they stand, and it names every option and figure."""

from __future__ import annotations

import doctest
import logging
import re
from dataclasses import fields
from pathlib import Path

import pytest
from places import DOCS

pytest.importorskip("torch", reason="torch is not installed: pip install torch==2.13.0")

import checkmate.torch
from checkmate.torch.options import CompileOptions

TEXT = (DOCS / "torch.md").read_text("utf-8")
logging.getLogger("torch.__trace").disabled = True  # pytest takes every log message, and this is a log of every graph


@pytest.mark.slow
def test_the_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHECKMATE_CACHE", str(tmp_path))
    example = doctest.DocTestParser().get_doctest(TEXT, {}, "torch.md", str(DOCS / "torch.md"), 0)
    runner = doctest.DocTestRunner(optionflags=doctest.REPORT_ONLY_FIRST_FAILURE)
    runner.run(example)
    assert runner.tries > 8
    assert runner.failures == 0
    assert list(tmp_path.rglob("*.json")), "the schedule is cached"


def test_every_option_and_figure_is_described() -> None:
    plan = [name for name in dir(checkmate.torch.Plan) if not name.startswith("_") and name not in ("name", "result", "step_peak_bytes")]
    for name in (*(field.name for field in fields(CompileOptions)), *plan, *checkmate.torch.__all__):
        assert re.search(rf"\b{name}\b", TEXT), name
