"""docs/robustness.md names tests that are there."""

from __future__ import annotations

import re

from places import ROOT

TEXT = (ROOT / "docs" / "robustness.md").read_text("utf-8")


def test_every_file_named_exists() -> None:
    named = set(re.findall(r"(?:tests|benchmarks)/[\w/]+(?:\.py)?", TEXT))
    assert len(named) > 8
    assert [name for name in named if not (ROOT / name).exists()] == []
