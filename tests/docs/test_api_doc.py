"""docs/api.md: every example runs as it stands, every public name is in it."""

from __future__ import annotations

import doctest
import inspect
import re
import subprocess
import sys
from contextlib import chdir

import pytest
from places import DOCS, ROOT

import checkmate

TEXT = (DOCS / "api.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_examples_run() -> None:
    with chdir(ROOT):
        example = doctest.DocTestParser().get_doctest(TEXT, {}, "api.md", str(DOCS / "api.md"), 0)
        runner = doctest.DocTestRunner(optionflags=doctest.REPORT_ONLY_FIRST_FAILURE)
        runner.run(example)
    assert runner.tries > 15
    assert runner.failures == 0


def test_every_public_name_is_there_and_described() -> None:
    for name in checkmate.__all__:
        found = getattr(checkmate, name)
        if name == "__version__":
            continue
        assert inspect.getdoc(found), f"{name} has no docstring"
        assert re.search(rf"\b{name}\b", TEXT), f"docs/api.md says nothing of {name}"


def test_the_public_surface_is_what_it_was() -> None:
    """Whoever changes it changes this list too, and the changelog."""
    assert sorted(checkmate.__all__) == sorted(
        [
            *("__version__", "load", "differentiate", "solve", "min_budget", "max_batch", "profile", "verify", "session", "torch"),
            *("LoadedGraph", "PricedGraph", "Result", "Schedule", "MinBudget", "MaxBatch", "Judgement"),
            *("Status", "Stop", "Scope", "Order", "MemoryModel", "Event"),
            *("CheckmateError", "InputError", "InfeasibleError", "LimitError", "UnavailableError", "VerificationError"),
            "InterruptedWorkError",
        ]
    )
    parameters = inspect.signature(checkmate.solve).parameters
    assert list(parameters)[:2] == ["graph", "budget"]
    assert all(
        parameter.kind is inspect.Parameter.KEYWORD_ONLY for name, parameter in parameters.items() if name not in ("graph", "budget")
    )


def test_importing_checkmate_imports_nothing_heavy() -> None:
    code = "import sys, checkmate; print([m for m in ('numpy', 'onnx', 'pyomo', 'click', 'highspy', 'numba') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
