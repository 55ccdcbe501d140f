"""Training graphs of the onnx wheel's nine light models at batch 4; with --torch, of models exported from torch, beside torch itself.

    python benchmarks/differentiate.py
    python benchmarks/differentiate.py --torch            torch and onnxscript must be installed; torchvision's networks too if it is there

`seconds` is the time to differentiate (at most 10), `run` the fastest of a few runs in onnxruntime. With --torch, `error` is the largest
distance of a parameter's gradient from autograd's in float64, relative to its length, `theirs` the same of autograd in float32 (kinks of
Relu and MaxPool cost both some digits), and `ratio` the running time over torch's forward and backward.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import torch_models

from checkmate.io.onnx.differentiate.training_graph import differentiate
from checkmate.io.onnx.differentiate.training_options import Parameter, TrainingGraph, TrainingOptions

LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
BATCH = 4
MOST_SECONDS = 10.0
MOST_ERROR = 1e-5
"""Or three times torch's own in float32."""
MOST_RATIO = 1.5
RUNS = 5


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--torch", action="store_true", help="compare with autograd on models exported from torch")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("names", nargs="*", help="only these models")
    arguments = parser.parse_args()
    missed = compare_with_torch(arguments.threads, arguments.names) if arguments.torch else light_models(arguments.threads, arguments.names)
    for miss in missed:
        print(f"missed: {miss}", file=sys.stderr)
    return 1 if missed else 0


def light_models(threads: int, names: list[str]) -> list[str]:
    missed: list[str] = []
    print(f"{'model':16}{'nodes':>7}{'training':>10}{'gradients':>11}{'seconds':>9}{'run':>9}{'loss':>10}")
    for path in sorted(LIGHT.glob("light_*.onnx")):
        name = path.stem.removeprefix("light_")
        if names and name not in names:
            continue
        model = onnx.load(str(path))
        begun = time.monotonic()
        graph = differentiate(model, TrainingOptions(batch_size=BATCH))
        seconds = time.monotonic() - begun
        onnx.checker.check_model(graph.model, full_check=True)
        session = open_session(graph.model, threads)
        feeds = drawn_feeds(graph)
        results = session.run(None, feeds)
        finite = all(np.isfinite(result).all() for result in results)
        run = fastest(lambda session=session, feeds=feeds: session.run(None, feeds), 2)  # type: ignore[misc]
        print(
            f"{name:16}{len(model.graph.node):7}{len(graph.model.graph.node):10}{len(graph.gradients):11}{seconds:9.2f}{run:8.2f}s"
            f"{float(results[0]):10.3f}",
            flush=True,
        )
        if not finite or graph.without_gradient or seconds > MOST_SECONDS:
            missed.append(f"{name}: finite {finite}, without gradient {list(graph.without_gradient)}, {seconds:.1f} s")
    return missed


def compare_with_torch(threads: int, names: list[str]) -> list[str]:
    missed: list[str] = []
    print(f"{'model':16}{'nodes':>7}{'training':>10}{'seconds':>9}{'error':>10}{'theirs':>10}{'run':>10}{'torch':>10}{'ratio':>8}")
    for name, build in torch_models.MODELS.items():
        if names and name not in names:
            continue
        case = torch_models.export(name, build, threads)
        theirs = fastest(case.step, RUNS)  # before onnxruntime's threads are there, which spin when idle
        begun = time.monotonic()
        graph = differentiate(case.model, TrainingOptions())
        seconds = time.monotonic() - begun
        session = open_session(graph.model, threads)
        feeds = {**case.feeds(graph.label_input or ""), **{parameter.name: parameter.array() for parameter in graph.parameters}}
        outputs = list(graph.gradients.values())
        results = dict(zip(outputs, session.run(outputs, feeds), strict=True))
        error = distance({weight: results[output] for weight, output in graph.gradients.items()}, case.exact)
        their_error = distance(case.gradients, case.exact)
        run = fastest(lambda s=session, o=outputs, f=feeds: s.run(o, f), RUNS)  # type: ignore[misc]
        sizes = f"{len(case.model.graph.node):7}{len(graph.model.graph.node):10}"
        print(
            f"{name:16}{sizes}{seconds:9.2f}{error:10.1e}{their_error:10.1e}{1000 * run:8.1f}ms{1000 * theirs:8.1f}ms{run / theirs:8.2f}",
            flush=True,
        )
        if error > max(MOST_ERROR, 3 * their_error) or (name in torch_models.TIMED and run / theirs > MOST_RATIO):
            missed.append(f"{name}: error {error:.1e}, ratio {run / theirs:.2f}")
    return missed


def open_session(model: onnx.ModelProto, threads: int) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def drawn_feeds(graph: TrainingGraph) -> dict[str, Any]:
    random = np.random.default_rng(0)
    feeds: dict[str, Any] = {parameter.name: drawn(parameter, random) for parameter in graph.parameters}
    for value in graph.model.graph.input:
        shape = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        if value.name == graph.label_input:
            feeds[value.name] = random.integers(0, 1000, shape)
        elif value.name in graph.data_inputs:
            feeds[value.name] = random.normal(size=shape).astype(np.float32)
    return feeds


def drawn(parameter: Parameter, random: np.random.Generator) -> np.ndarray[Any, Any]:
    """The files hold the same number everywhere, with which everything would overflow or vanish."""
    if len(parameter.shape) < 2:
        return np.ones(parameter.shape, np.float32)
    return (random.normal(size=parameter.shape) * np.sqrt(2 / np.prod(parameter.shape[1:]))).astype(np.float32)


def fastest(run: Callable[[], object], times: int) -> float:
    found = []
    for _ in range(times):
        begun = time.perf_counter()
        run()
        found.append(time.perf_counter() - begun)
    return min(found)


def distance(found: Mapping[str, np.ndarray[Any, Any]], exact: Mapping[str, np.ndarray[Any, Any]]) -> float:
    """The largest of all parameters. One that is zero but for rounding, as of a bias before a normalization, has no length to go by."""
    lengths = {name: float(np.linalg.norm(expected)) for name, expected in exact.items()}
    least = 1e-3 * max(lengths.values())
    return max(float(np.linalg.norm(found[name] - expected)) / max(lengths[name], least) for name, expected in exact.items())


if __name__ == "__main__":
    sys.exit(main())
