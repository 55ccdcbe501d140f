"""Costs of operations, beside the graph: the same graph can be priced in several ways.

A view costs nothing in every model: it makes no data. What each operation got, and from where, is kept in `sources`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from .errors import InputError
from .graph import Graph, Operation


@dataclass(frozen=True, slots=True)
class Device:
    """What the roofline needs to know of a machine."""

    name: str
    flops_per_second: float
    bytes_per_second: float
    launch_seconds: float = 0.0
    """What starting any operation takes, however small."""


@dataclass(frozen=True, slots=True)
class Costs:
    """One number per operation, and where it came from."""

    model: str
    unit: str
    amounts: tuple[float, ...]
    sources: tuple[str, ...]

    @property
    def total(self) -> float:
        """The ideal: every operation once."""
        return sum(self.amounts)


Price = Callable[[Operation], tuple[float, str]]


def _priced(model: str, unit: str, graph: Graph, price: Price) -> Costs:
    rows = [(0.0, "view") if operation.view else price(operation) for operation in graph.operations]
    return Costs(model, unit, tuple(amount for amount, _ in rows), tuple(source for _, source in rows))


def has_given_costs(graph: Graph) -> bool:
    """Does the file itself state costs?"""
    return any(operation.work.cost is not None for operation in graph.operations)


def given_costs(graph: Graph) -> Costs:
    """The costs the file states."""

    def price(operation: Operation) -> tuple[float, str]:
        if operation.work.cost is None:
            raise InputError(f"operation {operation.name!r} has no cost, though others have: add its 'cost' or use --costs unit")
        return operation.work.cost, "given"

    return _priced("given", "given", graph, price)


def unit_costs(graph: Graph) -> Costs:
    """Every operation costs 1."""
    return _priced("unit", "operations", graph, lambda operation: (1.0, "unit"))


def flops_costs(graph: Graph) -> Costs:
    """Floating-point operations where a formula is known, bytes moved elsewhere."""

    def price(operation: Operation) -> tuple[float, str]:
        if operation.work.flops is not None:
            return float(operation.work.flops), "flops"
        return float(_moved(graph, operation)), "bytes moved"

    return _priced("flops", "FLOP", graph, price)


def roofline_costs(graph: Graph, device: Device) -> Costs:
    """Seconds on a device: the longer of computing and moving, plus the launch."""

    def price(operation: Operation) -> tuple[float, str]:
        moving = _moved(graph, operation) / device.bytes_per_second
        computing = (operation.work.flops or 0.0) / device.flops_per_second
        source = "roofline: compute" if computing > moving else "roofline: memory"
        return max(computing, moving) + device.launch_seconds, source

    return _priced(f"roofline ({device.name})", "s", graph, price)


def measured_costs(graph: Graph, table: Mapping[str, float], unit: str = "s") -> Costs:
    """Costs by operation name, from a file."""

    def price(operation: Operation) -> tuple[float, str]:
        if operation.name not in table:
            raise InputError(f"the costs file has no cost for operation {operation.name!r} ({operation.kind})")
        return table[operation.name], "measured"

    return _priced("measured", unit, graph, price)


def _moved(graph: Graph, operation: Operation) -> int:
    """What the loader counted, or else the bytes of the values read and made (a hand-written graph knows no parameters)."""
    if operation.work.moved_bytes is not None:
        return operation.work.moved_bytes
    return sum(graph.values[_owner(graph, value)].bytes for value in (*operation.inputs, *operation.outputs))


def _owner(graph: Graph, value: int) -> int:
    """The value whose buffer a view shares."""
    while (base := graph.values[value].alias_of) is not None:
        value = base
    return value
