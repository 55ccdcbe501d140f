"""Training graphs from files and into files: the model, and beside it the values of all inputs that a training loop owns."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import BinaryIO
from zipfile import ZipFile, ZipInfo

import numpy as np
from onnx import TensorProto, numpy_helper
from onnx.external_data_helper import load_external_data_for_tensor

from ....core.errors import InputError
from ...atomic import atomic_write
from ...content import Content
from ..external import save_model
from ..files import load_model, one_line
from ..stored import Array, check_location
from .options import Parameter, TrainingGraph, TrainingOptions
from .training import differentiate


@dataclass(frozen=True, slots=True)
class Differentiated:
    """A training graph and the file its forward model came from, which may have weights in files beside it."""

    graph: TrainingGraph
    path: Path | None


def differentiate_file(source: str, options: TrainingOptions, stdin: BinaryIO | None = None) -> Differentiated:
    """Read a forward model from a file, or from standard input if the source is `-`."""
    content = Content.from_stream(stdin or sys.stdin.buffer) if source == "-" else Content.from_path(Path(source))
    model = load_model(content.path or content.received or b"", content.where)
    try:
        return Differentiated(differentiate(model, options), content.path)
    except InputError as error:
        raise InputError(f"{content.where}: {error}") from None


def write_training(made: Differentiated, model: Path, values: Path) -> list[Path]:
    """Write the model, and the values unless the parameters stayed in it and nothing else is to be fed back. Says which files are new."""
    arrays = {
        name: numbers for name, numbers in owned_values(made).items() if name in {value.name for value in made.graph.model.graph.input}
    }
    written = list(save_model(made.graph.model, model, made.path))
    if arrays:
        atomic_write(values, _npz(arrays))
        written.append(values)
    return written


def _npz(arrays: dict[str, Array]) -> bytes:
    """As `numpy.savez` writes, which cannot take every name as a keyword."""
    buffer = BytesIO()
    with ZipFile(buffer, "w") as archive:
        for name, numbers in arrays.items():
            with archive.open(ZipInfo(f"{name}.npy"), "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, np.asarray(numbers), allow_pickle=False)
    return buffer.getvalue()


def owned_values(made: Differentiated) -> dict[str, Array]:
    """What a training loop feeds besides data and labels, to begin with: parameters, running statistics, state of the optimizer."""
    values = {parameter.name: _array(parameter, made.path) for parameter in made.graph.parameters}
    return {**values, **made.graph.state}


def _array(parameter: Parameter, source: Path | None) -> Array:
    stored = parameter.stored
    if stored is None or stored.data_location != TensorProto.EXTERNAL:
        return parameter.array()
    check_location(stored)
    if source is None:
        raise InputError(f"parameter {parameter.name!r} lies in a file beside the model, which cannot be found from standard input")
    copy = TensorProto()
    copy.CopyFrom(stored)
    try:
        load_external_data_for_tensor(copy, str(source.parent))
        return np.asarray(numpy_helper.to_array(copy))
    except (OSError, ValueError, RuntimeError) as error:
        raise InputError(f"parameter {parameter.name!r} cannot be read from the file beside the model: {one_line(error)}") from None
