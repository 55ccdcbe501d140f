"""Free dimensions without symbolic algebra: shapes are inferred at two sample sizes, and sizes that differ depend on free dimensions.

onnx's inference and our shape arithmetic work best with numbers. So each free dimension is set to two different primes, and everything is
inferred twice. A size is a number if both results agree, else a product like `2*batch`, else a new symbol that can only be compared. If
every dimension is fixed, one inference is enough.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

from onnx import ValueInfoProto

from ..proto.dimensions import Dimensions
from ..proto.tensor_types import dimensions_of, is_settled

Dim = int | str
"""A number, or the name or product of names of free dimensions."""
Shape = tuple[Dim, ...]

_FIRST_PRIMES = (37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83)
_SECOND_PRIMES = (101, 103, 107, 109, 113, 127, 131, 137, 139, 149, 151, 157)


@dataclass(frozen=True, slots=True)
class Samples:
    """The free dimensions, and their sample sizes in each of the inferences."""

    symbols: tuple[str, ...]

    @property
    def points(self) -> tuple[Dimensions, ...]:
        if not self.symbols:
            return (Dimensions({}, {}),)
        return tuple(Dimensions(dict(zip(self.symbols, primes, strict=False)), {}) for primes in (_FIRST_PRIMES, _SECOND_PRIMES))

    def dim(self, sizes: Sequence[int]) -> Dim:
        """The symbolic size, from its values at each sample point."""
        first, second = sizes[0], sizes[-1]
        if first == second:
            return first
        factor, names, check = first, [], 1
        for symbol, prime, other in zip(self.symbols, _FIRST_PRIMES, _SECOND_PRIMES, strict=False):
            while factor and factor % prime == 0:
                factor //= prime
                check *= other
                names.append(symbol)
        if names and factor * check == second:
            return "*".join([*([str(factor)] if factor != 1 else []), *names])
        return f"size_{first}_{second}"

    @property
    def most(self) -> int:
        return len(_FIRST_PRIMES)


def name_free_dimensions(inputs: Sequence[ValueInfoProto]) -> None:
    """Give every unnamed free dimension of the inputs a name; along the first axis it is `batch`, shared by all inputs."""
    taken = {dimension.dim_param for value in inputs for dimension in dimensions_of(value.type)}
    batch = _unused("batch", taken)
    for value in inputs:
        for axis, dimension in enumerate(dimensions_of(value.type)):
            if not dimension.dim_param and not is_settled(dimension):
                dimension.dim_param = batch if axis == 0 else _unused(f"{value.name}_{axis}", taken)


def free_symbols(inputs: Iterable[ValueInfoProto]) -> tuple[str, ...]:
    """Names of free dimensions; an expression like `2*seq` needs no sample of its own if its names are dimensions of inputs too."""
    written = list(dict.fromkeys(dimension.dim_param for value in inputs for dimension in dimensions_of(value.type) if dimension.dim_param))
    plain = [name for name in written if name.isidentifier()]
    known: Mapping[str, int] = dict.fromkeys(plain, 1)
    trial = Dimensions(known, {})
    composed = [dimension.dim_param for value in inputs for dimension in dimensions_of(trial.settled(value.type)) if dimension.dim_param]
    return tuple(dict.fromkeys([*plain, *composed]))


def _unused(name: str, taken: set[str]) -> str:
    if name not in taken:
        return name
    return next(candidate for number in count(2) if (candidate := f"{name}_{number}") not in taken)
