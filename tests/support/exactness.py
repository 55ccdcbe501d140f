"""Does onnxruntime do with a compiled model what was predicted? Values, order and bytes, node by node."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from onnx import helper

import checkmate
from checkmate.core.model.costs import unit_costs
from checkmate.core.model.problem import build_problem
from checkmate.core.schedule.schedule import Schedule, expand
from checkmate.core.schedule.verify import Claim, verify
from checkmate.io.onnx.compile.anchor_modes import Anchor
from checkmate.io.onnx.compile.writer import RECOMPUTE_ATTRIBUTE, compile_model
from checkmate.io.onnx.read.reader import OnnxModel, read_onnx
from checkmate.io.onnxruntime.predict import predict

Feeds = Mapping[str, NDArray[Any]]
OFTEN_FUSED = frozenset({"Add", "Cast", "Dropout", "Flatten", "Identity", "Relu", "Reshape", "Shape", "Sigmoid", "Tanh", "Transpose"})
"""What default settings may fuse into a neighbour, fold or leave out: then it does not run under its own name."""


VIEWS = frozenset({"Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze"})
"""Views are not held back: they allocate nothing."""


@dataclass(frozen=True, slots=True)
class Ran:
    """What one run did."""

    outputs: list[NDArray[Any]]
    names: list[str]
    """Of the nodes, in the order they ran."""
    live: list[int]
    """Bytes of computed tensors after each node."""

    @property
    def peak(self) -> int:
        return max(self.live)


def run(model: onnx.ModelProto, feeds: Feeds, folder: Path, *, exact: bool) -> Ran:
    """In a session of ours, or in one as a user opens it."""
    data = model.SerializeToString()
    if exact:
        session = checkmate.session(data, profile=folder / "profile", threads=1)
    else:
        options = onnxruntime.SessionOptions()
        options.enable_profiling = True
        options.profile_file_prefix = str(folder / "profile")
        options.log_severity_level = 3
        options.intra_op_num_threads = 1
        session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    outputs = [np.asarray(output) for output in session.run(None, dict(feeds))]
    path = Path(session.end_profiling())
    events = [event for event in json.loads(path.read_text()) if event.get("cat") == "Node" and event["name"].endswith("_kernel_time")]
    path.unlink()
    inner = {node.name for node in model.graph.node for attribute in node.attribute for node in attribute.g.node}
    events = [event for event in events if event["name"].removesuffix("_kernel_time") not in inner]
    first = events[0]["args"]
    before = int(first["mem_bytes_requested_in_use"]) - int(first["mem_requested_in_use_delta"])
    live = [int(event["args"]["mem_bytes_requested_in_use"]) - before for event in events]
    return Ran(outputs, [event["name"].removesuffix("_kernel_time") for event in events], live)


def random_feeds(model: OnnxModel, seed: int = 0) -> Feeds:
    random = np.random.default_rng(seed)
    stored = {tensor.name for tensor in model.proto.graph.initializer}
    feeds: dict[str, NDArray[Any]] = {}
    for info in model.proto.graph.input:
        kind = model.types[info.name].tensor_type
        shape = [dimension.dim_value for dimension in kind.shape.dim]
        if info.name not in stored:
            feeds[info.name] = random.normal(0.0, 0.5, shape).astype(helper.tensor_dtype_to_np_dtype(kind.elem_type))
    return feeds


def random_schedule(model: OnnxModel, seed: int, share: float = 0.2) -> Schedule:
    """Every operation once, and anything computed before again now and then; the independent verifier must approve."""
    random = np.random.default_rng(seed)
    problem = build_problem(model.graph, unit_costs(model.graph))
    sequence: list[int] = []
    for operation in range(problem.count):
        again = [earlier for earlier in range(operation) if random.random() < share and not problem.pinned[earlier]]
        sequence += [*sorted(again[:3]), operation]
    schedule = expand(problem, sequence)
    assert verify(model.graph, problem.costs.amounts, schedule, Claim()).violations == ()
    return schedule


def differences(original: OnnxModel, schedule: Schedule, folder: Path) -> list[str]:
    """Everything that is not as predicted, for one schedule of one model; empty if all is well."""
    compiled = compile_model(original, schedule, anchor=Anchor.FULL)
    onnx.checker.check_model(compiled, full_check=True)
    feeds = random_feeds(original)
    before, after, plain = (
        run(original.proto, feeds, folder, exact=True),
        run(compiled, feeds, folder, exact=True),
        run(compiled, feeds, folder, exact=False),
    )
    found: list[str] = []
    for info, one, other, third in zip(original.proto.graph.output, before.outputs, after.outputs, plain.outputs, strict=True):
        if one.tobytes() != other.tobytes():
            found.append(f"{info.name} differs from the original's in exact mode")
        if not np.allclose(one, third, rtol=1e-3, atol=1e-4):
            found.append(f"{info.name} differs from the original's in a plain session")
    read_back = read_onnx(compiled.SerializeToString(), name="compiled")
    for label, model, ran in (("original", original, before), ("compiled", read_back, after)):
        if not model.proto.functions:
            found += [f"{label}: {what}" for what in _unpredicted(model, ran)]
    found += _misplaced(compiled, plain)
    return found


def _unpredicted(model: OnnxModel, ran: Ran) -> list[str]:
    expected = predict(model).nodes
    if [node.name for node in expected] != ran.names:
        first = next((pair for pair in zip([node.name for node in expected], ran.names, strict=False) if pair[0] != pair[1]), "the number")
        return [f"order differs: {first}"]
    return [
        f"{node.name} took {live} bytes, not {node.live_bytes}"
        for node, live in zip(expected, ran.live, strict=True)
        if node.live_bytes != live
    ]


def _misplaced(compiled: onnx.ModelProto, plain: Ran) -> list[str]:
    """What a plain session did not run, or in another order."""
    position = {name: index for index, name in enumerate(plain.names)}
    placed = [position[node.name] for node in compiled.graph.node if node.name in position and node.op_type not in VIEWS]
    found = [] if placed == sorted(placed) else ["a plain session changed the order"]
    copies = [node for node in compiled.graph.node if any(attribute.name == RECOMPUTE_ATTRIBUTE for attribute in node.attribute)]
    lost = [node for node in copies if node.op_type not in OFTEN_FUSED and not any(node.name in name for name in plain.names)]
    return [*found, *(f"a plain session did not run {node.name}" for node in lost)]
