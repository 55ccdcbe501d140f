"""Run programs for real: measure their operations, and compare a compiled program with its original. In a child process only."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from ....core.errors import InputError
from ....core.model.memory_model import MemoryModel
from ....core.model.problem import build_problem
from ....core.schedule.peak import keep_all_profile
from ...formats.content import Content
from ...formats.costs_json import match_costs, render_costs
from ..internals import allocations, operator_calls
from ..operation_costs import measure_operations
from .archive import open_archive
from .program import ProgramModule
from .program_graph import TorchProgram, read_program
from .program_json import Call, OutputSpec
from .program_training import ProgramTraining, TrainingModule
from .program_writer import load_tensors

ROUNDS = 3
SEED = 0


def profile_program(
    model: str,
    dims: Mapping[str, int],
    batch_size: int | None,
    training: Mapping[str, Any] | None,
    repeat: int,
    threads: int | None,
    on_progress: Callable[[int, int], None],
) -> dict[str, Any]:
    """Seconds and workspace of every operation."""
    if threads is not None:
        torch.set_num_threads(threads)
    program = _read(model, dims, batch_size, training)
    measured = measure_operations(program.traced, on_progress, repeat)
    return {
        "costs": render_costs(measured.costs),
        "version": torch.__version__,
        "threads": torch.get_num_threads(),
        "estimated": list(measured.estimated),
        "distinct": measured.distinct,
    }


def run_both(
    original: str,
    compiled: str,
    dims: Mapping[str, int],
    batch_size: int | None,
    training: Mapping[str, Any] | None,
    inputs: str | None,
    repeat: int,
    threads: int | None,
    seed: int,
    on_task: Callable[[str], None],
) -> dict[str, Any]:
    """Run both programs on the same inputs; what each returns, which operators ran, memory and times."""
    if threads is not None:
        torch.set_num_threads(threads)
    one, other = _read(original, dims, batch_size, training), _read(compiled, dims, batch_size, None, merge=False)
    feeds = _feeds(one, inputs, seed)
    on_task("running the original")
    expected = _results(one, feeds)
    on_task("running the compiled program")
    found = _results(other, feeds)
    different = [name for name in expected if name not in found or not _equal(expected[name], found[name])]
    apart = _apart_by_tracing(one, feeds, expected, found, different) if different and one.objective is not None else None
    on_task("measuring")
    order = _order(other, feeds)
    peak = _measured_peak(other, feeds)
    predicted = _predicted_peak(other)
    times = _times(one, other, feeds, repeat, on_task)
    return {
        "version": torch.__version__,
        "threads": torch.get_num_threads(),
        "compared": len(expected),
        "different": different,
        "apart": apart,
        "missing": [name for name in expected if name not in found],
        "order": order,
        "calls": len(other.program.calls),
        "fixed_bytes": other.traced.graph.fixed_bytes,
        "peak_bytes": peak + other.traced.graph.fixed_bytes,
        "predicted_peak_bytes": predicted,
        "times": times,
        "notes": {key: str(value) for key, value in other.archive.notes.items()},
    }


def _read(
    model: str, dims: Mapping[str, int], batch_size: int | None, training: Mapping[str, Any] | None, merge: bool = True
) -> TorchProgram:
    archive = open_archive(Content.from_path(Path(model)))
    chosen = {name: size for name, size in dims.items() if name in archive.program.symbols}
    options = None if training is None else _training(training, model)
    free = [name for name in archive.program.symbols if name not in chosen]
    return read_program(archive, chosen, batch_size if free else None, options, Path(model).stem, merge=merge)


def _training(stated: Mapping[str, Any], model: str) -> ProgramTraining:
    """Options that may come from a file."""
    loss, loss_output, predictions = (stated.get(name) for name in ("loss", "loss_output", "predictions"))
    train, freeze = (tuple(stated.get(name) or ()) for name in ("train", "freeze"))
    axis = stated.get("class_axis")
    if any(not isinstance(each, (str, type(None))) for each in (loss, loss_output, predictions, *train, *freeze)):
        raise InputError(f"{model}: what it says of its training is damaged")
    return ProgramTraining(loss, loss_output, predictions, axis if isinstance(axis, int) else None, train, freeze)


def _feeds(program: TorchProgram, path: str | None, seed: int) -> dict[str, torch.Tensor]:
    """Inputs of the user from a file, and made up where the file has none: normal numbers, and zeros and ones for integers."""
    given: dict[str, torch.Tensor] = {}
    if path is not None:
        from ...onnxruntime.npz import read_npz

        given = {name: torch.from_numpy(array.copy()) for name, array in read_npz(Path(path), lambda name, shape, dtype: None).items()}
    generator = torch.Generator().manual_seed(seed)
    placeholders = program.module.graph.find_nodes(op="placeholder")
    feeds: dict[str, torch.Tensor] = {}
    for node, spec in zip(placeholders, program.inputs, strict=True):
        if spec.kind != "user":
            continue
        fake = node.meta["val"]
        if spec.name in given:
            tensor = given.pop(spec.name)
            if tuple(tensor.shape) != tuple(fake.shape) or tensor.dtype != fake.dtype:
                raise InputError(
                    f"{path}: {spec.name} is {tensor.dtype} {tuple(tensor.shape)}, the program takes {fake.dtype} {tuple(fake.shape)}"
                )
            feeds[spec.name] = tensor.to(fake.device)
        elif fake.dtype.is_floating_point or fake.dtype.is_complex:
            feeds[spec.name] = torch.randn(tuple(fake.shape), generator=generator).to(fake.dtype).to(fake.device)
        else:
            feeds[spec.name] = torch.randint(0, 2, tuple(fake.shape), generator=generator).to(fake.dtype).to(fake.device)
    if given:
        raise InputError(f"{path}: the program has no input {next(iter(given))!r}")
    return feeds


def _arguments(program: TorchProgram, feeds: Mapping[str, torch.Tensor], *, trained: bool) -> list[torch.Tensor]:
    """The tensors of a program, in the order of its inputs. Parameters require gradients if autograd is to find them."""
    stored = load_tensors(program)
    wanted = {spec.target for spec in program.outputs if spec.kind == "gradient"} if trained else set()
    found: list[torch.Tensor] = []
    for spec in program.inputs:
        if spec.kind == "user":
            if spec.name not in feeds:
                raise InputError(f"{program.archive.where}: the other program has no input {spec.name!r}")
            found.append(feeds[spec.name])
        else:
            tensor = stored[spec.target].detach()
            found.append(tensor.requires_grad_() if spec.target in wanted else tensor)
    return found


def _module(program: TorchProgram) -> torch.nn.Module:
    inner = ProgramModule(program.program, program.archive.where)
    return inner if program.objective is None else TrainingModule(inner, program.objective)


def _step(program: TorchProgram, module: torch.nn.Module, arguments: Sequence[torch.Tensor]) -> tuple[Any, ...]:
    """One run. A forward program with a loss is run forward and backward by autograd itself."""
    torch.manual_seed(SEED)
    if program.objective is None:
        with torch.no_grad():
            outputs: tuple[Any, ...] = module(*arguments)
            return outputs
    results = module(*arguments)
    results[0].backward()
    return tuple(results)


def _results(program: TorchProgram, feeds: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Everything a run gives, by name: outputs by their place, gradients and new values of buffers by the name of what they belong to."""
    arguments = _arguments(program, feeds, trained=program.objective is not None)
    returned = _step(program, _module(program), arguments)
    found: dict[str, torch.Tensor] = {}
    if program.objective is not None:
        for place, value in enumerate(returned):
            if isinstance(value, torch.Tensor):
                found[f"output {place}"] = value.detach()
        for spec, tensor in zip(program.inputs, arguments, strict=True):
            if tensor.grad is not None:
                found[f"gradient of {spec.target}"] = tensor.grad
            elif spec.kind == "buffer" and any(each.kind == "buffer" and each.target == spec.target for each in program.outputs):
                found[f"buffer {spec.target}"] = tensor
        return found
    place = 0
    for stated, value in zip(program.program.outputs, returned, strict=True):
        is_output = stated.kind in ("output", "loss")
        if isinstance(value, torch.Tensor):
            found[f"output {place}" if is_output else f"{'gradient of' if stated.kind == 'gradient' else stated.kind} {stated.target}"] = (
                value
            )
        place += is_output
    for written, tensor in zip(program.inputs, arguments, strict=True):
        target = f"buffer {written.target}"
        if (
            written.kind == "buffer"
            and target not in found
            and any(each.kind == "buffer" and each.target == written.target for each in program.outputs)
        ):
            found[target] = tensor
    return found


