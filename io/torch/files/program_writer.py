"""Write a schedule as a `.pt2` file that stock torch loads: operators in the order of the schedule, with one more for each recomputation.

The program returns what the original returned, the loss first, and the gradients in a dict by the names of the parameters. Its weights are
those of the original file. They do not require gradients: the program is its own backward pass, and autograd must not record another one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from io import BytesIO
from typing import Any

import torch
from torch.fx import GraphModule

from ....core.errors import InputError
from ....core.schedule.schedule import Schedule, with_frees
from ..internals import build_exported_program, save_exported_program
from ..rewriting import rewrite
from .archive import Payload
from .program import DTYPES
from .program_graph import TorchProgram
from .program_json import OutputSpec, Ref

SIZES_NOTE, TRAINING_NOTE = "checkmate.dims", "checkmate.training"
"""What a compiled program says of how it was made, so that it can be compared with its original."""


def compiled_module(program: TorchProgram, schedule: Schedule) -> GraphModule:
    """The graph of a schedule."""
    rewritten = rewrite(program.traced, schedule.computations, program.module.graph)
    rewritten.graph.eliminate_dead_code()
    rewritten.graph.lint()
    return GraphModule(program.module, rewritten.graph)


def as_traced(program: TorchProgram) -> Schedule:
    """Every operation once, in the order in which it was traced."""
    return with_frees(program.traced.graph, range(len(program.traced.graph.operations)))


def program_bytes(program: TorchProgram, schedule: Schedule, notes: Mapping[str, Any]) -> bytes:
    """The content of the compiled file."""
    module = compiled_module(program, schedule)
    output = next(iter(module.graph.find_nodes(op="output")))
    names = [node.name if hasattr(node, "name") else None for node in output.args[0]]
    outputs = [
        OutputSpec(spec.kind, Ref(name) if name is not None else spec.value, spec.target)
        for spec, name in zip(program.outputs, names, strict=True)
    ]
    exported = build_exported_program(module, program.inputs, outputs, load_tensors(program), structures(program))
    file = BytesIO()
    about = {**notes, SIZES_NOTE: dict(program.sizes), TRAINING_NOTE: None if program.objective is None else asdict(program.training)}
    save_exported_program(exported, file, {"checkmate.json": json.dumps(about, sort_keys=True)})
    return file.getvalue()


def structures(program: TorchProgram) -> tuple[Any, Any, tuple[str, ...]]:
    """How a user passes inputs, and what is returned, as nested structures with None for each tensor; and the names of the arguments."""
    inputs: Any = program.program.input_structure or ((None,) * sum(spec.kind == "user" for spec in program.inputs), {})
    names = program.program.argument_names
    positional, keywords = inputs if isinstance(inputs, tuple) and len(inputs) == 2 and isinstance(inputs[1], dict) else ((inputs,), {})
    if program.objective is not None and program.objective.added:
        positional = (*positional, None)
        names = (*names[: len(positional) - 1], "labels", *names[len(positional) - 1 :]) if names else names
    plain = [spec for spec in program.outputs if spec.kind in ("loss", "output")]
    gradients = {spec.target: None for spec in program.outputs if spec.kind == "gradient"}
    returned: Any = (*(None for _ in plain), gradients) if gradients else tuple(None for _ in plain)
    return (positional, keywords), returned, names


def load_tensors(program: TorchProgram) -> dict[str, torch.Tensor]:
    """Parameters, buffers and constants from the original file, by name. Tensors that share an entry share memory."""
    archive = program.archive
    files: dict[str, torch.Tensor] = {}
    found: dict[str, torch.Tensor] = {}
    for spec in program.inputs:
        if spec.kind == "user":
            continue
        payload = archive.payloads.get(spec.target)
        if payload is None:
            raise InputError(f"{archive.where}: the file has no value for {spec.kind} {spec.target!r}")
        if payload.entry not in files:
            files[payload.entry] = _bytes(program, payload)
        found[spec.target] = _tensor(files[payload.entry], payload, f"{archive.where}: {spec.target}")
    return found


def _bytes(program: TorchProgram, payload: Payload) -> torch.Tensor:
    data = program.archive.read(payload.entry, 2**40)
    return torch.frombuffer(bytearray(data), dtype=torch.uint8) if data else torch.empty(0, dtype=torch.uint8)


def _tensor(file: torch.Tensor, payload: Payload, where: str) -> torch.Tensor:
    """The tensor in the bytes of an entry; it must lie within them."""
    meta = payload.meta
    sizes, strides = [size for size in meta.sizes if isinstance(size, int)], [step for step in meta.strides if isinstance(step, int)]
    if len(sizes) != len(meta.sizes) or len(strides) != len(meta.strides) or meta.dtype not in DTYPES:
        raise InputError(f"{where}: its size is not fixed")
    dtype = DTYPES[meta.dtype]
    last = meta.offset + sum((size - 1) * step for size, step in zip(sizes, strides, strict=True)) if all(sizes) else -1
    if (last + 1) * dtype.itemsize > file.numel() or file.numel() % dtype.itemsize:
        raise InputError(f"{where}: the file has {file.numel()} bytes, but the tensor ends at byte {(last + 1) * dtype.itemsize}")
    flat = file.view(dtype)
    made = flat.as_strided(sizes, strides, meta.offset)
    return torch.nn.Parameter(made, requires_grad=False) if payload.is_parameter else made
