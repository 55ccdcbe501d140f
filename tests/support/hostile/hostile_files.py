"""Good files of every kind checkmate reads, and how each is damaged and fed to the command line."""

from __future__ import annotations

import io
import json
import os
import random
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path

import numpy as np
import yaml
from cli_runs import chain_document
from fuzzing import WITH_SOLVING, WITH_VERDICT, Kind, Reader
from hostile_programs import torch_readers
from mutations import damaged_json, damaged_model, damaged_npz, damaged_tree, damaged_yaml
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
    """(float[N,4] x) => (y) <float[2,12,4] w, float[2,12,3] r, float[2,24] b, int64[1] front = {0}, int64[3] zeros = {2, 2, 3}> {
        t = Unsqueeze(x, front)
        first = ConstantOfShape(zeros)
        h, last = LSTM<hidden_size = 3, direction = "bidirectional">(t, w, r, b, , first)
        y = ReduceSum<keepdims = 0>(last, front) }""",
    """(float[N,6] x) => (y) <float[6,8] w, bool yes = {1}, int64 two = {2}, int64 third = {2}> {
        h = MatMul(x, w)
        s = SplitToSequence<axis = 1>(h, two)
        p = SequenceAt(s, third)
        z = If (yes) <then_branch = a () => (q) <float[2] scale = {0.5, 2.0}> { q = Mul(p, scale) },
                      else_branch = b () => (q) { q = Relu(p) }>
        c = CastLike(z, x)
        y = ConcatFromSequence<axis = 1>(s) }""",
)
"""With parameters and a free batch."""
_EXPORTED = """(float[2,3,4] x) => (y) <float[4,4] val_1, float[4] bias, int64[3] shape = {2, 3, 4}, int64[2] flat = {6, 4},
    int64[2] few = {2, 1}, int64 zero = {0}, int64 end = {2}, int64 one = {1}, int64[1] last = {1}, float[1,1] ones = {1.0}> {
        f = Reshape(x, flat)
        m = MatMul(f, val_1)
        h = Add(m, bias)
        g = Reshape(h, shape)
        e = Expand(ones, few)
        k = Unsqueeze(e, last)
        s = Mul(g, k)
        places = Range(zero, end, one)
        index = Unsqueeze(places, last)
        rows = GatherND(s, index)
        y = Add(rows, bias) }"""