def _named(program: TorchProgram, outputs: Sequence[OutputSpec], returned: Sequence[Any]) -> dict[str, torch.Tensor]:
    found: dict[str, torch.Tensor] = {}
    place = 0
    for stated, value in zip(outputs, returned, strict=True):
        is_output = stated.kind in ("output", "loss")
        if isinstance(value, torch.Tensor):
            found[f"output {place}" if is_output else f"{'gradient of' if stated.kind == 'gradient' else stated.kind} {stated.target}"] = (
                value
            )
        place += is_output
    return found


def _apart_by_tracing(
    program: TorchProgram,
    feeds: Mapping[str, torch.Tensor],
    expected: Mapping[str, torch.Tensor],
    found: Mapping[str, torch.Tensor],
    different: Sequence[str],
) -> float | None:
    """How far tracing alone is from eager mode, relative to the largest number of each result; None if that is not all of the difference.

    torch runs a few operators (aten.lstm) by other kernels in eager mode than when it traces them.
    """
    arguments = _arguments(program, feeds, trained=False)
    torch.manual_seed(SEED)
    with torch.no_grad():
        returned = program.module(*arguments)
    traced = _named(program, program.outputs, returned)
    if any(name not in traced or name not in found or not _equal(traced[name], found[name]) for name in different):
        return None
    shares = [
        float((expected[name].double() - traced[name].double()).abs().max() / expected[name].double().abs().max().clamp(min=1e-30))
        for name in different
    ]
    return max(shares)


