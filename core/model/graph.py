"""The graph: operations that read and make values, in a topological order.

Immutable. Loaders describe operations and values by name (`OperationSpec`, `ValueSpec`); `assemble` checks, sorts and numbers them, so that
every format gets the same checks and the same messages.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ..errors import InputError

LARGEST_BYTES = 2**60
"""An exbibyte, more than any machine has. Sums of sizes up to this stay exact."""


@dataclass(frozen=True, slots=True)
class Work:
    """How much an operation computes and moves; a cost model turns this into a cost."""

    cost: float | None = None
    """The cost in the graph file."""
    flops: float | None = None
    """Floating-point operations by formula; None where no formula is known."""
    moved_bytes: int | None = None
    """Bytes read and written, parameters included."""


@dataclass(frozen=True, slots=True)
class Value:
    """One tensor made by one operation."""

    name: str
    bytes: int
    alias_of: int | None = None
    """The value whose buffer this one shares; None if it has its own (or shares fixed memory, then `bytes` is 0)."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One computation. `inputs` are computed values only: parameters and graph inputs are fixed memory."""

    name: str
    kind: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    workspace: int = 0
    """Bytes needed only while it runs."""
    work: Work = Work()
    view: bool = False
    """It allocates nothing: its outputs share memory that is already in use (Reshape and similar operations). It costs nothing."""
    backward: bool = False
    """True if the file marks it as part of the backward pass."""
    pinned: bool = False
    """Must run exactly once (random numbers without a seed, state, or at the user's request)."""
    in_place: tuple[tuple[int, int], ...] = ()
    """Pairs of an input and an output that may overwrite the input, if nothing else needs its buffer any more."""


@dataclass(frozen=True, slots=True)
class Graph:
    """Operations in a topological order, the values they make, and the fixed memory."""

    name: str
    operations: tuple[Operation, ...]
    values: tuple[Value, ...]
    outputs: tuple[int, ...] = ()
    """Values that stay in memory to the end."""
    fixed: Mapping[str, int] = field(default_factory=dict)
    """Bytes of fixed memory, by kind: parameters, inputs, constants, ..."""

    @property
    def fixed_bytes(self) -> int:
        return sum(self.fixed.values())

    def producers(self) -> list[int]:
        """The operation that makes each value."""
        producers = [0] * len(self.values)
        for index, operation in enumerate(self.operations):
            for value in operation.outputs:
                producers[value] = index
        return producers


def pin(graph: Graph, chosen: Callable[[str], bool]) -> Graph:
    """The same graph with these operations pinned, by name. Views cost nothing and are never pinned."""
    operations = (replace(op, pinned=True) if chosen(op.name) and not op.view else op for op in graph.operations)
    return replace(graph, operations=tuple(operations))


@dataclass(frozen=True, slots=True)
class ValueSpec:
    """A value as described by a loader."""

    name: str
    bytes: int
    alias_of: str | None = None


@dataclass(frozen=True, slots=True)
class OperationSpec:
    """An operation as described by a loader, with values by name."""

    name: str
    kind: str
    inputs: tuple[str, ...]
    outputs: tuple[ValueSpec, ...]
    workspace: int = 0
    work: Work = Work()
    view: bool = False
    backward: bool = False
    pinned: bool = False
    in_place: tuple[tuple[str, str], ...] = ()


def assemble(name: str, specs: Iterable[OperationSpec], outputs: Iterable[str], fixed: Mapping[str, int]) -> Graph:
    """Check, sort and number operations and values. The given order is kept if it is topological."""
    found = list(specs)
    if not found:
        raise InputError(f"{name}: the graph has no operations")
    producer = _producers(found)
    order = _topological_order(found, producer)
    numbers: dict[str, int] = {}
    for index in order:
        for made in found[index].outputs:
            numbers[made.name] = len(numbers)
    operations = tuple(_numbered(found[index], numbers) for index in order)
    values = tuple(
        Value(made.name, made.bytes, None if made.alias_of is None else numbers[made.alias_of])
        for index in order
        for made in found[index].outputs
    )
    wanted = tuple(dict.fromkeys(outputs))
    for output in wanted:
        if output not in numbers:
            raise InputError(f"no operation makes the graph output {output!r}")
    for kind, size in fixed.items():
        _check_bytes(size, f"fixed memory {kind!r}")
    return Graph(name, operations, values, tuple(sorted(numbers[output] for output in wanted)), dict(fixed))


