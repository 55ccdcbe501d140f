"""Good files of every kind checkmate reads, and how each is damaged and fed to the command line."""

from __future__ import annotations

import io
import json
from functools import cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import yaml
from cli_runs import chain_document
from fuzzing import WITH_SOLVING, WITH_VERDICT, Kind, Reader
from mutations import damaged_json, damaged_model, damaged_npz, damaged_program, damaged_yaml
from onnx import ModelProto, TensorProto, numpy_helper, parser

_HEADER = '<ir_version: 8, opset_import: ["" : 20, "mine" : 1]> agraph'
_FREE = (
    """(float[N,3,8,8] x) => (y)
    <float[4,3,3,3] w, float[4] scale, float[4] bias, float[4] mean, float[4] variance, int64[2] s = {0, -1}> {
        h = Conv<pads = [1, 1, 1, 1]>(x, w)
        b = BatchNormalization(h, scale, bias, mean, variance)
        r = Relu(b)
        p = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(r)
        f = Reshape(p, s)
        y = Softmax<axis = 1>(f) }""",
    """(float[N,4,8] x) => (y)
    <float[8,24] w, int64[3] split = {8, 8, 8}, int64[1] zero = {0}, int64[1] last = {-1}> {
        q, k, v = Split<axis = -1>(t, split)
        t = MatMul(x, w)
        u = Transpose<perm = [0, 2, 1]>(k)
        a = MatMul(q, u)
        d = Softmax(a)
        o = MatMul(d, v)
        shape = Shape(x)
        batch = Gather(shape, zero)
        full = Concat<axis = 0>(batch, last)
        y = Reshape(o, full) }""",
    """(float[N,6] x) => (y) <float[6,4] w> {
        h = MatMul(x, w)
        m = ReduceMean<keepdims = 1>(h)
        c = Sub(h, m)
        y = Gelu(c) }""",
)
"""With parameters and a free batch."""
_FIXED = (
    """(float[4,3] x, bool c) => (y, z) <float[3] k = {1, 2, 3}, int64 trip = {3}> {
        t = Add(x, k)
        y = If (c) <then_branch = a () => (p) { p = Relu(t) }, else_branch = b () => (q) { q = Neg(t) }>
        z = Loop (trip, c, t) <body = loop
            (int64 i, bool on, float[4,3] carried) => (bool goes_on, float[4,3] next) {
            goes_on = Identity(on) next = Mul(carried, k) }> }""",
    """(float[2,6] x) => (y) <int64[2] shape = {2, 3}> {
        n = Dropout(x)
        left, right = Split<axis = 1, num_outputs = 2>(n)
        s = SequenceConstruct(left, right)
        m = ConcatFromSequence<axis = 0>(s)
        c = CastLike(m, x)
        e = Expand(zero, shape)
        zero = Constant<value_float = 0.0>()
        ten = Tile(e, reps)
        reps = Constant<value_ints = [2, 1]>()
        y = Sub(c, ten) }""",
    """(float[6,4] x, int64[6] labels) => (loss) { loss = SoftmaxCrossEntropyLoss(x, labels) }""",
    """(float[3,4] x) => (y) { h = mine.twice(x) y = mine.twice(h) }
    <domain: "mine", opset_import: ["" : 20]> twice (X) => (Y) { H = Add(X, X) Y = Relu(H) }""",
    """(float[6] x) => (y) <int64[2] far = {2, 3}> { y = Reshape(x, far) }""",
)

WEIGHTS = "weights.bin"
CONFIG = """time-limit: 5m
device: cpu-laptop
pin: [op1, 'op2*']
inspect:
  costs: roofline
  runtime: generic
  costs-table: true
solve:
  dim: {batch: 32}
  reserve: 14MB
compare:
  budgets: [90%, 80%, 70%]
  time-limit: 30s
"""
DEVICE = """name: mine
flops_per_second: 1.0e13
bytes_per_second: 5e11
launch_seconds: 5.0e-6
"""
JOBS = """version: 1
defaults:
  time-limit: 5m
jobs:
  - graph: [chain.json, '*.onnx']
    budget: [80%, 60%]
    dim: {N: 2}
  - graph: chain.json
    name: "tight-{graph}-{strategy}"
    budget: 8GB
    strategy: [auto, chen-greedy]
    pin: op1
"""


@cache
def free_models() -> tuple[ModelProto, ...]:
    return tuple(map(_parsed, _FREE))


@cache
def fixed_models() -> tuple[ModelProto, ...]:
    return tuple(_parsed(text.replace("[N,", "[2,")) for text in (*_FREE, *_FIXED))


def _parsed(text: str) -> ModelProto:
    """Tensors that are declared and that no node makes are parameters; the one called `far` lies in a file of its own."""
    model: ModelProto = parser.parse_model(f"{_HEADER} {text}")
    graph = model.graph
    made = {name for node in graph.node for name in node.output}
    for value in [value for value in graph.value_info if value.name not in made]:
        dims = [size.dim_value for size in value.type.tensor_type.shape.dim]
        graph.initializer.append(numpy_helper.from_array(np.zeros(dims, np.float32), value.name))
        graph.value_info.remove(value)
    for tensor in graph.initializer:
        if tensor.name == "far":
            tensor.ClearField("int64_data")
            tensor.data_location = TensorProto.EXTERNAL
            tensor.external_data.add(key="location", value=WEIGHTS)
            tensor.external_data.add(key="length", value="16")
    return model


