"""How much sooner a batch ends on two workers than on one.

    python benchmarks/batch.py [--jobs 24] [--workers 2] [--layers 14]

The work is fixed: chains of random sizes and costs, solved to proven optimality by one thread each, so that only the number of workers
differs between the runs. Results must be equal too. Nothing is taken from a cache. Other programs on the machine make the ratio worse; the
load average is printed for that reason.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

AIM = 1.7


def chain(layers: int, seed: int) -> dict[str, Any]:
    """A forward and a backward pass: each backward operation reads the one before it and the forward value beneath."""
    draw = random.Random(seed)
    last = 2 * layers
    operations = [
        {
            "name": f"op{number}",
            "inputs": [f"op{source}" for source in sorted({number - 1, last - number} if number > layers else {number - 1}) if source >= 0],
            "bytes": draw.randint(50, 150),
            "cost": draw.randint(5, 20),
            "backward": number > layers,
        }
        for number in range(last + 1)
    ]
    return {"format": "checkmate-graph", "version": 1, "name": f"chain{seed}", "outputs": [f"op{last}"], "operations": operations}


def run(folder: Path, workers: int) -> tuple[float, list[float]]:
    """Seconds, and the costs found."""
    began = time.perf_counter()
    command = [sys.executable, "-m", "checkmate", "batch", "jobs.yaml", "--no-cache", "--json", "--workers", str(workers)]
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, check=True)
    return time.perf_counter() - began, [job["cost"] for job in json.loads(done.stdout)["jobs"]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=24)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--layers", type=int, default=14)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for seed in range(options.jobs):
            (folder / f"chain{seed:03}.json").write_text(json.dumps(chain(options.layers, seed)))
        (folder / "jobs.yaml").write_text(
            "defaults: {strategy: optimal, threads: 1, time-limit: 1h}\njobs: [{graph: 'chain*.json', budget: 65%}]\n"
        )
        print(f"{options.jobs} jobs, load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
        found = {workers: run(folder, workers) for workers in (1, options.workers)}
    for workers, (seconds, _) in found.items():
        print(f"{workers} worker{'s' if workers > 1 else ' '} {seconds:8.2f} s")
    (alone, costs), (together, same) = found[1], found[options.workers]
    print(f"{alone / together:.2f} times sooner (aim: {AIM} on 2 workers), results {'equal' if costs == same else 'DIFFER'}")


if __name__ == "__main__":
    main()