def _producers(specs: Sequence[OperationSpec]) -> dict[str, int]:
    producer: dict[str, int] = {}
    seen: set[str] = set()
    for index, spec in enumerate(specs):
        where = f"operation {spec.name!r}"
        if spec.name in seen:
            raise InputError(f"{where} is defined twice: operation names must be unique")
        seen.add(spec.name)
        _check_bytes(spec.workspace, f"workspace of {where}")
        _check_work(spec.work, where)
        for made in spec.outputs:
            if made.name in producer:
                first = specs[producer[made.name]].name
                raise InputError(f"value {made.name!r} is made twice, by {first!r} and by {spec.name!r}: value names must be unique")
            _check_bytes(made.bytes, f"size of value {made.name!r} ({where})")
            producer[made.name] = index
    for spec in specs:
        for used in spec.inputs:
            if used not in producer:
                raise InputError(f"operation {spec.name!r} reads {used!r}, which no operation makes")
        _check_aliases(spec)
        if spec.in_place:
            _check_in_place(spec)
    return producer


def _check_aliases(spec: OperationSpec) -> None:
    aliases = [made for made in spec.outputs if made.alias_of is not None]
    for made in aliases:
        if made.alias_of not in spec.inputs:
            raise InputError(f"value {made.name!r} is an alias of {made.alias_of!r}, which is not an input of its operation {spec.name!r}")
        if not spec.view:
            raise InputError(
                f"operation {spec.name!r} makes the alias {made.name!r} but is not a view: all outputs of a view must be aliases; "
                "split the operation in two, one that makes the aliases and one that allocates memory"
            )
    if spec.view:
        for made in spec.outputs:
            if made.alias_of is None and made.bytes:
                raise InputError(f"operation {spec.name!r} is a view, but its output {made.name!r} has bytes; replace them by alias_of")
        if spec.workspace or spec.work.cost:
            raise InputError(f"operation {spec.name!r} is a view: it cannot have a cost or a workspace")


def _check_in_place(spec: OperationSpec) -> None:
    made = {value.name for value in spec.outputs}
    where = f"operation {spec.name!r}"
    if spec.view:
        raise InputError(f"{where} is a view, which writes nothing: it cannot have in_place")
    for source, target in spec.in_place:
        if source not in spec.inputs:
            raise InputError(f"{where} writes in place of {source!r}, which is not one of its inputs")
        if target not in made:
            raise InputError(f"{where} writes {target!r} in place, which is not one of its outputs")


def _check_bytes(size: int, what: str) -> None:
    if size < 0:
        raise InputError(f"{what} is negative: {size}")
    if size > LARGEST_BYTES:
        raise InputError(f"{what} is larger than any memory ({_short(size)} bytes)")


def _short(number: int) -> str:
    return str(number) if number < 10**40 else "more than 1e40"


def _check_work(work: Work, where: str) -> None:
    for label, amount in (("cost", work.cost), ("flops", work.flops), ("moved bytes", work.moved_bytes)):
        if amount is None:
            continue
        if not math.isfinite(amount):
            raise InputError(f"{label} of {where} is not a finite number: {amount}")
        if amount < 0:
            raise InputError(f"{label} of {where} is negative: {amount}")
        if amount > 1e30:
            raise InputError(f"{label} of {where} is larger than 1e30")


def _topological_order(specs: Sequence[OperationSpec], producer: Mapping[str, int]) -> list[int]:
    """Kahn's algorithm; it always takes the first ready operation in the given order, so that a topological order is kept."""
    missing = [0] * len(specs)
    users: list[list[int]] = [[] for _ in specs]
    for index, spec in enumerate(specs):
        needs = {producer[used] for used in spec.inputs}
        missing[index] = len(needs)
        for need in needs:
            users[need].append(index)
    ready = [index for index, count in enumerate(missing) if count == 0]
    order: list[int] = []
    while ready:
        index = heapq.heappop(ready)
        order.append(index)
        for user in users[index]:
            missing[user] -= 1
            if missing[user] == 0:
                heapq.heappush(ready, user)
    if len(order) < len(specs):
        raise InputError(f"the graph has a cycle: {' -> '.join(map(repr, _cycle(specs, producer, missing)))}")
    return order


def _cycle(specs: Sequence[OperationSpec], producer: Mapping[str, int], missing: Sequence[int]) -> list[str]:
    """Follow inputs from an operation that never became ready, until an operation is reached again."""
    current = next(index for index, count in enumerate(missing) if count)
    seen: dict[int, int] = {}
    path: list[int] = []
    while current not in seen:
        seen[current] = len(path)
        path.append(current)
        current = next(producer[used] for used in specs[current].inputs if missing[producer[used]])
    loop = [*path[seen[current] :], current]
    names = [specs[index].name for index in reversed(loop)]
    return names if len(names) <= 8 else [*names[:6], "...", names[-1]]


def _numbered(spec: OperationSpec, numbers: Mapping[str, int]) -> Operation:
    return Operation(
        name=spec.name,
        kind=spec.kind,
        inputs=tuple(dict.fromkeys(numbers[used] for used in spec.inputs)),
        outputs=tuple(numbers[made.name] for made in spec.outputs),
        workspace=spec.workspace,
        work=spec.work,
        view=spec.view,
        backward=spec.backward,
        pinned=spec.pinned,
        in_place=tuple((numbers[source], numbers[target]) for source, target in spec.in_place),
    )
