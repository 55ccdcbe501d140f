"""Save a model whose weights may be in external files, without loading them: files are referenced, or copied.

Next to the original, its files are referenced. In another folder, each is copied to a file named after the output (`out.onnx.data`), never
under the name that the model gives it: a model must not be able to place files such as `.bashrc`. Files are copied and not linked, because
onnx refuses external data that is a symbolic link or has several hard links; a second hard link would make the original model unusable too.
"""

from __future__ import annotations

import filecmp
import os
import secrets
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import onnx
from google.protobuf.message import EncodeError  # type: ignore[import-untyped]

from ....core.errors import InputError
from ...formats.atomic import atomic_write, check_writable
from .external_data import check_location, open_inside
from .large_models import with_weights_apart

CHOOSE = "write the model next to the original, or use --no-onnx"


@dataclass(frozen=True, slots=True)
class DataCopy:
    """A file of external weights, and the file it is copied to."""

    location: PurePosixPath
    """As the model calls it."""
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
    """Copy the external data of `source`, if the target is in another folder, then write the model. Returns the files that are new."""
    copies = external_copies(proto, target, source)
    moved = _relocated(proto, {copy.location: copy.target.name for copy in copies}) if copies else proto
    lean, weights = with_weights_apart(moved, target)
    data = model_bytes(lean)
    changed = [copy for copy in copies if not _is_copied(copy)]
    for copy in changed:
        _copy(copy)
    atomic_write(target, data)
    return (*(copy.target for copy in changed), *([weights] if weights else []), target)


def external_copies(proto: onnx.ModelProto, target: Path, source: Path | None) -> tuple[DataCopy, ...]:
    """The files that `save_model` copies. Raises an error if something prevents it; call it before the long work starts."""
    if source is None:
        return ()
    locations = sorted(external_locations(proto))
    for location in locations:
        if _same_file(source.parent / location, target):
            raise InputError(f"cannot write {target}: it holds the weights of {source}; choose another name")
    if _same_file(source.parent, target.parent):
        return ()
    names = [f"{target.name}.data"] if len(locations) == 1 else [f"{target.name}.{number}.data" for number in range(len(locations))]
    copies = tuple(
        DataCopy(location, source.parent / location, target.with_name(name)) for location, name in zip(locations, names, strict=True)
    )
    for copy in copies:
        _check(copy, source)
    return copies


def external_locations(proto: onnx.ModelProto) -> set[PurePosixPath]:
    """The external files of the tensors, relative to the model's folder and inside it."""
    return {check_location(tensor) for tensor in _tensors(proto) if tensor.data_location == onnx.TensorProto.EXTERNAL}


def _relocated(proto: onnx.ModelProto, names: Mapping[PurePosixPath, str]) -> onnx.ModelProto:
    """The model with other names for its files of weights."""
    copy = onnx.ModelProto()
    copy.CopyFrom(proto)
    for tensor in _tensors(copy):
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            name = names[check_location(tensor)]
            next(entry for entry in tensor.external_data if entry.key == "location").value = name
    return copy


def _check(copy: DataCopy, source: Path) -> None:
    if not copy.origin.exists():
        raise InputError(f"{source}: its external data {copy.origin} is missing, so it cannot be copied to {copy.target.parent}; {CHOOSE}")
    try:
        open_inside(source.parent, copy.location, str(copy.location)).close()
    except OSError as error:
        raise _uncopied(copy, error) from None
    if os.path.lexists(copy.target) and not _is_copied(copy):
        raise InputError(f"cannot copy the weights {copy.origin} to {copy.target}: a different file exists; delete it, or {CHOOSE}")
    if copy.target.parent.is_dir():
        check_writable(copy.target)


def _is_copied(copy: DataCopy) -> bool:
    try:
        return copy.target.is_file() and not copy.target.is_symlink() and filecmp.cmp(copy.origin, copy.target, shallow=False)
    except OSError as error:
        raise InputError(f"cannot compare {copy.origin} with {copy.target}: {(error.strerror or str(error)).lower()}") from None


def _same_file(first: Path, second: Path) -> bool:
    try:
        return os.path.samefile(first, second)
    except OSError:
        return os.path.realpath(first) == os.path.realpath(second)


def _copy(copy: DataCopy) -> None:
    temporary = copy.target.with_name(f".checkmate-{secrets.token_hex(8)}.tmp")
    folder = Path(*copy.origin.parts[: len(copy.origin.parts) - len(copy.location.parts)])
    try:
        copy.target.parent.mkdir(parents=True, exist_ok=True)
        try:
            with open_inside(folder, copy.location, str(copy.location)) as origin, temporary.open("xb") as made:
                shutil.copyfileobj(origin, made)
            os.replace(temporary, copy.target)
        except BaseException:
            with suppress(OSError):
                temporary.unlink()
            raise
    except OSError as error:
        raise _uncopied(copy, error) from None


def _uncopied(copy: DataCopy, error: OSError) -> InputError:
    return InputError(f"cannot copy the weights {copy.origin} to {copy.target}: {(error.strerror or str(error)).lower()}")


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
