"""A training graph is right in any session: 20 steps with default settings give the losses of the exact session."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import numpy_helper
from small_models import Net, tensor

import checkmate
from checkmate.io.onnx.differentiate.modes import _unlike_others

STEPS = 20


def normalized_network() -> onnx.ModelProto:
    """Three BatchNormalizations of the same few channels: their blank statistics were equal, and small enough to be stored once."""
    net = Net()
    x, channels = "image", 1
    for layer in range(3):
        net.add("Conv", [x, net.weight(f"c{layer}", 4, channels, 3, 3, scale=0.5)], f"conv{layer}", pads=[1] * 4)
        statistics = [net.weight(f"s{layer}", 4), net.weight(f"b{layer}", 4), net.weight(f"m{layer}", 4), net.weight(f"v{layer}", 4)]
        net.add("BatchNormalization", [f"conv{layer}", *statistics], f"norm{layer}")
        x, channels = net.add("Tanh", [f"norm{layer}"], f"act{layer}"), 4
    net.add("GlobalAveragePool", [x], "pooled")
    net.add("Flatten", ["pooled"], "flat")
    net.add("Gemm", ["flat", net.weight("w", 3, 4), net.weight("b", 3)], "scores", transB=1)
    return net.model([tensor("image", "N", 1, 8, 8)], [tensor("scores", "N", 3)])


def losses(session: Any, state: dict[str, Any]) -> list[float]:
    """Parameters, running statistics and the like are fed back."""
    random = np.random.default_rng(0)
    names = [output.name for output in session.get_outputs()]
    found: list[float] = []
    state = dict(state)
    for _ in range(STEPS):
        labels = random.integers(0, 3, 8)
        image = random.normal(labels[:, None, None, None], 0.3, (8, 1, 8, 8)).astype(np.float32)
        fed = {**state, "image": image, "labels": labels, "learning_rate": np.asarray(0.3, np.float32)}
        made = dict(zip(names, session.run(None, fed), strict=True))
        found.append(float(made["loss"]))
        state = {name: np.array(made.get(f"updated/{name}", value)) for name, value in state.items()}
    return found


def plain(model: onnx.ModelProto) -> onnxruntime.InferenceSession:
    return onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("plain") / "model.onnx"
    onnx.save(normalized_network(), path)
    return checkmate.differentiate(path, loss="cross-entropy", optimizer="sgd", batch_size=8)


def initial(training: Any) -> dict[str, Any]:
    graph = training.training.graph
    values = {parameter.name: parameter.array() for parameter in graph.parameters}
    return {name: value for name, value in {**values, **graph.state}.items() if name != "learning_rate"}


def test_twenty_steps_in_a_plain_session_and_in_the_exact_one(training: Any, tmp_path: Path) -> None:
    model, state = training.training.graph.model, initial(training)
    expected = losses(checkmate.session(model.SerializeToString()), state)
    assert expected[-1] < 0.9 * expected[0], "it learns, so the comparison is of something"
    np.testing.assert_allclose(losses(plain(model), state), expected, rtol=1e-3)
    compiled = checkmate.solve(training, "85%", gap=0.2).compile()
    assert any("__recompute" in node.name for node in compiled.graph.node)
    assert losses(checkmate.session(compiled.SerializeToString()), state) == expected
    np.testing.assert_allclose(losses(plain(compiled), state), expected, rtol=1e-3)


def test_equal_statistics_would_be_stored_once_and_overwritten(training: Any) -> None:
    """Or else the test above would prove nothing."""
    model = onnx.ModelProto()
    model.CopyFrom(training.training.graph.model)
    for stored in model.graph.initializer:
        if "/blank_" in stored.name:
            stored.CopyFrom(numpy_helper.from_array(np.ones(4, np.float32), stored.name))
    state = initial(training)
    exact, wrong = losses(checkmate.session(model.SerializeToString()), state), losses(plain(model), state)
    assert not np.allclose(wrong, exact, rtol=1e-2)


def test_no_two_blank_statistics_are_equal_in_any_type(training: Any) -> None:
    numbers = [_unlike_others(number) for number in range(1000)]
    assert len(set(numbers)) == len(numbers)
    assert min(numbers) > 0
    assert all(np.float16(number) == number for number in numbers)
    bits = np.asarray(numbers, np.float32).view(np.uint32)
    assert not np.any(bits & 0xFFFF), "exact in bfloat16"
    stored = training.training.graph.model.graph.initializer
    blanks = [bytes(tensor.raw_data) for tensor in stored if "/blank_" in tensor.name]
    assert len(set(blanks)) == len(blanks) == 6
