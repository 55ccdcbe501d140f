"""The message for an unknown size: which tensor, which node makes it, why, and what to do."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence

from onnx import TypeProto, ValueInfoProto

from ....core.errors import InputError
from ..proto.dimensions import described, missing_sizes
from ..proto.elements import ELEMENT_BITS, STRING
from ..proto.model_file import one_line
from ..proto.tensor_types import Dimension, dimensions_of, is_settled, tensor_of

_MOST_SHAPES = 3
"""How many of the inputs are described."""
_DECLARE = "add value_info with its shape to the model"


def contradiction(tensor: str, node: str, kind: str, why: str, sizes_given: bool) -> InputError:
    """For a node whose inputs do not fit together."""
    if sizes_given:
        return _error(f"node {node!r} ({kind}) cannot make {tensor!r} with these sizes: {why}; check --dim and --batch-size")
    return _error(f"node {node!r} ({kind}) cannot make {tensor!r}: {why}; correct the model, or {_DECLARE}")


def unknown_size(tensor: str, node: str, kind: str, type_: TypeProto | None, why: str = "") -> InputError:
    """The message for a tensor that a node makes. `why`, if given, replaces the reason derived from its type."""
    reason, remedy = _reason(type_)
    return _error(f"the size of tensor {tensor!r}, made by node {node!r} ({kind}), is unknown: {why or reason}; {remedy}")


def free_inputs_error(inputs: Sequence[ValueInfoProto], *, batch_given: bool) -> InputError:
    """The message for graph inputs, which lists all of them. `inputs` are those without a known size."""
    without_shape = next((value for value in inputs if not _is_settled_by_dimensions(value.type)), None)
    if without_shape is not None:
        reason, remedy = _reason(without_shape.type)
        remedy = "state it in the model" if remedy == _DECLARE else remedy
        return _error(f"the size of graph input {without_shape.name!r} is unknown: {reason}; {remedy}")
    shapes = ", ".join(f"{value.name!r} is {described(value.type)}" for value in inputs[:_MOST_SHAPES])
    more = f" and {len(inputs) - _MOST_SHAPES} more" if len(inputs) > _MOST_SHAPES else ""
    return _error(f"the model has free dimensions (input {shapes}{more}); add {missing_sizes(inputs, batch_given=batch_given)}")


def _error(message: str) -> InputError:
    """Names of operators and dimensions may be arbitrary, but the message stays on one line."""
    return InputError(one_line(message, longest=2000))


def _is_settled_by_dimensions(type_: TypeProto) -> bool:
    if type_.WhichOneof("value") == "optional_type":
        return _is_settled_by_dimensions(type_.optional_type.elem_type)
    tensor = tensor_of(type_)
    return tensor is not None and tensor.HasField("shape") and tensor.elem_type in ELEMENT_BITS


def _free(type_: TypeProto) -> list[Dimension]:
    return [dimension for dimension in dimensions_of(type_) if not is_settled(dimension)]


def _flags(names: Iterable[str]) -> str:
    return " ".join(f"--dim {shlex.quote(f'{name}=...')}" for name in names)


def _reason(type_: TypeProto | None) -> tuple[str, str]:
    """Why a type has no size, and what to do."""
    if type_ is None:
        return "neither onnx nor the file has its type", _DECLARE
    tensor = tensor_of(type_)
    if tensor is None:
        kind = (type_.WhichOneof("value") or "value of unknown type").removesuffix("_type")
        return f"the contents of this {kind} are not known before it runs", "use tensors instead"
    if tensor.elem_type == STRING:
        return "it contains strings", "remove this part of the model"
    if tensor.elem_type not in ELEMENT_BITS:
        return f"its element type {tensor.elem_type} is unknown", _DECLARE
    names = dict.fromkeys(dimension.dim_param for dimension in _free(type_) if dimension.dim_param)
    if names:
        return f"its shape is {described(type_)}", f"give {_flags(names)}"
    if not tensor.HasField("shape"):
        return "it has no shape", _DECLARE
    if any(dimension.dim_value < 0 for dimension in _free(type_)):
        return f"its shape would be {described(type_)}", "the inputs are too small for it"
    return f"its shape {described(type_)} depends on the data", _DECLARE
