"""A forward model in, a training graph that fits out: one hundred steps of training on the compiled graph, in less memory, bit for bit."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import onnx
import pytest
from cli_runs import run
from small_models import Net, tensor

STEPS = """
import json, sys
import numpy as np
import onnxruntime
from checkmate.io.onnx.read.metadata import ARENA_KEY, WASTE_KEY, noted_number, read_metadata
from checkmate.io.onnxruntime.session import exact_options, one_block

model, values, cap = sys.argv[1], sys.argv[2], int(sys.argv[3])
options = exact_options(onnxruntime)
options.intra_op_num_threads = 1
options.log_severity_level = 4
random = np.random.default_rng(0)
digits = random.normal(size=(10, 8, 8))
image, labels = np.empty((64, 1, 8, 8), np.float32), np.empty(64, np.int64)
rate = np.asarray(0.1, np.float32)
now = {name: value for name, value in np.load(values).items() if name != "learning_rate"}
later = {name: np.empty_like(value) for name, value in now.items()}
notes = read_metadata(model)
with one_block(onnxruntime, options, cap and (noted_number(notes, ARENA_KEY) or cap), noted_number(notes, WASTE_KEY), limit=cap):
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
names = [output.name for output in session.get_outputs()]
losses = []
for _ in range(100):
    labels[:] = random.integers(0, 10, 64)
    image[:, 0] = digits[labels] + 0.3 * random.normal(size=(64, 8, 8))
    fed = {name: onnxruntime.OrtValue.ortvalue_from_numpy(value)
           for name, value in {**now, "image": image, "labels": labels, "learning_rate": rate}.items()}
    made = dict(zip(names, session.run_with_ort_values(names, fed)))
    losses.append(float(made["loss"].numpy()).hex())
    for name, value in later.items():
        value[...] = made[f"updated/{name}"].numpy()
    del made
    now, later = later, now
print(json.dumps(losses))
"""
"""Updates are copied out of the arena: those of the last step, still in use, would cut it into pieces."""


def digits_network() -> onnx.ModelProto:
    """One size for nearly all that is large: between tensors of many sizes an arena leaves holes, which count against its limit."""
    net = Net()
    x, channels = "image", 1
    for layer in range(6):
        size = 1 if layer else 3
        weights = [net.weight(f"c{layer}", 8, channels, size, size, scale=0.3), net.weight(f"b{layer}", 8)]
        x = net.add("Conv", [x, *weights], f"conv{layer}", pads=[size // 2] * 4)
        x, channels = net.add("Tanh", [x], f"act{layer}"), 8
    net.add("Flatten", [x], "flat")
    net.add("Gemm", ["flat", net.weight("w0", 32, 512, scale=0.05), net.weight("b6", 32)], "hidden", transB=1)
    net.add("Tanh", ["hidden"], "features")
    net.add("Gemm", ["features", net.weight("w1", 10, 32), net.weight("b7", 10)], "scores", transB=1)
    return net.model([tensor("image", "N", 1, 8, 8)], [tensor("scores", "N", 10)])


def train(folder: Path, model: str, cap: int = 0) -> list[str] | None:
    """The losses as exact text; None if the memory was not enough."""
    command = [sys.executable, "-c", STEPS, str(folder / model), str(folder / "digits.train.params.npz"), str(cap)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0 or "Available memory" in done.stderr, done.stderr
    losses: list[str] | None = json.loads(done.stdout) if done.returncode == 0 else None
    return losses


@pytest.mark.slow
def test_a_digits_network_learns_in_memory_the_plain_graph_does_not_fit_into(tmp_path: Path) -> None:
    onnx.save(digits_network(), str(tmp_path / "digits.onnx"))
    training = ["--loss", "cross-entropy", "--optimizer", "sgd", "--no-gradient-outputs", "--batch-size", "64"]
    kept = run(tmp_path, "solve", "digits.onnx", *training, "--budget", "100%", "--strategy", "keep-all", "--no-onnx", "--json")
    budget = int(0.6 * kept.json["keep_all_peak_bytes"])
    ran = run(
        tmp_path,
        "solve",
        "digits.onnx",
        *training,
        "--budget",
        str(budget),
        "--count",
        "arena",
        "--gap",
        "20%",
        "--time-limit",
        "10s",
        "--json",
    )
    assert ran.code == 0, ran.err
    assert ran.json["arena_bytes"] <= budget == ran.json["budget_bytes"]
    plain = train(tmp_path, "digits.train.onnx")
    compiled = train(tmp_path, "digits.remat.onnx", budget)
    assert plain is not None
    assert compiled == plain
    assert float.fromhex(plain[-1]) < 0.3 * float.fromhex(plain[0])
    assert train(tmp_path, "digits.train.onnx", budget) is None
    # The arena leaves out what is fed; a limit on the address space leaves out nothing.
    verified = run(tmp_path, "verify", "digits.train.onnx", "digits.remat.onnx", "--enforce", "--repeat", "1", "--json")
    assert verified.code == 0, verified.out
