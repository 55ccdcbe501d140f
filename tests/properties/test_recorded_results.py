"""Results that change only on purpose: schedules of the samples, byte for byte, where work and not time ends a run.

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
AUTO = ("--strategy", "auto", "--iterations", "2", "--time-limit", "10m", "--gap", "0.01%")

CASES: dict[str, tuple[str, ...]] = {
    **{
        f"{name}, {strategy}": (name, "--budget", "95%", "--strategy", strategy)
        for name in ("chain.json", "unet.json", "resnet.onnx")
        for strategy in BASELINES
    },
    "vgg.json, auto 80%": ("vgg.json", "--budget", "80%", *AUTO),
    "vgg.json, auto 60%, given order": ("vgg.json", "--budget", "60%", *AUTO, "--order", "given"),
    "unet.json, auto 60%": ("unet.json", "--budget", "60%", *AUTO),
    "unet.onnx, auto 70%": ("unet.onnx", "--budget", "70%", *AUTO),
    "resnet.json, auto 50%": ("resnet.json", "--budget", "50%", *AUTO, "--seed", "3"),
    "transformer.json, auto 60%": ("transformer.json", "--budget", "60%", *AUTO),
    "transformer.onnx, auto 70%, given order": ("transformer.onnx", "--budget", "70%", *AUTO, "--order", "given"),
    "chain.onnx, lp-rounding 70%": ("chain.onnx", "--budget", "70%", "--strategy", "lp-rounding"),
    "chain.json, optimal 50%": ("chain.json", "--budget", "50%", "--strategy", "optimal"),
}


def outcome(folder: Path, arguments: tuple[str, ...]) -> str:
    """A digest of the schedule file and the compiled model; the exit code where there is none."""
    name, *options = arguments
    ran = run(folder, "solve", ROOT / "sample_graphs" / name, *options, "--quiet", "-o", "made/")
    if ran.code:
        return f"exit {ran.code}"
    stem = name.rpartition(".")[0]
    document = json.loads((folder / "made" / f"{stem}.schedule.json").read_text())
    for moving in ("run", "versions"):
        document.pop(moving)
    text = json.dumps(document, sort_keys=True)
    digest = hashlib.sha256(text.encode())
    model = folder / "made" / f"{stem}.remat.onnx"
    if model.exists():
        proto = onnx.load(model)
        proto.ClearField("producer_version")
        digest.update(proto.SerializeToString(deterministic=True))
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
