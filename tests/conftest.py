"""Compile the kernels once, before worker processes would each do it at the same time; the same random numbers whatever ran before."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from checkmate.io.onnx.read import threads

_FIRST_STATES: dict[str, Any] = {}
threads.session_threads = lambda: 1  # type: ignore[assignment]
"""Workspaces must not depend on the machine that runs the tests."""


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput") and not config.option.collectonly:
        from checkmate.core.search.warm import warm_up

        warm_up()


def pytest_runtest_setup(item: pytest.Item) -> None:
    """A module's RANDOM begins anew for every test: which tests share a process is chance, what they test should not be."""
    module = getattr(item, "module", None)
    random = getattr(module, "RANDOM", None)
    if random is not None:
        generator = random.bit_generator
        generator.state = copy.deepcopy(_FIRST_STATES.setdefault(str(item.path), copy.deepcopy(generator.state)))
