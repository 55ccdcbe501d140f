"""The examples in docs/formats.md are read as they stand."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import pytest
from places import DOCS

from checkmate.core.model.costs import Device
from checkmate.io.formats.costs_json import parse_costs
from checkmate.io.formats.devices import get_device
from checkmate.io.load import load

TEXT = (DOCS / "formats.md").read_text("utf-8")
EXAMPLES = {kind: re.findall(rf"```{kind}\n(.*?)```", TEXT, re.DOTALL) for kind in ("json", "yaml")}


@pytest.mark.parametrize(
    ("example", "kind", "names"), [(0, "checkmate-graph", ["conv", "relu", "flat", "split", "loss"]), (1, "node-link", ["conv", "relu"])]
)
def test_graphs(example: int, kind: str, names: list[str]) -> None:
    found = load("-", dims={}, batch_size=None, stdin=io.BytesIO(EXAMPLES["json"][example].encode()))
    assert found.format == kind
    assert [operation.name for operation in found.graph.operations] == names


def test_costs_in_full_and_in_short() -> None:
    full, short = (parse_costs(json.loads(text), "costs.json") for text in EXAMPLES["json"][2:])
    assert {name: cost / 1000 for name, cost in full.costs.items()} == dict(short.costs)


def test_device(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(EXAMPLES["yaml"][0])
    assert get_device(str(path)) == Device("my-machine", 1e13, 5e11, 5e-6)
