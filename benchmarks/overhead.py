"""Predicted against real overhead: each sample solved with costs measured on this machine, then both models timed.

    python benchmarks/overhead.py [--share 60] [--runs 40] [--threads 1] [sample ...]

Both sessions are open in one process and run in turn, so that whatever else the machine does it does to both. Two figures of the real
overhead: `cpu` compares the processor time of the shortest run of each, which other programs change less, and is meaningful with one
thread only (idle threads of a pool spin); `wall` compares the shortest wall times. `spread` is how much the runs of the original vary, its
median over its shortest: when it is large, the machine was busy and neither says much. The load average is printed for the same reason.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any

from verify_samples import SAMPLES, budget_for, checkmate

import checkmate as package
from checkmate.io.onnx.read.reader import read_onnx
from checkmate.io.onnxruntime.inputs import feeds_for


def in_turn(runs: list[Callable[[], object]], count: int) -> list[list[tuple[float, float]]]:
    """Wall and processor time of each of `count` runs of each."""
    times: list[list[tuple[float, float]]] = [[] for _ in runs]
    for number in range(count + 2):
        for run, found in zip(runs, times, strict=True):
            wall, cpu = time.perf_counter(), time.process_time()
            run()
            if number >= 2:
                found.append((time.perf_counter() - wall, time.process_time() - cpu))
    return times


def runner(path: str, feeds: dict[str, Any], threads: int) -> Callable[[], object]:
    import onnxruntime

    session = package.session(path, threads=threads)
    values = {name: onnxruntime.OrtValue.ortvalue_from_numpy(array) for name, array in feeds.items()}
    names = [output.name for output in session.get_outputs()]
    return lambda: session.run_with_ort_values(names, values)


def measure(sample: str, options: argparse.Namespace, folder: Path) -> str:
    model, costs, compiled = (
        str(resources.files("checkmate.sample_graphs") / f"{sample}.onnx"),
        f"{folder}/costs.json",
        f"{folder}/out.onnx",
    )
    checkmate("profile", model, "-o", costs, "--threads", str(options.threads), "--repeat", str(options.runs))
    budget = str(budget_for(model, costs, options.share / 100))
    solved = checkmate("solve", model, "--costs", costs, "--budget", budget, "--time-limit", options.time_limit, "-o", compiled)
    if "error" in solved:
        return f"{sample:12} {solved['error']}"
    feeds = {name: array for name, (_, array) in feeds_for(read_onnx(Path(model))).items()}
    original, remat = in_turn([runner(path, feeds, options.threads) for path in (model, compiled)], options.runs)
    shortest = [[min(run[kind] for run in runs) for runs in (original, remat)] for kind in (0, 1)]
    wall, cpu = (after / before - 1 for before, after in shortest)
    spread = statistics.median(run[0] for run in original) / shortest[0][0] - 1
    figures = (100 * solved["overhead"], 100 * cpu, 100 * (cpu - solved["overhead"]), 100 * wall, 100 * spread)
    return f"{sample:12} {1e3 * shortest[0][0]:9.2f} " + " ".join(f"{figure:+9.2f}" for figure in figures)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("samples", nargs="*", default=SAMPLES)
    parser.add_argument("--share", type=float, default=60)
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--time-limit", default="60s")
    options = parser.parse_args()
    print(
        f"{options.threads} threads, {options.runs} runs, load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; overheads in %"
    )
    print(f"{'sample':12} {'ms':>9} " + " ".join(f"{title:>9}" for title in ("predicted", "cpu", "cpu-pred.", "wall", "spread")))
    for sample in options.samples:
        with tempfile.TemporaryDirectory() as folder:
            print(measure(sample, options, Path(folder)), flush=True)
    print(f"load average at the end {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