"""A batch of 2 in every place where exporters write it, and what torch writes about its parameters (see `exported_model`)."""
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
    """(float[6,2] x) => (y) <float[2,3] far_away> { y = MatMul(x, far_away) }""",
    """(float[3] s, float[5,3] x) => (t, y) {
        t, y = Scan<num_scan_inputs = 1, body = b (float[3] a, float[3] i) => (float[3] o, float[3] p) {
            o = Add(a, i) p = Identity(o) }>(s, x) }""",
    """(float[1,128] x) => (y) <int64 step = {8}, int64 length = {16}> { y = STFT(x, step, , length) }""",
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
    exclude: none/*.json
    output: out/deep
"""


@cache
def free_models() -> tuple[ModelProto, ...]:
    return tuple(map(_parsed, _FREE))


@cache
def free_models_at(size: int) -> tuple[ModelProto, ...]:
    """The same with a batch of this size."""
    return tuple(_parsed(text.replace("[N,", f"[{size},")) for text in _FREE)


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
        if tensor.name.startswith("far"):
            length = 16 if tensor.name == "far" else 24
            for held in ("int64_data", "raw_data"):
                tensor.ClearField(held)
            tensor.data_location = TensorProto.EXTERNAL
            tensor.external_data.add(key="location", value=WEIGHTS)
            tensor.external_data.add(key="offset", value="0")
            tensor.external_data.add(key="length", value=str(length))
    return model


@cache
def exported_model() -> ModelProto:
    model = _parsed(_EXPORTED)
    signature = "# inputs\np_w: PARAMETER target='w'\np_b: PARAMETER target='bias'\np_c: PARAMETER target='c'\nx: USER_INPUT\n"
    model.graph.metadata_props.add(key="pkg.torch.export.ExportedProgram.graph_signature", value=signature)
    called = "%{} : [num_users=1] = call_function[target=torch.ops.aten.linear.default](args = (%x, %p_w, %{}), kwargs = {{}})"
    for node in model.graph.node:
        bias = "p_c" if node.output[0] == "y" else "p_b"
        node.metadata_props.add(key="pkg.torch.onnx.fx_node", value=called.format("linear", bias))
    return model


@cache
def external_models() -> tuple[ModelProto, ...]:
    return tuple(model for model in fixed_models() if any(tensor.name.startswith("far") for tensor in model.graph.initializer))


@cache
def other_domain() -> ModelProto:
    """Without the standard operators."""
    text = '<ir_version: 8, opset_import: ["ai.onnx.ml" : 1]> agraph (float[3] x) => (y) { y = ai.onnx.ml.Binarizer<threshold = 0.5>(x) }'
    model: ModelProto = parser.parse_model(text)
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
    (folder / WEIGHTS).write_bytes(np.array([2, 3, 0], np.int64).tobytes())
    (folder / "linked.bin").symlink_to("../secret.bin")
    (folder / "linked").symlink_to("..")
    (folder / "short.bin").write_bytes(b"12345678")
    os.mkfifo(folder / "pipe.bin")
    (folder / "out").mkdir()
    (folder / "elsewhere").mkdir()
    (folder / KEY[:2]).mkdir()
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
    from checkmate.cli.options.destinations import check_destinations
    from checkmate.io.formats.strict_yaml import read_yaml

    jobs = jobs_of(read_yaml(path), str(path), path.parent)
    for job in jobs:
        check_destinations(job.destinations(with_model=True).paths, job.source)
    return jobs


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


def sealed_entry(draw: random.Random) -> bytes:
    """A damaged cache entry whose checksum fits all the same: somebody made it."""
    document = damaged_tree(cache_entry(), draw)
    if isinstance(document, dict):
        content = {key: document.get(key) for key in ("key", "about", "answer")}
        with suppress(ValueError, TypeError, RecursionError):
            canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode()
            document["checksum"] = f"sha256:{sha256(canonical).hexdigest()}"
    return json.dumps(document).encode()


LOCATIONS = (
    *("linked.bin", "linked/secret.bin", "pipe.bin", "short.bin", "out", ".", "..", "../secret.bin", "/etc/passwd", "a\0b", ".bashrc"),
    *("weights.bin", "./weights.bin", "out/../weights.bin", "elsewhere/linked.bin", "x" * 300, "C:\\weights.bin", "..\\secret.bin", "é"),
)


def damaged_references(model: ModelProto, draw: random.Random) -> bytes:
    """A model whose external data is somewhere else, or elsewhere in its file."""
    damaged = ModelProto()
    damaged.CopyFrom(model)
    for tensor in damaged.graph.initializer:
        for entry in tensor.external_data:
            if draw.random() < 0.5:
                numbers = ("-1", "8", "16", "24", "4096", "99999999999999999999", "1e3", "", "0x10", "here")
                entry.value = draw.choice(LOCATIONS) if entry.key == "location" else draw.choice(numbers)
        if draw.random() < 0.2:
            tensor.external_data.add(key=draw.choice(("location", "offset", "length", "checksum")), value=draw.choice(LOCATIONS))
        if draw.random() < 0.2:
            tensor.dims[draw.randrange(len(tensor.dims))] = draw.choice((0, 1, 5, 2**40, -1))
    data: bytes = damaged.SerializeToString()
    return data


def _json(*documents: object) -> Kind:
    return Kind(lambda draw: damaged_json(draw.choice(documents), draw), tuple(json.dumps(document).encode() for document in documents))


def _yaml(text: str) -> Kind:
    document = yaml.safe_load(text)
    return Kind(lambda draw: damaged_yaml(text, document, draw), (text.encode(), json.dumps(document).encode()))


def _onnx(models: tuple[ModelProto, ...]) -> Kind:
    return Kind(lambda draw: damaged_model(draw.choice(models), draw), tuple(model.SerializeToString() for model in models))


def _references(models: tuple[ModelProto, ...]) -> Kind:
    return Kind(lambda draw: damaged_references(draw.choice(models), draw), tuple(model.SerializeToString() for model in models))


def readers() -> dict[str, Reader]:
    """By name; the command line is the one a user would type."""
    fixed, free = _onnx(fixed_models()), _onnx(free_models())
    sizes, keep_all = ("--batch-size", "2"), ("--strategy", "keep-all", "--budget", "100%")
    external, exported = external_models(), _onnx((exported_model(), *free_models_at(2)))
    sealed = Kind(sealed_entry, (json.dumps(cache_entry()).encode(),))
    chain = "chain.json"
    return {
        "onnx": Reader(fixed, ("inspect", "FILE", "--json"), "model.onnx"),
        "onnx-sizes": Reader(free, ("inspect", "FILE", "--json", *sizes), "model.onnx"),
        "onnx-compile": Reader(fixed, ("solve", "FILE", "--strategy", "chen-sqrt", "--budget", "200%", "-q"), "model.onnx", WITH_SOLVING),
        "onnx-train": Reader(free, ("differentiate", "FILE", "--loss", "mse", *sizes, "-q"), "model.onnx"),
        "onnx-rebatch": Reader(exported, ("differentiate", "FILE", "--loss", "mse", "--batch-size", "6", "-q"), "model.onnx"),
        "onnx-domains": Reader(_onnx((other_domain(),)), ("inspect", "FILE", "--json"), "model.onnx"),
        "external": Reader(_references(external), ("solve", "FILE", *keep_all, "-o", "elsewhere/", "-q"), "model.onnx", WITH_SOLVING),
        "external-train": Reader(
            _references(external[-1:]), ("differentiate", "FILE", "--loss", "mse", "-o", "elsewhere/", "-q"), "model.onnx"
        ),
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
        "cache-show": Reader(sealed, ("cache", "show", KEY, "--cache", "."), f"{KEY[:2]}/{KEY}.json", refuses=False),
        "cache-list": Reader(sealed, ("cache", "list", "--cache", "."), f"{KEY[:2]}/{KEY}.json", refuses=False),
        "points": Reader(_json(sweep_points()), ("sweep", chain), "chain.points.json", read=_read_points),
        "inputs": Reader(Kind(lambda draw: damaged_npz(npz(), draw), (npz(),)), ("profile",), "inputs.npz", read=_read_inputs),
        "config": Reader(_yaml(CONFIG), ("inspect", chain, "--config", "FILE", "-q"), "config.yaml"),
        **torch_readers(),
    }
