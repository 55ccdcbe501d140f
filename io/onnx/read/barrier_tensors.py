"""The few tensors that a compiled model stores for its barriers and sinks. They are fixed memory: what a compiled model takes must fit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from onnx import ModelProto, TypeProto

from .metadata import COMPILED_KEY

COMPRESSIBLE = frozenset(range(1, 14))
"""Element types that Compress accepts: all that are older than bfloat16."""
_BFLOAT16 = 16
ANCHORED = COMPRESSIBLE | {_BFLOAT16}
"""Element types that a barrier can wait for or delay."""
FIRST_OPSET_OF_COMPRESS = 9
FIRST_OPSET_OF_SLICE_INPUTS = 10
FIRST_OPSET_OF_UNSQUEEZE_INPUTS = 13
_NUMBER, _TRUTH = 8, 1
"""Bytes of one element."""


def barrier_bytes(model: ModelProto, opset: int, types: Mapping[str, TypeProto]) -> int:
    """The most that barriers of this model can store; 0 for a compiled model, which has them already."""
    if not opset or any(entry.key == COMPILED_KEY for entry in model.metadata_props):
        return 0
    kinds = set(_kinds(types.values()))
    size = _TRUTH if opset >= FIRST_OPSET_OF_COMPRESS else 0
    if any(needs_flat(element, rank, opset) for element, rank in kinds):
        size += _NUMBER
    if opset >= FIRST_OPSET_OF_SLICE_INPUTS and any(element not in COMPRESSIBLE for element, _ in kinds):
        size += _NUMBER
    if opset < FIRST_OPSET_OF_UNSQUEEZE_INPUTS:
        size += sum(_NUMBER * rank for rank in {rank for _, rank in kinds})
    return size


def needs_flat(element: int, rank: int, opset: int) -> bool:
    """True if a tensor must be flattened before nothing of it can be taken."""
    return rank == 0 or not can_compress(element, opset)


def can_compress(element: int | None, opset: int) -> bool:
    return element in COMPRESSIBLE and opset >= FIRST_OPSET_OF_COMPRESS


def _kinds(types: Iterable[TypeProto]) -> Iterable[tuple[int, int]]:
    """Element type and rank of the tensors that barriers can use."""
    for type_ in types:
        tensor = type_.tensor_type
        if type_.WhichOneof("value") == "tensor_type" and tensor.HasField("shape") and tensor.elem_type in ANCHORED:
            yield tensor.elem_type, len(tensor.shape.dim)
