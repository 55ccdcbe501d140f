"""Random models, random schedules, onnxruntime: does it do what was predicted, to the bit, the order and the byte?

    python benchmarks/runtime_exactness.py [models] [nodes]

Prints what differs, and a table of how much was compared. 200 models of 20 nodes take half a minute.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "support"))

import onnxruntime
from exactness import differences, random_schedule
from random_models import random_model

from checkmate.io.onnx.read.reader import read_onnx


def main(models: int = 200, nodes: int = 20) -> int:
    onnxruntime.set_default_logger_severity(4)
    computations, operations, wrong = 0, 0, 0
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(models):
            model = read_onnx(random_model(seed, nodes).SerializeToString(), name=f"random-{seed}")
            schedule = random_schedule(model, seed)
            found = differences(model, schedule, Path(folder))
            operations += len(model.graph.operations)
            computations += len(schedule.computations)
            wrong += bool(found)
            for difference in found:
                print(f"{model.graph.name}: {difference}")
    print(f"onnxruntime {onnxruntime.__version__}: {models} models, {operations} operations, {computations} computations")
    print(f"models with a difference in value, order or bytes: {wrong}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
