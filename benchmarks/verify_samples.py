"""Every bundled ONNX sample at a share of its activation memory: solved with measured costs, run, and held to its budget by a limit.

    python benchmarks/verify_samples.py [--share 60] [--time-limit 60s] [sample ...]

Activation memory is the peak of keeping everything, workspace included, less parameters and inputs. Prints what `verify --enforce` found.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from importlib import resources
from pathlib import Path
from typing import Any

SAMPLES = ("chain", "vgg", "resnet", "unet", "transformer")
CHECKS = ("outputs", "order", "memory", "budget", "enforced")


def checkmate(*arguments: str) -> dict[str, Any]:
    """One command line, its object."""
    ran = subprocess.run([sys.executable, "-m", "checkmate", *arguments, "--json"], capture_output=True, text=True, check=False)
    found = json.loads(ran.stdout)
    assert isinstance(found, dict)
    return found


def budget_for(model: str, costs: str, share: float) -> int:
    """Parameters and inputs, and this share of the rest."""
    found = checkmate("inspect", model, "--costs", costs)
    base = sum(found["bytes"]["fixed"].values())
    return int(base + share * (found["keep_all_peak_bytes"] - base))


def verify(sample: str, share: float, time_limit: str, folder: Path) -> str:
    model, costs, compiled = (
        str(resources.files("checkmate.sample_graphs") / f"{sample}.onnx"),
        f"{folder}/costs.json",
        f"{folder}/out.onnx",
    )
    checkmate("profile", model, "-o", costs)
    budget = budget_for(model, costs, share)
    solved = checkmate("solve", model, "--costs", costs, "--budget", str(budget), "--time-limit", time_limit, "-o", compiled)
    if "error" in solved:
        return f"{sample:12} {budget:>10}  {solved['error']}"
    found = checkmate("verify", model, compiled, "--enforce", "--costs", costs)
    if "error" in found:
        return f"{sample:12} {budget:>10}  {found['error']}"
    checks = {check["name"]: check for check in found["checks"]}
    row = [f"{sample:12} {budget:>10} {checks['budget'].get('peak_bytes', 0):>10} {100 * solved['overhead']:>8.2f} %"]
    row += [f"{checks[name]['status']:8}" if name in checks else f"{'missing':8}" for name in CHECKS]
    enforced = checks.get("enforced", {})
    row.append(f"original: {enforced.get('original', '-')} ({enforced.get('limit', '-')})")
    return "  ".join(row)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("samples", nargs="*", default=SAMPLES)
    parser.add_argument("--share", type=float, default=60)
    parser.add_argument("--time-limit", default="60s")
    options = parser.parse_args()
    print(f"{'sample':12} {'budget':>10} {'peak':>10} {'predicted':>10}  " + "  ".join(f"{name:8}" for name in CHECKS))
    for sample in options.samples:
        with tempfile.TemporaryDirectory() as folder:
            print(verify(sample, options.share / 100, options.time_limit, Path(folder)), flush=True)


if __name__ == "__main__":
    main()
