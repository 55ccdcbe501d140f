"""Symbolic dimensions and their sizes.

A size that is only known when the model runs is a name such as `N`, or missing. `--dim N=32` sets every `N` in the file,
`--dim images[2]=48` sets axis 2 of the input `images`, `--batch-size 32` sets the first dimension of the graph inputs that is still free.
Exporters also write sums and products of names (`2*seq`, `past + seq`), which are computed from the sizes of the names.
"""

from __future__ import annotations

import ast
import operator
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from onnx import GraphProto, TypeProto, ValueInfoProto

from ....core.errors import InputError
from .model_file import one_line
from .tensor_types import Dimension, dimensions_of, is_settled, tensor_of

LARGEST_DIMENSION = 2**48
_PLACE = re.compile(r"(.+)\[([0-9]{1,4})\]", re.DOTALL)
_LONGEST_EXPRESSION = 120
_MOST_NAMES = 20

_ARITHMETIC: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Div: operator.floordiv,
    ast.Mod: operator.mod,
}


@dataclass(frozen=True, slots=True)
class Dimensions:
    """The sizes that were set for free dimensions of the file."""

    by_name: Mapping[str, int]
    nameless: Mapping[tuple[str, int], int]
    """Sizes for dimensions of graph inputs that have no name, by input and axis."""
    batch_given: bool = False
    """True if one of them was set by --batch-size."""

    @property
    def given(self) -> bool:
        """True if the user set any size. Then declared sizes in the file may be out of date."""
        return bool(self.by_name or self.nameless)

    def settled(self, type_: TypeProto, graph_input: str | None = None) -> TypeProto:
        """A copy of the type with a number for each known dimension."""
        copy = TypeProto()
        copy.CopyFrom(type_)
        for axis, dimension in enumerate(dimensions_of(copy)):
            size = self._size(dimension, graph_input, axis)
            if size is not None:
                dimension.dim_value = size
        return copy

    def _size(self, dimension: Dimension, graph_input: str | None, axis: int) -> int | None:
        if dimension.dim_param:
            return _evaluate(dimension.dim_param, self.by_name)
        if graph_input is not None and not is_settled(dimension):
            return self.nameless.get((graph_input, axis))
        return None


def is_symbolic(type_: TypeProto) -> bool:
    """True if the type has a named dimension, so that it depends on the sizes that the user sets."""
    return any(dimension.dim_param for dimension in dimensions_of(type_))


def bind(graph: GraphProto, inputs: Sequence[ValueInfoProto], dims: Mapping[str, int], batch_size: int | None) -> Dimensions:
    """Check the user's sizes against the dimensions of the file. `inputs` are the graph inputs that are not initializers."""
    names = list(dict.fromkeys(_names(value.type for group in (inputs, graph.output, graph.value_info) for value in group)))
    by_name: dict[str, int] = {}
    nameless: dict[tuple[str, int], int] = {}
    for name, size in dims.items():
        place = None if name in names else _place(name, inputs)
        if name in names:
            by_name[name] = size
        elif place is not None:
            _set_place(f"--dim {name}={size}", inputs, place, size, by_name, nameless)
        else:
            free = names + [place_name(*found) for found in _nameless_places(inputs)]
            known = f"the free dimensions are {', '.join(free[:_MOST_NAMES])}" if free else "the model has no free dimensions"
            raise InputError(one_line(f"--dim {name}={size}: the model has no dimension {name!r}; {known}"))
        _check_size(f"--dim {name}={size}", size, least=0)
    if batch_size is not None:
        _check_size(f"--batch-size {batch_size}", batch_size, least=1)
        _settle_first_free(inputs, batch_size, by_name, nameless)
    return Dimensions(by_name, nameless, batch_size is not None)


def place_name(graph_input: str, axis: int) -> str:
    """How the user names a dimension that has no name."""
    return f"{graph_input}[{axis}]"


def _place(text: str, inputs: Sequence[ValueInfoProto]) -> tuple[str, int] | None:
    """The input and axis that `images[2]` stands for."""
    found = _PLACE.fullmatch(text)
    if found is None or not any(value.name == found.group(1) for value in inputs):
        return None
    return found.group(1), int(found.group(2))


def _set_place(
    option: str,
    inputs: Sequence[ValueInfoProto],
    place: tuple[str, int],
    size: int,
    by_name: dict[str, int],
    nameless: dict[tuple[str, int], int],
) -> None:
    """Set the dimension of one input; if it has a name, everything of this name."""
    name, axis = place
    type_ = next(value.type for value in inputs if value.name == name)
    dimensions = list(dimensions_of(type_))
    if axis >= len(dimensions):
        raise InputError(one_line(f"{option}: the input {name!r} has no axis {axis}; its shape is {described(type_)}"))
    dimension = dimensions[axis]
    if is_settled(dimension) and dimension.dim_value != size:
        raise InputError(one_line(f"{option}: axis {axis} of {name!r} is {dimension.dim_value} in the file ({described(type_)})"))
    if dimension.dim_param:
        by_name[dimension.dim_param] = size
    elif not is_settled(dimension):
        nameless[place] = size


