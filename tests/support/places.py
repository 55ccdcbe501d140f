"""Where things are, seen from the tests."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests"
DOCS = ROOT / "docs"
SAMPLES = ROOT / "sample_graphs"
BENCHMARKS = ROOT / "benchmarks"
