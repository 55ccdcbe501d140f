"""Results that change only on purpose: schedules of the samples, step by step, by strategies that no version of a solver changes.

A refactoring passes this test as it is. Who changes what the solver finds records anew and says so:

    python tests/properties/test_recorded_results.py > tests/recorded/results.json
"""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
from pathlib import Path

import onnx
import pytest
from cli_runs import run
from places import ROOT

RECORDED = ROOT / "tests" / "recorded" / "results.json"
BASELINES = (
    "keep-all",
    "last-node",
    "chen-sqrt",
    "ap-sqrt",
    "linearized-sqrt",
    "chen-greedy",
    "ap-greedy",
    "linearized-greedy",
    "griewank",
)
CASES: dict[str, tuple[str, ...]] = {
    f"{name}, {strategy}": (name, "--budget", "95%", "--strategy", strategy)
    for name in ("chain.json", "unet.json", "resnet.onnx")
    for strategy in BASELINES
}


def outcome(folder: Path, arguments: tuple[str, ...]) -> str:
    """A digest of the steps and of the nodes of the compiled model; the exit code where there is none.

    Not of more: predictions of memory depend on the machine, and notes on versions.
    """
    name, *options = arguments
    ran = run(folder, "solve", ROOT / "sample_graphs" / name, *options, "--quiet", "-o", "made/")
    if ran.code:
        return f"exit {ran.code}"
    stem = name.rpartition(".")[0]
    document = json.loads((folder / "made" / f"{stem}.schedule.json").read_text())
    digest = hashlib.sha256(json.dumps(document["steps"], sort_keys=True).encode())
    model = folder / "made" / f"{stem}.remat.onnx"
    if model.exists():
        for node in onnx.load(model).graph.node:
            digest.update(node.SerializeToString(deterministic=True))
    return f"cost {document['cost']!r}, sha256 {digest.hexdigest()}"


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_a_result_is_what_was_recorded(tmp_path: Path, case: str) -> None:
    assert outcome(tmp_path, CASES[case]) == json.loads(RECORDED.read_text())[case]


if __name__ == "__main__":
    made: dict[str, str] = {}
    for case, arguments in CASES.items():
        with tempfile.TemporaryDirectory() as folder:
            made[case] = outcome(Path(folder), arguments)
    json.dump(made, sys.stdout, indent=1)
    sys.stdout.write("\n")
