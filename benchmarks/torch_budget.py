"""PyTorch: our plans beside torch's own `activation_memory_budget`, on the same joint graphs, with the same measured costs of operations.

    python benchmarks/torch_budget.py                         all models, one table (about a quarter of an hour on two cores)
    python benchmarks/torch_budget.py --models gpt resnet     some of them

For every setting of torch (a budget of 0 to 1 in steps of 0.1, with and without `aggressive_recomputation`) the step is compiled and run,
and its real peak is measured by torch's profiler. Its overhead is the cost of what it recomputes. Ours is that of the certified schedule
for the same number of bytes. Models from `transformers` are built from configurations, without weights.
"""

from __future__ import annotations

import argparse
import copy
import math
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from torch._functorch.partitioners import min_cut_rematerialization_partition

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))

from torch_runs import differences, forget_gradients, peak_bytes
from torch_zoo import GPT, CellLoop, MobileNet, MoE, ResNet, UNet, ViT, images, loss_inside, sequences, tokens, vectors

import checkmate
import checkmate.torch
from checkmate.api.graph import LoadedGraph
from checkmate.api.pricing import PricedGraph
from checkmate.api.smallest import find_min_budget
from checkmate.api.solving import solving_options
from checkmate.io.torch.internals import boxed, compile_in_parts, run_boxed
from checkmate.io.torch.joint_graphs import joint_roles
from checkmate.io.torch.operation_costs import _described, _key, measure_operations
from checkmate.io.torch.traced import TracedGraph, read_traced

SETTINGS = [(budget / 10, aggressive) for aggressive in (False, True) for budget in range(11)]
ROUNDS = 5
"""Interleaved rounds of timed steps."""
GAP = 5e-4
"""At which our search stops: some of torch's settings cost less than the default gap of 0.5 %."""
LEAST_OVERHEAD = 1e-3
"""Below this, a setting of torch counts as one without recomputation."""
SHARES = ("80%", "60%")
"""Budgets at which our plan is run for real."""


@dataclass
class Model:
    """A model with its loss, and inputs."""

    make: Callable[[], torch.nn.Module]
    inputs: Callable[[], tuple[torch.Tensor, ...]]


def bert() -> torch.nn.Module:
    from transformers import BertConfig, BertForMaskedLM

    config = BertConfig(vocab_size=1000, hidden_size=192, num_hidden_layers=3, num_attention_heads=4, intermediate_size=768)
    return WithLoss(BertForMaskedLM(config))


def llama() -> torch.nn.Module:
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=1000,
        hidden_size=192,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=2,
        intermediate_size=512,
        use_cache=False,
    )
    return WithLoss(LlamaForCausalLM(config))


class WithLoss(torch.nn.Module):
    """A language model of transformers, with its loss."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, words: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.cross_entropy(self.model(input_ids=words).logits.flatten(0, 1), labels.flatten())


MODELS = {
    "gpt": Model(lambda: GPT(4, 192, 4, 1000, 128), lambda: tokens(8, 1000, 128)),
    "resnet": Model(lambda: ResNet(32, 6), lambda: images(16, 32)),
    "unet": Model(lambda: UNet(16), lambda: images(4, 64, 4, dense=True)),
    "vit": Model(lambda: ViT(192, 4), lambda: images(64, 32)),
    "mobilenet": Model(lambda: MobileNet(16, 5), lambda: images(16, 64)),
    "lstm-cells": Model(lambda: CellLoop(), lambda: sequences(1024, 16)),
    "moe": Model(lambda: MoE(128, 8), lambda: vectors(2048, 16)),
    "bert": Model(bert, lambda: tokens(8, 1000, 64)),
    "llama": Model(llama, lambda: tokens(8, 1000, 64)),
}


@dataclass
class Parts:
    """A step as torch's partitioner splits it for one setting."""

    budget: float
    aggressive: bool
    forward: Any
    backward: Any


@dataclass
class Joint:
    """The joint graph of a model, with the cost of every distinct operation."""

    priced: PricedGraph
    table: dict[Any, float]
    forward_count: int
    inputs: list[Any]
    """Parameters, buffers and inputs of the forward part."""
    theirs: list[Parts]


