"""Compile the kernels once, before worker processes would each do it at the same time."""

from __future__ import annotations

import pytest


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput") and not config.option.collectonly:
        from checkmate.core.search.warm import warm_up

        warm_up()
