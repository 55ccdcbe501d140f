"""A model that is larger than an ONNX file can be: its weights go into a file next to it."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from google.protobuf.message import Message  # type: ignore[import-untyped]
from onnx import GraphProto, ModelProto, StringStringEntryProto, TensorProto

from ....core.errors import InputError
from .model_file import LARGEST_PROTOBUF

SUFFIX = ".weights"
_LEAST_BYTES = 1024
"""Smaller tensors stay in the file: shapes, axes, scales."""
_ALIGNMENT = 4096
"""Tensors begin at whole pages, so that they can be mapped into memory."""


def with_weights_apart(model: ModelProto, target: Path, limit: int = LARGEST_PROTOBUF) -> tuple[ModelProto, Path | None]:
    """The model itself, or, if it is too large for a file, a copy without its weights and the file that they were written to."""
    sizes = [tensor.ByteSize() for tensor in model.graph.initializer]
    if sum(sizes) <= limit // 2 or sum(sizes) + _without_initializers(model).ByteSize() <= limit:
        return model, None
    path = target.with_name(target.name + SUFFIX)
    lean = _without_initializers(model)
    temporary = target.with_name(f".checkmate-{secrets.token_hex(8)}.tmp")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            with temporary.open("wb") as file:
                for tensor in model.graph.initializer:
                    lean.graph.initializer.append(_moved(tensor, file, path.name))
            os.replace(temporary, path)
        except BaseException:
            with suppress(OSError):
                temporary.unlink()
            raise
    except OSError as error:
        raise InputError(f"cannot write {path}: {(error.strerror or str(error)).lower()}") from None
    return lean, path


def _moved(tensor: TensorProto, file: BinaryIO, name: str) -> TensorProto:
    """The tensor without its contents, which are written to the file."""
    if tensor.data_location == TensorProto.EXTERNAL or len(tensor.raw_data) < _LEAST_BYTES:
        return tensor
    place = -(-file.tell() // _ALIGNMENT) * _ALIGNMENT
    file.seek(place)
    file.write(tensor.raw_data)
    moved = TensorProto(name=tensor.name, data_type=tensor.data_type, dims=tensor.dims, data_location=TensorProto.EXTERNAL)
    for key, value in (("location", name), ("offset", str(place)), ("length", str(len(tensor.raw_data)))):
        moved.external_data.append(StringStringEntryProto(key=key, value=value))
    return moved


def _without_initializers(model: ModelProto) -> ModelProto:
    """A copy without the tensors in it: copying those would take as much memory again."""
    lean, graph = ModelProto(), GraphProto()
    _copy_fields(model, lean, without="graph")
    _copy_fields(model.graph, graph, without="initializer")
    lean.graph.CopyFrom(graph)
    return lean


def _copy_fields(source: Message, target: Message, without: str) -> None:
    for field, content in source.ListFields():
        if field.name == without:
            continue
        if field.is_repeated if hasattr(field, "is_repeated") else field.label == field.LABEL_REPEATED:
            getattr(target, field.name).extend(content)
        elif field.type == field.TYPE_MESSAGE:
            getattr(target, field.name).CopyFrom(content)
        else:
            setattr(target, field.name, content)