@dataclass
class Point:
    """One setting of torch."""

    budget: float
    aggressive: bool
    peak: int
    overhead: float


@dataclass
class Row:
    name: str
    points: list[Point] = field(default_factory=list)
    ours: dict[int, float] = field(default_factory=dict)
    """Overhead by peak; infinite where nothing was found."""
    lowest: int = 0
    keep_all: int = 0
    exact: list[int] = field(default_factory=list)
    """Bytes between predicted and measured peak, at some budgets."""
    equal_to: set[str] = field(default_factory=lambda: {"eager", "traced"})
    """What gradients and buffers are bit-equal to."""
    times: tuple[float, float] = (math.nan, math.nan)
    """Of a step, relative to eager mode: torch's at its lowest peak, ours at the same one."""


def trace(model: Model) -> Joint:
    """The joint graph as torch.compile makes it, and what torch's own partitioner makes of it for every setting."""
    caught: list[TracedGraph] = []
    theirs: list[Parts] = []
    arguments: list[Any] = []

    def backend(gm: Any, inputs: Any) -> Any:
        def partition(joint: Any, joint_inputs: Any, *, num_fwd_outputs: int, **more: Any) -> Any:
            roles = joint_roles(joint, num_fwd_outputs, more.get("static_lifetime_input_indices") or ())
            caught.append(read_traced(joint.graph, roles, "model"))
            for budget, aggressive in SETTINGS:
                with torch_settings(budget, aggressive), warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    parts = min_cut_rematerialization_partition(copied(joint), joint_inputs, num_fwd_outputs=num_fwd_outputs, **more)
                theirs.append(Parts(budget, aggressive, *parts))
            return theirs[-1].forward, theirs[-1].backward

        return compile_in_parts(gm, inputs, partition, {"fw_compiler": keep_inputs, "bw_compiler": lambda part, _: boxed(run_boxed(part))})

    def keep_inputs(part: Any, _: Any) -> Any:
        code = run_boxed(part)

        def run(given: list[Any]) -> Any:
            arguments[:] = given
            return code(given)

        return boxed(run)

    torch._dynamo.reset()
    torch.compile(model.make(), backend=backend)(*model.inputs())
    (traced,) = caught
    measured = measure_operations(traced)
    priced = LoadedGraph(traced.graph, "torch", "").price(measured.costs)
    table = {
        _key(nodes[0]): measured.costs.costs[op.name]
        for nodes, op in zip(traced.nodes, traced.graph.operations, strict=True)
        if nodes and not op.view
    }
    return Joint(priced, table, traced.roles.forward_count, arguments, theirs)


def copied(joint: Any) -> Any:
    return torch.fx.GraphModule(joint, copy.deepcopy(joint.graph))


@contextmanager
def torch_settings(budget: float, aggressive: bool) -> Iterator[None]:
    from torch._functorch import config

    with config.patch(activation_memory_budget=budget, aggressive_recomputation=aggressive, enable_autograd_cache=False):
        yield


def torch_backend() -> Callable[..., Any]:
    """torch's own partitioner with its own kernels."""

    def compiler(part: Any, _: Any) -> Any:
        return boxed(run_boxed(part))

    compilers = {"fw_compiler": compiler, "bw_compiler": compiler}
    return lambda gm, inputs: compile_in_parts(gm, inputs, min_cut_rematerialization_partition, compilers)


def operation_key(node: Any) -> Any:
    """torch wraps random operations that it runs twice: `run_and_save_rng_state(op, ...)` and `run_with_rng_state(state, op, ...)`."""
    operators = [place for place, each in enumerate(node.args[:2]) if isinstance(each, torch._ops.OpOverload)]
    if operators:
        return node.args[operators[0]], _described(node.args[operators[0] + 1 :]), _described(node.kwargs)
    return _key(node)


def torch_points(joint: Joint) -> list[Point]:
    """Real peak and cost of each setting. Settings that lead to the same graphs are run once."""
    known: dict[str, tuple[int, float]] = {}
    points = []
    for parts in joint.theirs:
        text = parts.forward.code + parts.backward.code
        if text not in known:
            known[text] = run_parts(joint, parts), cost_of(joint, parts) / joint.priced.problem.ideal_cost - 1
        points.append(Point(parts.budget, parts.aggressive, *known[text]))
    return points


