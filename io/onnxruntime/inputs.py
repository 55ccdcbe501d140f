"""The inputs of a model: generated values of the right types and shapes that its operators accept, or the user's own from an .npz file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from onnx import NodeProto, TensorProto, TypeProto

from ...core.errors import InputError
from ..onnx.proto.external_data import check_location
from ..onnx.proto.stored import free_inputs
from ..onnx.proto.tensor_types import shape_of, tensor_of
from ..onnx.read.reader import OnnxModel
from .input_ranges import Bounds, Uses
from .npz import read_npz
from .tensor_files import BFLOAT16, FLOATS, Array, storage_type

Feeds = dict[str, tuple[int, Array]]
"""By name of the input: element type and content, in the form of `tensor_files`."""
_BOOL = 9
_SPREAD = 0.5
"""The default standard deviation: small enough that sums of many terms stay in range."""
_SMALLEST_POSITIVE = 0.5
_WITHOUT_BOUND = 2
"""Integers without a known range are 0 or 1: masks, flags, token types."""


def feeds_for(model: OnnxModel, given: Path | None = None, *, seed: int = 0) -> Feeds:
    """A value for each input: from the file if it has one, else generated."""
    names = [value.name for value in free_inputs(model.proto.graph)]
    stated = {} if given is None else _read_npz(given, names, model.types)
    feeds: Feeds = {}
    missing = []
    for name in names:
        element, _ = _kind(name, model.types)
        if name in stated:
            feeds[name] = element, stated[name]
        elif name in model.numbers:
            feeds[name] = element, model.numbers[name].astype(storage_type(element, name))
        else:
            missing.append(name)
    generated = generate(missing, model.proto.graph.node, model.types, model.numbers, seed=seed)
    return {name: feeds.get(name) or generated[name] for name in names}


def generate(
    names: Iterable[str], nodes: Sequence[NodeProto], types: Mapping[str, TypeProto], numbers: Mapping[str, Array], *, seed: int = 0
) -> Feeds:
    """Values for tensors that the nodes read; the same seed gives the same values."""
    uses = Uses(nodes, types, numbers)
    random = np.random.default_rng(seed)
    feeds: Feeds = {}
    for name in names:
        element, shape = _kind(name, types)
        bounds = uses.bounds(name)
        if bounds.decides_shapes and element not in FLOATS:
            raise InputError(
                f"input {name!r} determines shapes in node {bounds.decides_shapes!r}, so it cannot be generated: supply it with --inputs"
            )
        feeds[name] = element, _numbers(random, element, shape, bounds, name)
    return feeds


def nudged(feeds: Feeds) -> Feeds:
    """Every floating-point number changed in its last bit, up or down at random; what is not a floating-point number is not changed."""
    random = np.random.default_rng(0)
    return {name: (element, _nudged(random, element, array)) for name, (element, array) in feeds.items()}


def _nudged(random: np.random.Generator, element: int, array: Array) -> Array:
    if element not in FLOATS:
        return array
    if element == BFLOAT16:
        return array ^ random.integers(0, 2, array.shape, array.dtype)
    moved: Array = np.nextafter(array, random.choice(np.asarray([-np.inf, np.inf], array.dtype), array.shape))
    return moved.astype(array.dtype)


def missing_weights(model: OnnxModel) -> list[TensorProto]:
    """Initializers whose external data is missing: a model can be verified without its weights."""
    folder = Path() if model.path is None else model.path.parent
    absent: dict[Path, bool] = {}
    missing = []
    for tensor in model.proto.graph.initializer:
        if tensor.data_location == TensorProto.EXTERNAL:
            file = folder / check_location(tensor)
            if absent.setdefault(file, not file.is_file()):
                missing.append(tensor)
    return missing


def weights_for(model: OnnxModel, *, seed: int = 1) -> Feeds:
    """Contents for missing weights."""
    names = [tensor.name for tensor in missing_weights(model)]
    return generate(names, model.proto.graph.node, model.types, model.numbers, seed=seed)


def _kind(name: str, types: Mapping[str, TypeProto]) -> tuple[int, tuple[int, ...]]:
    type_ = types.get(name)
    tensor = None if type_ is None else tensor_of(type_)
    shape = shape_of(type_)
    if type_ is None or tensor is None or shape is None or type_.WhichOneof("value") != "tensor_type":
        raise InputError(f"input {name!r} is not a tensor of a known shape, so it cannot be generated: this model cannot be run")
    return tensor.elem_type, shape


def _numbers(random: np.random.Generator, element: int, shape: tuple[int, ...], bounds: Bounds, name: str) -> Array:
    storage = storage_type(element, name)
    if element == _BOOL:
        return random.integers(0, 2, shape).astype(np.bool_)
    if element not in FLOATS and storage.kind != "c":
        below = _WITHOUT_BOUND if bounds.below is None else max(bounds.below, 1)
        return random.integers(0, min(below, np.iinfo(storage).max), shape).astype(storage)
    numbers = random.standard_normal(shape, np.float32) * np.float32(bounds.scale or _SPREAD)
    if bounds.positive:
        numbers = np.abs(numbers) + np.float32(_SMALLEST_POSITIVE)
    if element == BFLOAT16:
        return (np.ascontiguousarray(numbers, np.float32).view(np.uint32) >> 16).astype(np.uint16)
    return np.asarray(numbers, storage)


def _read_npz(path: Path, names: Sequence[str], types: Mapping[str, TypeProto]) -> dict[str, Array]:
    def check(name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        if name not in names:
            raise InputError(f"{path}: the model has no input {name!r}; its inputs are {', '.join(names[:10]) or 'none'}")
        element, wanted = _kind(name, types)
        if shape != wanted:
            raise InputError(f"{path}: input {name!r} has shape {list(shape)}, but the model takes {list(wanted)}")
        storage = storage_type(element, name)
        if dtype != storage and not (element == BFLOAT16 and dtype.itemsize == 2 and dtype.kind == "V"):
            raise InputError(f"{path}: input {name!r} is {dtype}, but the model takes {storage}")

    arrays = read_npz(path, check)
    return {name: array.view(np.uint16) if _kind(name, types)[0] == BFLOAT16 else array for name, array in arrays.items()}