def training_graph() -> dict[str, object]:
    """All that the graph format knows."""
    return {
        "format": "checkmate-graph",
        "version": 1,
        "name": "tiny",
        "fixed": {"parameters": 2400, "inputs": 800},
        "outputs": ["loss"],
        "operations": [
            {"name": "conv", "kind": "Conv", "bytes": 6400, "cost": 12, "workspace": 1600, "flops": 1e6, "moved_bytes": 9000},
            {"name": "relu", "kind": "Relu", "inputs": ["conv"], "bytes": 6400, "cost": 1, "in_place": [["conv", "relu"]]},
            {"name": "flat", "kind": "Reshape", "inputs": ["relu"], "alias_of": "relu"},
            {
                "name": "split",
                "inputs": ["flat"],
                "cost": 1,
                "outputs": [{"name": "left", "bytes": 3200}, {"name": "right", "bytes": 3200}],
            },
            {"name": "loss", "inputs": ["left", "right"], "bytes": 4, "cost": 2, "backward": False, "pinned": True, "comment": "at last"},
        ],
    }


def node_link() -> dict[str, object]:
    nodes = [{"id": number, "name": f"n{number}", "cost_cpu": 3 + number, "cost_ram": 64, "backward": number > 3} for number in range(7)]
    links = [{"source": number, "target": number + 1} for number in range(6)] + [{"source": 1, "target": 5}]
    return {"directed": True, "multigraph": False, "graph": {"name": "net", "order": list(range(7))}, "nodes": nodes, "links": links}


def costs() -> dict[str, object]:
    amounts = {f"op{number}": 0.5 + number for number in range(17)}
    return {"format": "checkmate-costs", "version": 1, "unit": "ms", "comment": "measured", "costs": amounts, "workspace": {"op3": 4}}


@cache
def schedule() -> dict[str, object]:
    """Of the chain, by the paper's heuristic."""
    from checkmate.core.engine.run import run_strategy
    from checkmate.core.events import Watch
    from checkmate.core.model.costs import given_costs
    from checkmate.core.model.problem import build_problem
    from checkmate.core.settings import Settings
    from checkmate.io.formats.graph_json import parse_graph
    from checkmate.io.formats.schedule_json import Run, ScheduleDocument, render_schedule

    graph = parse_graph(chain_document(8), "chain.json")
    problem = build_problem(graph, given_costs(graph), budget=6)
    certified = run_strategy(problem, "chen-greedy", Settings(), Watch())
    assert certified.schedule is not None
    assert certified.simulation is not None
    document = ScheduleDocument(
        strategy="chen-greedy",
        status=certified.status,
        stop=certified.stop,
        budget_bytes=problem.budget,
        reserve_bytes=0,
        peak_bytes=certified.simulation.peak_bytes,
        keep_all_peak_bytes=10,
        cost=certified.simulation.cost,
        bound=17.0,
        cost_model="given",
        cost_unit="units",
        amounts=problem.costs.amounts,
        schedule=certified.schedule,
        run=Run(0.1, "2024-01-01T00:00:00+00:00"),
        provenance={"segments": 3},
        versions={"checkmate": "0.1.0"},
    )
    rendered: dict[str, object] = json.loads(json.dumps(render_schedule(document, problem.graph)))
    return rendered


def write_good_files(folder: Path) -> None:
    """What the command lines need besides the damaged file."""
    (folder / "chain.json").write_text(json.dumps(chain_document(8)))
    (folder / WEIGHTS).write_bytes(np.array([2, 3], np.int64).tobytes())
    (folder / "good.onnx").write_bytes(fixed_models()[0].SerializeToString())


KEY = "5f" * 32


def cache_entry() -> dict[str, object]:
    """As `batch` keeps them; a damaged one is found by its checksum."""
    answer = {"status": "optimal", "stop": "finished", "sequence": [0, 1, 2], "bound": 3.5, "provenance": {"solver": "highs"}}
    sealed: dict[str, object] = {"key": KEY, "about": {"graph": "chain", "budget": 4}, "answer": answer}
    canonical = json.dumps(sealed, sort_keys=True, separators=(",", ":")).encode()
    return {"format": "checkmate-cache", "version": 1, "checksum": f"sha256:{sha256(canonical).hexdigest()}", **sealed}


def sweep_points() -> dict[str, object]:
    point = {
        "strategy": "auto",
        "budget_bytes": 4,
        "time_limit": 60.0,
        "status": "optimal",
        "stop": "finished",
        "bound": 18.0,
        "bound_scope": "order",
        "seconds": 0.5,
        "found_by": "search",
        "reason": "",
        "sequence": [0, 1, 2],
    }
    return {"format": "checkmate-sweep-points", "version": 1, "points": {KEY: point, "ab" * 32: {**point, "sequence": None}}}


