"""Read forward models and write training graphs: the model, and next to it the initial values of parameters and state."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import BinaryIO
from zipfile import ZipFile, ZipInfo

import numpy as np
from onnx import ModelProto, TensorProto, numpy_helper

from ....core.errors import InputError
from ...formats.atomic import atomic_write
from ...formats.content import Content
from ..proto.external import save_model
from ..proto.external_data import check_location
from ..proto.model_file import load_model
from ..proto.stored import Array, external_array, shape_numbers
from .training_graph import differentiate
from .training_options import Parameter, TrainingGraph, TrainingOptions


@dataclass(frozen=True, slots=True)
class Differentiated:
    """A training graph and the file of its forward model, which may have external weights."""

    graph: TrainingGraph
    path: Path | None

    def write(self, model: Path, values: Path) -> list[Path]:
        """Write the model, and the initial values if there are any. Returns the new files."""
        inputs = {value.name for value in self.graph.model.graph.input}
        arrays = {name: numbers for name, numbers in owned_values(self).items() if name in inputs}
        written = list(save_model(self.graph.model, model, self.path))
        if arrays:
            atomic_write(values, _npz(arrays))
            written.append(values)
        return written


def differentiate_source(
    source: str | Path | bytes | ModelProto, options: TrainingOptions, stdin: BinaryIO | None = None
) -> Differentiated:
    """Read a forward model from a file (`-` is standard input), from bytes, or from a `ModelProto`."""
    if isinstance(source, ModelProto):
        return Differentiated(differentiate(source, options), None)
    if isinstance(source, bytes):
        content = Content.from_bytes(source, "bytes")
    else:
        content = Content.from_stream(stdin or sys.stdin.buffer) if source == "-" else Content.from_path(Path(source))
    model = load_model(content.path or content.received or b"", content.where)
    try:
        if content.path is not None:
            _bring_in_shapes(model, content.path.parent)
        return Differentiated(differentiate(model, options), content.path)
    except InputError as error:
        raise InputError(f"{content.where}: {error}") from None


def _bring_in_shapes(model: ModelProto, folder: Path) -> None:
    """Check all external data, and store the small tensors that may determine shapes in the model itself."""
    for tensor in model.graph.initializer:
        if tensor.data_location == TensorProto.EXTERNAL:
            numbers = shape_numbers(tensor, folder)
            if numbers is not None:
                tensor.CopyFrom(numpy_helper.from_array(numbers, tensor.name))


def _npz(arrays: dict[str, Array]) -> bytes:
    """The format of `numpy.savez`, which does not accept every name as a keyword."""
    buffer = BytesIO()
    with ZipFile(buffer, "w") as archive:
        for name, numbers in arrays.items():
            with archive.open(ZipInfo(f"{name}.npy"), "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, np.asarray(numbers), allow_pickle=False)
    return buffer.getvalue()


def owned_values(made: Differentiated) -> dict[str, Array]:
    """The initial values that a training loop feeds besides data and labels: parameters, running statistics, state of the optimizer."""
    values = {parameter.name: _array(parameter, made.path) for parameter in made.graph.parameters}
    return {**values, **made.graph.state}


def _array(parameter: Parameter, source: Path | None) -> Array:
    stored = parameter.stored
    if stored is None or stored.data_location != TensorProto.EXTERNAL:
        return parameter.array()
    if source is None:
        raise InputError(f"parameter {parameter.name!r} is in an external file, which standard input cannot provide; give a model file")
    numbers = external_array(stored, source.parent)
    if numbers is None:
        raise InputError(
            f"parameter {parameter.name!r} is in an external file that is missing: {source.parent / check_location(stored)}; put it there"
        )
    return numbers
