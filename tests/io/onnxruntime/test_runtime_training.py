"""A training loop with the compiled graph: the same losses, to the bit, as with the original."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import checkmate
from checkmate.core.model.costs import unit_costs
from checkmate.core.model.problem import build_problem
from checkmate.core.schedule.schedule import expand
from checkmate.io.onnx.compile.writer import compile_model
from checkmate.io.onnx.read.reader import read_onnx
from checkmate.io.onnxruntime.inputs import feeds_for
from checkmate.sample_graphs.networks import TINY

STEPS = 50
RATE = np.float32(0.05)


def losses(session: Any, feeds: dict[str, np.ndarray[Any, Any]]) -> list[bytes]:
    """Plain gradient descent; the parameters are fed back."""
    state = dict(feeds)
    names = [output.name for output in session.get_outputs()]
    found = []
    for _ in range(STEPS):
        outputs = dict(zip(names, session.run(None, state), strict=True))
        found.append(outputs["loss"].tobytes())
        for name, gradient in outputs.items():
            if name.startswith("grad/"):
                state[name.removeprefix("grad/")] = state[name.removeprefix("grad/")] - RATE * gradient
    return found


@pytest.mark.parametrize("name", ["resnet", "transformer"])
def test_50_steps_give_the_same_losses_to_the_bit(tmp_path: Path, name: str) -> None:
    original = tmp_path / "model.onnx"
    original.write_bytes(TINY[name]().SerializeToString())
    model = read_onnx(original)
    problem = build_problem(model.graph, unit_costs(model.graph))
    random = np.random.default_rng(3)
    sequence: list[int] = []
    for operation in range(problem.count):
        again = [earlier for earlier in range(operation) if random.random() < 0.1 and not problem.pinned[earlier]]
        sequence += [*again[:3], operation]
    compiled = tmp_path / "model.remat.onnx"
    compiled.write_bytes(compile_model(model, expand(problem, sequence)).SerializeToString())
    assert len(read_onnx(compiled).graph.operations) > len(model.graph.operations)

    feeds = {name: array for name, (_, array) in feeds_for(model).items()}
    expected = losses(checkmate.session(original), feeds)
    assert losses(checkmate.session(compiled), feeds) == expected
    first, last = (np.frombuffer(loss, np.float32)[0] for loss in (expected[0], expected[-1]))
    assert last < first, "it learns, so the comparison is of something"
    assert len(set(expected)) > STEPS // 2