def _read_jobs(path: Path) -> object:
    from checkmate.cli.jobs.job_list import jobs_of
    from checkmate.io.formats.strict_yaml import read_yaml

    return jobs_of(read_yaml(path), str(path), path.parent)


def _read_cache_entry(path: Path) -> object:
    from checkmate.io.formats.result_cache import read_entry

    return read_entry(path)


@cache
def npz() -> bytes:
    made = io.BytesIO()
    np.savez(made, x=np.zeros((2, 6), np.float32))
    return made.getvalue()


def _read_inputs(path: Path) -> object:
    from checkmate.io.onnx.read.reader import read_onnx
    from checkmate.io.onnxruntime.inputs import feeds_for

    return feeds_for(read_onnx(fixed_models()[2].SerializeToString()), path)


def _read_points(path: Path) -> object:
    from checkmate.io.formats.sweep_points import PointStore

    return PointStore(path)


def _json(*documents: object) -> Kind:
    return Kind(lambda draw: damaged_json(draw.choice(documents), draw), tuple(json.dumps(document).encode() for document in documents))


def _yaml(text: str) -> Kind:
    document = yaml.safe_load(text)
    return Kind(lambda draw: damaged_yaml(text, document, draw), (text.encode(), json.dumps(document).encode()))


def _onnx(models: tuple[ModelProto, ...]) -> Kind:
    return Kind(lambda draw: damaged_model(draw.choice(models), draw), tuple(model.SerializeToString() for model in models))


def _torch_readers() -> dict[str, Reader]:
    """Programs of PyTorch, where it is installed."""
    if find_spec("torch") is None:
        return {}

    @cache
    def good() -> tuple[bytes, ...]:
        from torch_files import resnet_file, tiny_file

        return tiny_file(), resnet_file()

    class Programs(Kind):
        """Made when they are first used: importing torch takes seconds."""

        def __init__(self) -> None:
            super().__init__(lambda draw: damaged_program(draw.choice(good()), draw), ())

        def __getattribute__(self, name: str) -> object:
            return good() if name == "good" else super().__getattribute__(name)

    return {
        "torch": Reader(Programs(), ("inspect", "FILE", "--json"), "model.pt2"),
        "torch-compile": Reader(
            Programs(), ("solve", "FILE", "--strategy", "chen-sqrt", "--budget", "200%", "-q"), "program.pt2", WITH_SOLVING
        ),
    }


def readers() -> dict[str, Reader]:
    """By name; the command line is the one a user would type."""
    fixed, free = _onnx(fixed_models()), _onnx(free_models())
    sizes = ("--batch-size", "2")
    chain = "chain.json"
    return {
        "onnx": Reader(fixed, ("inspect", "FILE", "--json"), "model.onnx"),
        "onnx-sizes": Reader(free, ("inspect", "FILE", "--json", *sizes), "model.onnx"),
        "onnx-compile": Reader(fixed, ("solve", "FILE", "--strategy", "chen-sqrt", "--budget", "200%", "-q"), "model.onnx", WITH_SOLVING),
        "onnx-train": Reader(free, ("differentiate", "FILE", "--loss", "mse", *sizes, "-q"), "model.onnx"),
        "graph": Reader(_json(training_graph()), ("inspect", "FILE", "--json"), "graph.json"),
        "graph-solve": Reader(
            _json(training_graph(), chain_document(4)),
            ("solve", "FILE", "--strategy", "ap-greedy", "--budget", "90%", "-q"),
            "graph.json",
            WITH_SOLVING,
        ),
        "node-link": Reader(_json(node_link()), ("inspect", "FILE", "--json"), "net.json"),
        "schedule": Reader(_json(schedule()), ("verify", chain, "FILE", "-q"), "chain.schedule.json", WITH_VERDICT),
        "costs": Reader(_json(costs(), costs()["costs"]), ("inspect", chain, "--costs", "FILE", "--json"), "costs.json"),
        "device": Reader(_yaml(DEVICE), ("inspect", chain, "--costs", "roofline", "--device", "FILE", "--json"), "device.yaml"),
        "report": Reader(
            _json(schedule()), ("report", "FILE", "--graph", chain, "-o", "page.html", "-q"), "chain.schedule.json", WITH_VERDICT
        ),
        "jobs": Reader(_yaml(JOBS), ("batch", "FILE"), "jobs.yaml", read=_read_jobs),
        "cache": Reader(_json(cache_entry()), ("cache", "show"), f"{KEY}.json", read=_read_cache_entry),
        "points": Reader(_json(sweep_points()), ("sweep", chain), "chain.points.json", read=_read_points),
        "inputs": Reader(Kind(lambda draw: damaged_npz(npz(), draw), (npz(),)), ("profile",), "inputs.npz", read=_read_inputs),
        "config": Reader(_yaml(CONFIG), ("inspect", chain, "--config", "FILE", "-q"), "config.yaml"),
        **_torch_readers(),
    }
