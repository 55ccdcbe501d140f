"""Measure what the operations of a traced graph cost on this machine: seconds, and the memory that each needs only while it runs.

Operations that do the same work (the layers of a transformer) are measured once. Inputs are made up: floating-point numbers are one half,
integers zero, so that indices are in range. A few operators could crash on such data, and those of the user may do anything; they are not
run, their time is estimated from the bytes they move, and they are listed.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import Node

from ..formats.costs_json import CostsFile
from .internals import allocations, at_sizes, is_operator, number_hint, size_hint
from .storages import tensors_in
from .traced import TracedGraph

REPEATS = 3
SHORT = 0.02
"""Seconds. An operation is timed `REPEATS` times, or once if that takes longer; the shortest time counts. On a shared machine the shortest
of three was within 5 % of the shortest of twenty for operations of over 0.1 ms."""
LEAST_SECONDS = 1e-6
_UNSAFE = ("rnn", "lstm", "gru", "sparse", "nested", "quantized", "fbgemm", "unique", "nonzero")
"""Parts of the names of operators that are not run on made-up data: their inputs are packed or must be consistent with each other."""


@dataclass(frozen=True)
class OperationCosts:
    """The costs file of a traced graph, and what could not be measured."""

    costs: CostsFile
    distinct: int
    """How many operations were run."""
    seconds: float
    """How long that took."""
    estimated: tuple[str, ...]
    """Kinds of operations that were not run."""


@dataclass(frozen=True)
class _Measured:
    seconds: float
    workspace: int


def measure_operations(
    traced: TracedGraph, on_progress: Callable[[int, int], None] = lambda done, total: None, repeats: int = REPEATS
) -> OperationCosts:
    """Measure every operation once.

    In a thread of its own: modes of torch (fake tensors, autocast, gradients, a profiler) belong to a thread, and a new one has none of
    them. The state of the random number generators is restored.
    """
    with at_sizes(traced.sizes):
        return _measured(traced, on_progress, repeats)


def _measured(traced: TracedGraph, on_progress: Callable[[int, int], None], repeats: int) -> OperationCosts:
    begun = time.perf_counter()
    keys: dict[int, Any] = {}
    for number, nodes in enumerate(traced.nodes):
        if nodes and not traced.graph.operations[number].view:
            keys[number] = _key(nodes[0])
    distinct = {key: number for number, key in reversed(keys.items())}
    results: dict[Any, _Measured | None] = {}

    def run() -> None:
        with _isolated(traced.device):
            for done, (key, number) in enumerate(distinct.items()):
                results[key] = _measure(traced.nodes[number][0], traced.device, repeats)
                on_progress(done + 1, len(distinct))

    _in_new_thread(run)
    return _assembled(traced, keys, results, time.perf_counter() - begun)


def _in_new_thread(run: Callable[[], None]) -> None:
    failure: list[BaseException] = []

    def guarded() -> None:
        try:
            run()
        except BaseException as error:
            failure.append(error)

    thread = threading.Thread(target=copy_context().run, args=(guarded,), name="checkmate-measure")
    thread.start()
    thread.join()
    if failure:
        raise failure[0]


@contextmanager
def _isolated(device: torch.device) -> Iterator[None]:
    devices = [] if device.type == "cpu" else [device]
    with torch.random.fork_rng(devices=devices, device_type="cuda" if device.type == "cpu" else device.type), torch.no_grad():
        yield


def _assembled(traced: TracedGraph, keys: dict[int, Any], results: dict[Any, _Measured | None], seconds: float) -> OperationCosts:
    operations = traced.graph.operations
    rates = [
        (operations[number].work.moved_bytes or 0) / found.seconds for number, key in keys.items() if (found := results[key]) is not None
    ]
    rate = statistics.median(rates) if rates else 1e9
    costs: dict[str, float] = {}
    workspace: dict[str, int] = {}
    estimated: dict[str, None] = {}
    for number, operation in enumerate(operations):
        if operation.view:
            continue
        found = results[keys[number]] if number in keys else _Measured(0.0, 0)
        if found is None:
            estimated[operation.kind] = None
            found = _Measured(max((operation.work.moved_bytes or 0) / max(rate, 1.0), LEAST_SECONDS), operation.workspace)
        costs[operation.name] = found.seconds
        if number in keys:
            workspace[operation.name] = found.workspace
    comment = f"torch {torch.__version__}, {traced.device.type}, {torch.get_num_threads()} threads"
    return OperationCosts(
        CostsFile("measured", "s", costs, workspace, comment), sum(each is not None for each in results.values()), seconds, tuple(estimated)
    )


def _key(node: Node) -> Any:
    """Equal for operations that do the same work."""
    return node.target, _described(node.args), _described(node.kwargs)


def _described(argument: Any) -> Any:
    if isinstance(argument, Node):
        return _described(argument.meta.get("val"))
    if isinstance(argument, torch.Tensor):
        return (
            tuple(size_hint(size) for size in argument.shape),
            tuple(size_hint(step) for step in argument.stride()),
            argument.dtype,
            argument.device,
        )
    if isinstance(argument, (tuple, list)):
        return tuple(_described(item) for item in argument)
    if isinstance(argument, dict):
        return tuple((name, _described(item)) for name, item in argument.items())
    if isinstance(argument, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        return number_hint(argument)
    return type(argument), repr(argument)


def can_be_run(node: Node) -> bool:
    """True if it can be run on made-up data."""
    if not is_operator(node.target) or node.target.namespace not in ("aten", "prims"):
        return False
    name = node.target.overloadpacket.__name__
    mutable = node.target._schema.is_mutable
    return bool(tensors_in(node.meta.get("val"))) and not mutable and not any(part in name for part in _UNSAFE)


def _measure(node: Node, device: torch.device, repeats: int) -> _Measured | None:
    """None if it cannot be run here."""
    if not can_be_run(node):
        return None
    try:
        arguments = [_real(argument, device) for argument in node.args]
        keywords = {name: _real(argument, device) for name, argument in node.kwargs.items()}

        def call() -> Any:
            return node.target(*arguments, **keywords)

        workspace = _workspace(call, device)
        times: list[float] = []
        while len(times) < repeats and (sum(times) < SHORT or repeats > REPEATS):
            times.append(_timed(call, device))
    except (RuntimeError, ValueError, IndexError, TypeError):
        return None
    return _Measured(max(min(times), LEAST_SECONDS), workspace)


def _workspace(call: Callable[[], Any], device: torch.device) -> int:
    """The most that is allocated while it runs, above what it returns."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
        before = torch.cuda.memory_allocated(device)
        torch.cuda.reset_peak_memory_stats(device)
        kept = call()
        torch.cuda.synchronize(device)
        most, after = torch.cuda.max_memory_allocated(device) - before, torch.cuda.memory_allocated(device) - before
        del kept
        return max(0, most - after)
    kept, changes = allocations(call)
    del kept
    now = most = 0
    for change in changes:
        now += change
        most = max(most, now)
    return most - now


def _timed(call: Callable[[], Any], device: torch.device) -> float:
    begun = time.perf_counter()
    call()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter() - begun


def _real(argument: Any, device: torch.device) -> Any:
    """A tensor of the same size, strides and type on the real device, in place of a fake one."""
    if isinstance(argument, Node):
        return _real(argument.meta.get("val"), device)
    if isinstance(argument, torch.Tensor):
        return _tensor(argument)
    if isinstance(argument, (tuple, list)):
        return [_real(item, device) for item in argument]
    if isinstance(argument, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        return number_hint(argument)
    return argument


def _tensor(fake: torch.Tensor) -> torch.Tensor:
    sizes = [size_hint(size) or 0 for size in fake.shape]
    strides = [size_hint(step) or 0 for step in fake.stride()]
    count = 1 + sum((size - 1) * step for size, step in zip(sizes, strides, strict=True)) if all(sizes) else 0
    value: Any = 0.5 if fake.dtype.is_floating_point or fake.dtype.is_complex else fake.dtype is torch.bool
    storage = torch.full((count,), value, dtype=fake.dtype, device=fake.device)
    return storage.as_strided(sizes, strides)
