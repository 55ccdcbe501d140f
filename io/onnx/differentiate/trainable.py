"""Find the parameters of a model: weights may be initializers, Constant nodes or ConstantOfShape nodes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase

import numpy as np
from onnx import NodeProto, TensorProto

from ....core.errors import InputError
from ..build.known_tensors import FLOATS, Tensors
from ..proto.attributes import find
from ..proto.model_file import plain_domain
from ..proto.stored import array_of
from .forward_model import Forward
from .training_options import Parameter, Role, TrainingOptions

_SETTINGS: dict[str, frozenset[int]] = {
    "Clip": frozenset({1, 2}),
    "Dropout": frozenset({1, 2}),
    "OneHot": frozenset({2}),
    "Pad": frozenset({2}),
    "Range": frozenset({0, 1, 2}),
    "Resize": frozenset({1, 2}),
    "Upsample": frozenset({1}),
}
"""Inputs that configure an operator: constants for these inputs are not weights."""
_STATISTICS = (("BatchNormalization", 3), ("BatchNormalization", 4))
"""Running mean and variance."""
_MASK = -1e4
"""Attention masks have numbers below this."""


def find_parameters(forward: Forward, tensors: Tensors, options: TrainingOptions) -> list[Parameter]:
    """All stored float tensors that a training loop may own, with their roles. Constants that configure the model are left out."""
    found = list(_stored(forward, tensors))
    uses = _uses(forward.nodes)
    statistics = {name for name in found_names(found) if any(use in _STATISTICS for use in uses.get(name, ()))}
    candidates = [parameter for parameter in found if parameter.name not in statistics and _is_used_as_data(uses.get(parameter.name, ()))]
    names = found_names(candidates)
    movable = set(names)
    _check_patterns("--train", options.train, names)
    _check_patterns("--freeze", options.freeze, names)
    chosen: list[Parameter] = []
    for parameter in found:
        if parameter.name in statistics:
            chosen.append(_with_role(parameter, Role.STATISTIC))
        elif parameter.name in movable:
            role = _role(parameter, options, is_weight=_is_weight(forward, parameter))
            if role is not None:
                chosen.append(_with_role(parameter, role))
    return chosen


def found_names(found: Sequence[Parameter]) -> list[str]:
    return [parameter.name for parameter in found]


def _role(parameter: Parameter, options: TrainingOptions, *, is_weight: bool) -> Role | None:
    """The role of a parameter; None for a constant of the model that is not a weight."""
    if any(fnmatchcase(parameter.name, pattern) for pattern in options.freeze):
        return Role.FROZEN
    if options.train:
        if any(fnmatchcase(parameter.name, pattern) for pattern in options.train):
            return Role.TRAINED
        return Role.FROZEN if is_weight else None
    return Role.TRAINED if is_weight else None


def _is_weight(forward: Forward, parameter: Parameter) -> bool:
    """As the file says; most files say nothing."""
    if parameter.name in forward.parameters:
        return True
    return parameter.name not in forward.constants and _looks_like_weight(parameter)


def _looks_like_weight(parameter: Parameter) -> bool:
    """False for single numbers, which are mostly constants in formulas, and for masks, which have infinities or very negative numbers."""
    if math.prod(parameter.shape) <= 1 and not (parameter.shape and parameter.stored is None):
        return False
    return not _is_mask(parameter)


def _is_mask(parameter: Parameter) -> bool:
    stored = parameter.stored
    if stored is None:
        return not math.isfinite(parameter.fill) or parameter.fill < _MASK
    if stored.data_location == TensorProto.EXTERNAL:
        return False
    numbers = array_of(stored)
    if numbers.dtype not in (np.float16, np.float32, np.float64):
        numbers = numbers.astype(np.float32)
    low = float(numbers.min(initial=0))
    return not (low >= _MASK and math.isfinite(low) and math.isfinite(float(numbers.max(initial=0))))


def _with_role(parameter: Parameter, role: Role) -> Parameter:
    return Parameter(parameter.name, role, parameter.element, parameter.shape, parameter.stored, parameter.fill)


def _stored(forward: Forward, tensors: Tensors) -> Iterator[Parameter]:
    for name, tensor in forward.initializers.items():
        if tensor.data_type in FLOATS:
            yield Parameter(name, Role.FROZEN, tensor.data_type, tuple(tensor.dims), tensor)
    for node in forward.nodes:
        if plain_domain(node.domain) or node.op_type not in ("Constant", "ConstantOfShape"):
            continue
        name = node.output[0]
        if not tensors.is_float(name):
            continue
        shape = tensors.shape(name)
        if any(isinstance(dim, str) for dim in shape):
            continue
        sizes = tuple(dim for dim in shape if isinstance(dim, int))
        value = find(node, "value")
        if node.op_type == "ConstantOfShape":
            if node.input[0] in forward.initializers or tensors.numbers(node.input[0]) is not None:
                fill = 0.0 if value is None else _first_number(value.t, name)
                yield Parameter(name, Role.FROZEN, tensors.element(name), sizes, None, fill)
        elif value is not None:
            yield Parameter(name, Role.FROZEN, tensors.element(name), sizes, value.t)


def _first_number(tensor: TensorProto, name: str) -> float:
    numbers = array_of(tensor)
    if not numbers.size:
        raise InputError(f"the constant {name!r} has an empty value")
    return float(numbers.reshape(-1)[0])


def _uses(nodes: Sequence[NodeProto]) -> dict[str, list[tuple[str, int]]]:
    uses: dict[str, list[tuple[str, int]]] = {}
    for node in nodes:
        for index, name in enumerate(node.input):
            if name:
                uses.setdefault(name, []).append((node.op_type, index))
    return uses


def _is_used_as_data(uses: Sequence[tuple[str, int]]) -> bool:
    return any(index not in _SETTINGS.get(operator, ()) for operator, index in uses)


def _check_patterns(option: str, patterns: Sequence[str], names: Sequence[str]) -> None:
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in names):
            near = get_close_matches(pattern, names, 1, 0.5)
            hint = (
                f"did you mean {near[0]!r}?"
                if near
                else f"the model has {len(names)} float parameters" + (f", such as {names[0]!r}" if names else "")
            )
            raise InputError(f"{option}: no parameter matches {pattern!r}; {hint}")