def cost_of(joint: Joint, parts: Parts) -> float:
    nodes = [node for part in (parts.forward, parts.backward) for node in part.graph.nodes if node.op == "call_function"]
    return sum(joint.table.get(operation_key(node), 0.0) for node in nodes)


def run_parts(joint: Joint, parts: Parts) -> int:
    """The peak of a step: the loss is held, new values of buffers are not (they are copied to where they belong)."""
    forward, backward = run_boxed(parts.forward), run_boxed(parts.backward)

    def step() -> Any:
        outputs = list(forward(list(joint.inputs)))
        loss, saved = outputs[joint.forward_count - 1], outputs[joint.forward_count :]
        del outputs
        tangent = torch.ones_like(loss)
        saved.append(tangent)  # held by autograd until the end, as the loss is by the caller
        return loss, backward(saved), tangent

    with torch.no_grad():
        step()
        return peak_bytes(step) + joint.priced.graph.fixed_bytes


def ours(joint: Joint, peak: int, time_limit: float) -> tuple[float, int]:
    """Overhead and peak of our schedule within so many bytes."""
    try:
        result = joint.priced.solve(str(peak), time_limit=time_limit, gap=GAP)
    except checkmate.CheckmateError:
        return math.inf, 0
    return result.overhead, result.peak_bytes


def run_ours(model: Model, row: Row, time_limit: float) -> None:
    """Train for two steps at some budgets: bits, buffers, and the peak against the prediction.

    Code that asks whether it is compiled (masks in transformers) may compute something else then, whatever the backend: where eager mode
    differs, the bits are compared with torch's backend that runs what was traced as it is.
    """
    for share in SHARES:
        torch._dynamo.reset()
        torch.manual_seed(0)
        eager = model.make()
        traced, plain = copy.deepcopy(eager), copy.deepcopy(eager)
        inputs = model.inputs()
        compiled = checkmate.torch.compile(plain, budget=share, cache=False, time_limit=time_limit)
        runs = {"eager": eager, "traced": torch.compile(traced, backend="eager"), "ours": compiled}
        try:
            for seed in range(2):
                forget_gradients(eager, traced, plain)
                for each in runs.values():
                    torch.manual_seed(seed)
                    loss_inside(each, inputs)
                row.equal_to &= {name for name, module in (("eager", eager), ("traced", traced)) if not differences(module, plain)}
        except checkmate.InfeasibleError:
            continue
        forget_gradients(plain)
        (plan,) = checkmate.torch.plans(plain)
        row.exact.append(
            peak_bytes(lambda compiled=compiled, inputs=inputs: loss_inside(compiled, inputs)) + plan.fixed_bytes - plan.peak_bytes
        )


def step_times(model: Model, row: Row, time_limit: float) -> None:
    """A step of torch at the lowest peak at which it runs, of ours within the same bytes, and of eager mode, in turn."""
    inputs = model.inputs()
    modules = [model.make() for _ in range(3)]
    for point in sorted(row.points, key=lambda point: (point.peak, point.overhead)):
        torch._dynamo.reset()
        with torch_settings(point.budget, point.aggressive):
            theirs = torch.compile(modules[1], backend=torch_backend())
            try:
                loss_inside(theirs, inputs)
            except RuntimeError as error:  # it saves running statistics for the backward pass, and the step writes to them
                print(f"{row.name}: torch fails with {point}: {str(error).splitlines()[0][:100]}", file=sys.stderr)
                continue
            break
    else:
        return
    mine = checkmate.torch.compile(modules[2], budget=point.peak, cache=False, time_limit=time_limit)
    loss_inside(mine, inputs)
    times: list[list[float]] = [[], [], []]
    for _ in range(ROUNDS):
        for each, module, found in zip((modules[0], theirs, mine), modules, times, strict=True):
            forget_gradients(module)
            begun = time.perf_counter()
            loss_inside(each, inputs)
            found.append(time.perf_counter() - begun)
    eager, torchs, ourselves = (statistics.median(found) for found in times)
    row.times = torchs / eager, ourselves / eager


