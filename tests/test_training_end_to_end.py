"""A forward model in, a training graph that fits out: one hundred steps of training on the compiled graph, in less memory, bit for bit."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import onnx
from cli_runs import run
from small_models import Net, tensor

STEPS = """
import json, sys
import numpy as np
import onnxruntime
from checkmate.io.runtime.limits import cap_arena
from checkmate.io.runtime.session import exact_options

model, values, cap = sys.argv[1], sys.argv[2], int(sys.argv[3])
options = exact_options(onnxruntime)
options.intra_op_num_threads = 1
options.log_severity_level = 4
if cap:
    cap_arena(onnxruntime, cap)
    options.add_session_config_entry("session.use_env_allocators", "1")
session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
names = [value.name for value in session.get_outputs()]
random = np.random.default_rng(0)
digits = random.normal(size=(10, 8, 8))
feeds = dict(np.load(values)) | {"learning_rate": np.asarray(0.5, np.float32)}
losses = []
for _ in range(100):
    labels = random.integers(0, 10, 64)
    image = digits[labels] + 0.3 * random.normal(size=(64, 8, 8))
    results = dict(zip(names, session.run(None, feeds | {"labels": labels, "image": image[:, None].astype(np.float32)})))
    losses.append(float(results["loss"]).hex())
    feeds |= {name: results[f"updated/{name}"] for name in feeds if f"updated/{name}" in results}
print(json.dumps(losses))
"""


def digits_network() -> onnx.ModelProto:
    net = Net()
    x, channels = "image", 1
    for layer in range(4):
        x = net.add(
            "Conv", [x, net.weight(f"c{layer}", 8, channels, 3, 3, scale=0.3), net.weight(f"b{layer}", 8)], f"conv{layer}", pads=[1] * 4
        )
        x, channels = net.add("Tanh", [x], f"act{layer}"), 8
    net.add("GlobalAveragePool", [x], "means")
    net.add("Flatten", ["means"], "flat")
    net.add("Gemm", ["flat", net.weight("w", 10, 8), net.weight("b", 10)], "scores", transB=1)
    return net.model([tensor("image", "N", 1, 8, 8)], [tensor("scores", "N", 10)])


def train(folder: Path, model: str, cap: int = 0) -> list[str] | None:
    """The losses as exact text; None if the memory was not enough."""
    command = [sys.executable, "-c", STEPS, str(folder / model), str(folder / "digits.train.params.npz"), str(cap)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0 or "Available memory" in done.stderr, done.stderr
    losses: list[str] | None = json.loads(done.stdout) if done.returncode == 0 else None
    return losses


def test_a_digits_network_learns_in_memory_the_plain_graph_does_not_fit_into(tmp_path: Path) -> None:
    onnx.save(digits_network(), str(tmp_path / "digits.onnx"))
    training = ["--loss", "cross-entropy", "--optimizer", "sgd", "--no-gradient-outputs", "--batch-size", "64"]
    ran = run(tmp_path, "solve", "digits.onnx", *training, "--budget", "65%", "--time-limit", "8s", "--json")
    assert ran.code == 0, ran.err
    plain = train(tmp_path, "digits.train.onnx")
    cap = ran.json["keep_all_peak_bytes"]
    compiled = train(tmp_path, "digits.remat.onnx", cap)
    assert compiled is not None
    assert compiled == plain
    assert float.fromhex(compiled[-1]) < 0.3 * float.fromhex(compiled[0])
    assert train(tmp_path, "digits.train.onnx", cap) is None