def _equal(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Bit-equal; a NaN is equal to itself."""
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    return bool(
        torch.equal(one, other)
        or (one.is_floating_point() and torch.equal(one.isnan(), other.isnan()) and torch.equal(one.nan_to_num(), other.nan_to_num()))
    )


def _order(program: TorchProgram, feeds: Mapping[str, torch.Tensor]) -> list[str]:
    """What is wrong with the order in which operators ran."""
    arguments, module = _arguments(program, feeds, trained=False), _module(program)
    ran = operator_calls(lambda: _step(program, module, arguments))
    stated = [_registered(call) for call in program.program.calls if call.target.startswith("torch.ops.")]
    wanted = iter(ran)
    for number, name in enumerate(stated):
        if not any(found == name for found in wanted):
            return [f"operator {number} of the file, {name}, did not run in its place"]
    return []


def _registered(call: Call) -> str:
    namespace, name, _ = call.target.removeprefix("torch.ops.").split(".")
    return f"{namespace}::{name}"


def _measured_peak(program: TorchProgram, feeds: Mapping[str, torch.Tensor]) -> int:
    """The most that a run allocates on top of its inputs."""
    arguments, module = _arguments(program, feeds, trained=False), _module(program)
    _step(program, module, arguments)

    def run() -> None:
        _step(program, module, arguments)

    _, changes = allocations(run)
    now = most = 0
    for change in changes:
        now += change
        most = max(most, now)
    return most


def _predicted_peak(program: TorchProgram) -> int:
    """The peak that the model of memory says, with workspace measured here."""
    graph, costs = match_costs(program.traced.graph, measure_operations(program.traced).costs)
    return keep_all_profile(build_problem(graph, costs, memory_model=MemoryModel.TORCH)).peak


def _times(
    one: TorchProgram, other: TorchProgram, feeds: Mapping[str, torch.Tensor], repeat: int, on_task: Callable[[str], None]
) -> list[list[float]]:
    """The shortest run of each round; rounds alternate, so that a machine that becomes slower affects both."""
    runs = [(each, _module(each), _arguments(each, feeds, trained=each.objective is not None)) for each in (one, other)]
    times: list[list[float]] = [[], []]
    for number in range(min(ROUNDS, repeat)):
        on_task(f"timing, round {number + 1}")
        for (program, module, arguments), found in zip(runs, times, strict=True):
            shortest = float("inf")
            for _ in range(-(-repeat // ROUNDS)):
                for tensor in arguments:
                    tensor.grad = None
                begun = time.perf_counter()
                _step(program, module, arguments)
                shortest = min(shortest, time.perf_counter() - begun)
            found.append(shortest)
    return times