def examine(name: str, model: Model, time_limit: float) -> Row:
    """All figures of one model; the time that each part takes goes to stderr."""
    begun = time.perf_counter()

    def done(part: str) -> None:
        nonlocal begun
        print(f"{name}: {part} {time.perf_counter() - begun:.0f} s", file=sys.stderr, flush=True)
        begun = time.perf_counter()

    torch.manual_seed(0)
    joint = trace(model)
    row = Row(name, keep_all=joint.priced.keep_all.peak)
    done("tracing and torch's partitioner")
    row.points = torch_points(joint)
    done("torch's peaks")
    for peak in sorted({point.peak for point in row.points}):
        row.ours[peak], _ = ours(joint, peak, time_limit)
    done(f"our schedules for {len(row.ours)} peaks")
    row.lowest = find_min_budget(joint.priced, solving_options(time_limit=time_limit)).budget_bytes
    done("smallest budget")
    run_ours(model, row, time_limit)
    done("our training steps")
    step_times(model, row, time_limit)
    done("step times")
    return row


def geometric_ratio(row: Row) -> float:
    """Our overhead to torch's best at each peak, where both recompute: where ours is 0 the ratio would say anything."""
    best: dict[int, float] = {}
    for point in row.points:
        if point.overhead > LEAST_OVERHEAD and row.ours[point.peak] > 0:
            best[point.peak] = min(best.get(point.peak, math.inf), point.overhead)
    ratios = [row.ours[peak] / overhead for peak, overhead in best.items()]
    return math.exp(statistics.mean(map(math.log, ratios))) if ratios else math.nan


def row_text(row: Row) -> str:
    counted = [point for point in row.points if point.overhead > LEAST_OVERHEAD]
    worst = max((row.ours[point.peak] / point.overhead for point in counted), default=math.nan)
    cells = (
        f"{row.keep_all / 1e6:.1f} MB",
        f"{min(point.peak for point in row.points) / 1e6:.1f} MB",
        f"{row.lowest / 1e6:.1f} MB",
        f"{len(counted)}",
        f"{geometric_ratio(row):.2f}, {worst:.2f}",
        ", ".join(f"{-each} B" for each in row.exact),
        "= eager" if "eager" in row.equal_to else "= traced" if row.equal_to else "differ",
        f"{row.times[0]:.2f}",
        f"{row.times[1]:.2f}",
    )
    return " | ".join(cells)


def show(rows: list[Row]) -> None:
    print(
        "\n| model | keep-all | torch's lowest peak | ours | settings that recompute | our overhead / torch's (geometric mean, worst) | "
        "predicted - measured peak | bits | step, torch / eager | ours / eager |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    for row in rows:
        print(f"| {row.name} | {row_text(row)} |")
    ratios = [geometric_ratio(row) for row in rows if not math.isnan(geometric_ratio(row))]
    print(f"\ngeometric mean over models: {math.exp(statistics.mean(map(math.log, ratios))):.3f}")
    never_more = all(row.ours[point.peak] <= point.overhead + GAP for row in rows for point in row.points)
    costs = [[row.ours[peak] for peak in sorted(row.ours)] for row in rows]
    monotone = all(later <= earlier + GAP for each in costs for earlier, later in pairwise(each))
    print(f"ours is never more than torch's: {never_more}; never rises with the budget: {monotone} (both within {GAP:.2%})")
    for row in rows:
        print(f"\n{row.name}: torch's settings, their real peak and overhead, and ours within the same bytes")
        for point in sorted(row.points, key=lambda point: (point.peak, point.overhead)):
            setting = f"{point.budget:.1f}{' aggressive' if point.aggressive else ''}"
            print(f"  {setting:15} {point.peak / 1e6:9.2f} MB  {100 * point.overhead:7.2f} %  {100 * row.ours[point.peak]:7.2f} %")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", choices=tuple(MODELS), default=list(MODELS))
    parser.add_argument("--time-limit", type=float, default=4.0, help="seconds for each of our schedules")
    parser.add_argument("--torch-threads", type=int, default=1, help="threads of torch; with one, a busy machine disturbs less")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.torch_threads)
    rows = []
    for name in arguments.models:
        rows.append(examine(name, MODELS[name], arguments.time_limit))
        print(f"| {name} | {row_text(rows[-1])} |", file=sys.stderr, flush=True)
    show(rows)


if __name__ == "__main__":
    main()
