"""Save a model whose weights may be in external files, without loading them: files are referenced, or copied.

They are copied and not linked, because onnx refuses external data that is a symbolic link or has several hard links; a second hard link
would make the original model unusable too.
"""

from __future__ import annotations

import filecmp
import os
import secrets
import shutil
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import onnx
from google.protobuf.message import EncodeError  # type: ignore[import-untyped]

from ....core.errors import InputError
from ...formats.atomic import atomic_write
from .large_models import with_weights_apart
from .stored import check_location

CHOOSE = "write the model next to the original, or use --no-onnx"


@dataclass(frozen=True, slots=True)
class DataCopy:
    """A file of external weights that must be copied."""

    origin: Path
    target: Path


def model_bytes(proto: onnx.ModelProto) -> bytes:
    """The content of the file, the same for the same model."""
    try:
        data: bytes = proto.SerializeToString(deterministic=True)
    except EncodeError:
        raise InputError(
            "the compiled model would be larger than 2 GiB, the limit of an ONNX file: store the weights of the model as external data"
        ) from None
    return data


def save_model(proto: onnx.ModelProto, target: Path, source: Path | None) -> tuple[Path, ...]:
    """Copy missing external data of `source`, then write the model. Returns the files that are new."""
    copies = external_copies(proto, target, source)
    lean, weights = with_weights_apart(proto, target)
    data = model_bytes(lean)
    for copy in copies:
        _copy(copy)
    atomic_write(target, data)
    return (*(copy.target for copy in copies), *([weights] if weights else []), target)


def external_copies(proto: onnx.ModelProto, target: Path, source: Path | None) -> tuple[DataCopy, ...]:
    """The files that `save_model` would copy. Raises an error if something prevents it; call it before the long work starts."""
    if source is None:
        return ()
    copies = [DataCopy(source.parent / location, target.parent / location) for location in sorted(external_locations(proto))]
    for copy in copies:
        for data in (copy.origin, copy.target):
            if _same_file(data, target):
                raise InputError(f"cannot write {target}: it holds the weights of {source}; choose another name")
    return tuple(copy for copy in copies if _is_needed(copy, source))


def external_locations(proto: onnx.ModelProto) -> set[PurePosixPath]:
    """The external files of the tensors, relative to the model's folder and inside it."""
    return {check_location(tensor) for tensor in _tensors(proto) if tensor.data_location == onnx.TensorProto.EXTERNAL}


def _is_needed(copy: DataCopy, source: Path) -> bool:
    if _same_file(copy.origin, copy.target):
        return False
    if not copy.origin.is_file():
        raise InputError(f"{source}: its external data {copy.origin} is missing, so it cannot be copied to {copy.target.parent}; {CHOOSE}")
    if not copy.target.exists():
        return True
    try:
        if copy.target.is_file() and filecmp.cmp(copy.origin, copy.target, shallow=False):
            return False
    except OSError as error:
        raise InputError(f"cannot compare {copy.origin} with {copy.target}: {(error.strerror or str(error)).lower()}") from None
    raise InputError(f"cannot copy the weights {copy.origin} to {copy.target}: a different file exists; choose another folder, or {CHOOSE}")


def _same_file(first: Path, second: Path) -> bool:
    try:
        return os.path.samefile(first, second)
    except OSError:
        return os.path.realpath(first) == os.path.realpath(second)


def _copy(copy: DataCopy) -> None:
    temporary = copy.target.with_name(f".checkmate-{secrets.token_hex(8)}.tmp")
    try:
        copy.target.parent.mkdir(parents=True, exist_ok=True)
        try:
            shutil.copyfile(copy.origin, temporary)
            os.replace(temporary, copy.target)
        except BaseException:
            with suppress(OSError):
                temporary.unlink()
            raise
    except OSError as error:
        raise InputError(f"cannot copy the weights {copy.origin} to {copy.target}: {(error.strerror or str(error)).lower()}") from None


def _tensors(proto: onnx.ModelProto) -> Iterator[onnx.TensorProto]:
    yield from _graph_tensors(proto.graph)
    for function in proto.functions:
        yield from _node_tensors(function.node)
        for attribute in function.attribute_proto:
            yield from _attribute_tensors(attribute)
    for training in proto.training_info:
        yield from _graph_tensors(training.initialization)
        yield from _graph_tensors(training.algorithm)


def _graph_tensors(graph: onnx.GraphProto) -> Iterator[onnx.TensorProto]:
    yield from graph.initializer
    for sparse in graph.sparse_initializer:
        yield from (sparse.values, sparse.indices)
    yield from _node_tensors(graph.node)


def _node_tensors(nodes: Iterable[onnx.NodeProto]) -> Iterator[onnx.TensorProto]:
    for node in nodes:
        for attribute in node.attribute:
            yield from _attribute_tensors(attribute)


def _attribute_tensors(attribute: onnx.AttributeProto) -> Iterator[onnx.TensorProto]:
    if attribute.HasField("t"):
        yield attribute.t
    yield from attribute.tensors
    for sparse in (*([attribute.sparse_tensor] if attribute.HasField("sparse_tensor") else []), *attribute.sparse_tensors):
        yield from (sparse.values, sparse.indices)
    if attribute.HasField("g"):
        yield from _graph_tensors(attribute.g)
    for graph in attribute.graphs:
        yield from _graph_tensors(graph)