def missing_sizes(inputs: Sequence[ValueInfoProto], *, batch_given: bool = False) -> str:
    """The options that set every dimension that is still free, in one line to paste."""
    plain = dict.fromkeys(name for name in _names(value.type for value in inputs) if _is_name(name))
    options = [f"--dim {shlex.quote(f'{name}=...')}" for name in plain]
    places = list(_nameless_places(inputs))
    first = next(iter(places), None)
    if first is not None and not batch_given and not _has_named_before(inputs, first):
        options.insert(0, "--batch-size ...")
        places = [place for place in places if place[1] != first[1]]
    return " ".join([*options, *(f"--dim {shlex.quote(f'{place_name(*place)}=...')}" for place in places)])


def _has_named_before(inputs: Sequence[ValueInfoProto], place: tuple[str, int]) -> bool:
    """True if --batch-size would set a named dimension, which comes before the first one without a name."""
    for value in inputs:
        for axis, dimension in enumerate(dimensions_of(value.type)):
            if (value.name, axis) == place:
                return False
            if dimension.dim_param:
                return True
    return False


def _is_name(text: str) -> bool:
    """False for expressions such as `2*seq`, whose size follows from those of the names in it."""
    tree = _parsed(text)
    return tree is None or not isinstance(tree, ast.BinOp)


def _settle_first_free(inputs: Sequence[ValueInfoProto], size: int, by_name: dict[str, int], nameless: dict[tuple[str, int], int]) -> None:
    """Set the first free dimension: a named one everywhere, an unnamed one also on the same axis of the other inputs."""
    for value in inputs:
        for axis, dimension in enumerate(dimensions_of(value.type)):
            if is_settled(dimension) or (dimension.dim_param and _evaluate(dimension.dim_param, by_name) is not None):
                continue
            if (value.name, axis) in nameless:
                continue
            if dimension.dim_param:
                by_name[dimension.dim_param] = size
            else:
                nameless.update({place: size for place in _nameless_places(inputs) if place[1] == axis and place not in nameless})
            return
    shapes = ", ".join(f"{value.name}: {described(value.type)}" for value in inputs[:3]) or "there are none"
    raise InputError(one_line(f"--batch-size {size}: no graph input has a free dimension ({shapes}); leave the option out"))


def _nameless_places(inputs: Iterable[ValueInfoProto]) -> Iterator[tuple[str, int]]:
    for value in inputs:
        for axis, dimension in enumerate(dimensions_of(value.type)):
            if not dimension.dim_param and not is_settled(dimension):
                yield value.name, axis


def described(type_: TypeProto) -> str:
    """`batch x 3 x ? x width`."""
    tensor = tensor_of(type_)
    if tensor is None or not tensor.HasField("shape"):
        return "no shape"
    parts = (
        dimension.dim_param or (str(dimension.dim_value) if dimension.HasField("dim_value") else "?") for dimension in tensor.shape.dim
    )
    return " x ".join(parts) or "a scalar"


def _check_size(option: str, size: int, *, least: int) -> None:
    if not least <= size <= LARGEST_DIMENSION:
        raise InputError(f"{option}: the size must be from {least} to 2^48")


def _names(types: Iterable[TypeProto]) -> Iterator[str]:
    """All names of dimensions, including those that occur only in expressions."""
    for type_ in types:
        for dimension in dimensions_of(type_):
            if dimension.dim_param:
                yield dimension.dim_param
                tree = _parsed(dimension.dim_param)
                if tree is not None and not isinstance(tree, ast.Name):
                    yield from (node.id for node in ast.walk(tree) if isinstance(node, ast.Name))


def _evaluate(text: str, sizes: Mapping[str, int]) -> int | None:
    """The size of a dimension, from its name or from an expression of names; None if it is unknown."""
    if text in sizes:
        return sizes[text]
    tree = _parsed(text)
    size = None if tree is None else _value(tree, sizes)
    return size if size is not None and 0 <= size <= LARGEST_DIMENSION else None


@lru_cache(maxsize=4096)
def _parsed(text: str) -> ast.expr | None:
    if len(text) > _LONGEST_EXPRESSION:
        return None
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None


def _value(tree: ast.expr, sizes: Mapping[str, int]) -> int | None:
    match tree:
        case ast.Constant(value=int() as number) if not isinstance(number, bool):
            return number
        case ast.Name(id=name):
            return sizes.get(name)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC:
            first, second = _value(left, sizes), _value(right, sizes)
            if first is None or second is None or (second == 0 and not isinstance(op, ast.Add | ast.Sub | ast.Mult)):
                return None
            return _ARITHMETIC[type(op)](first, second)
    return None
